"""The last line that a process prints: if that is JSON, it is what the run gives back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from onthedot.model.result import RESULT_LIMIT

__all__ = ["LastLine"]


class LastLine:
    """Passes on what is printed, and remembers the last line that is not empty. Bounded: of a line that is too long to
    be a result only the end is kept, which is no JSON then."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._line = ""

    def write(self, text: str) -> None:
        self._log(text)
        if not (printed := text.rstrip()):
            self._line += text
        else:
            start = printed.rfind("\n") + 1
            self._line = text[start:] if start or "\n" in self._line else self._line + text
        if len(self._line) > 2 * RESULT_LIMIT:
            self._line = self._line[-RESULT_LIMIT - 1 :]

    @property
    def line(self) -> str:
        return self._line.strip()

    def result(self) -> Any:
        """None: it is no JSON."""
        line = self.line
        if len(line) > RESULT_LIMIT:
            return None
        try:
            return msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
