"""The last line that a process prints: if that is JSON, it is what the run gives back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from onthedot.model.result import RESULT_LIMIT

__all__ = ["LastLine"]

_BEGINNINGS = ("{", "[", '"')


class LastLine:
    """Passes on what is printed, and remembers the last line that is not empty. Bounded: of a line that is too long to
    be a result only the beginning is kept, which is still too long."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._line = ""
        self._before_is_known = False

    def write(self, text: str) -> None:
        self._log(text)
        if not (printed := text.rstrip()):
            self._line += text
        else:
            start = printed.rfind("\n") + 1
            if start or "\n" in self._line:
                self._line, self._before_is_known = text[start:], True
            else:
                self._line += text
        if len(self._line) > 2 * RESULT_LIMIT:
            beginning = self._line[: RESULT_LIMIT + 1]
            has_ended = "\n" in self._line and "\n" not in beginning
            self._line = f"{beginning}\n" if has_ended else beginning

    @property
    def line(self) -> str:
        return self._line.strip()

    @property
    def is_whole(self) -> bool:
        """Whether what was written has its beginning for sure: a line break before it."""
        return self._before_is_known

    def given_back(self) -> dict[str, Any]:
        """What it adds to the details of an outcome: the `result`, or a note why what begins like one is none."""
        line = self.line
        if len(line) > RESULT_LIMIT:
            note = f"not kept: the last line exceeds the limit of {RESULT_LIMIT} bytes"
            return {"result_note": note} if line.startswith(_BEGINNINGS) else {}
        try:
            result = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeError):
            return {}
        except RecursionError:
            return {"result_note": "not kept: it is nested too deeply"}
        return {} if result is None else {"result": result}
