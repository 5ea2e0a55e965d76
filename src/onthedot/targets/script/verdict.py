"""How a script ended, in words."""

from __future__ import annotations

import signal
from typing import Any

from onthedot.model.run import Outcome
from onthedot.model.size import format_size
from onthedot.targets.process.last_line import LastLine
from onthedot.targets.script.limits import Hits, ScriptLimits

__all__ = ["outcome_of"]


def outcome_of(code: int, hits: Hits, limits: ScriptLimits, printed: LastLine, complained: LastLine) -> Outcome:
    """`printed` and `complained`: the ends of its standard output and of its standard error."""
    detail: dict[str, Any] = {"exit_code": code}
    if code == 0:
        return Outcome(kind="ok", detail=detail | printed.given_back())
    if hits.memory or complained.line.startswith("MemoryError"):
        detail["out_of_memory"] = True
        error = f"out of memory (limit {format_size(limits.memory)})"
    elif hits.processes:
        error = f"too many processes (limit {limits.processes}); {_how(code)}"
    else:
        error = _how(code)
    return Outcome(kind="error", retryable=True, error=error, detail=detail)


def _how(code: int) -> str:
    if code > 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"killed by {name}"
