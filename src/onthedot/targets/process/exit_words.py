"""The exit code of a container, in words."""

from __future__ import annotations

import signal

from onthedot.model.size import format_size

__all__ = ["exit_words"]

_BY_SIGNAL = 128
_BY_SHELLS = {126: "command can't be executed", 127: "command not found"}  # and by the init of an engine


def exit_words(code: int, memory: int | None) -> str:
    """`memory`: its limit."""
    if code in _BY_SHELLS:
        return f"exit code {code} ({_BY_SHELLS[code]})"
    number = code - _BY_SIGNAL
    if number not in set(signal.Signals):
        return f"exit code {code}"
    name = signal.Signals(number).name
    if number == signal.SIGKILL:  # not every engine says why
        limit = "" if memory is None else f", limit {format_size(memory)}"
        return f"exit code {code} ({name}; perhaps out of memory{limit})"
    return f"exit code {code} ({name})"
