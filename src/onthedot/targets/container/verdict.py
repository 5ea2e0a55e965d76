"""How a container ended, in words."""

from __future__ import annotations

from typing import Any

from onthedot.model.run import Outcome
from onthedot.model.size import format_size
from onthedot.targets.container_engine.engine import ContainerState
from onthedot.targets.process.exit_words import exit_words
from onthedot.targets.process.last_line import LastLine

__all__ = ["outcome_of"]


def outcome_of(state: ContainerState, memory: int, printed: LastLine | None, *, cut: bool) -> Outcome:
    """`memory`: its limit. `cut`: the engine was away while it ran."""
    code = state.exit_code
    detail: dict[str, Any] = {"exit_code": code}
    if code == 0:
        given_back = {} if printed is None else printed.given_back()
        if cut and not given_back:
            detail["result_note"] = "the container engine was away while it ran, and may have missed what it printed"
        detail |= given_back
        return Outcome(kind="ok", detail=detail)
    if state.oom_killed:
        detail["out_of_memory"] = True
        error = f"out of memory (limit {format_size(memory)})"
    else:
        error = exit_words(code, memory)
    if state.error:
        error += f": {state.error[:300]}"
    if cut:
        error += "; the container engine was restarted or not reachable while it ran"
    return Outcome(kind="error", retryable=True, error=error, detail=detail)
