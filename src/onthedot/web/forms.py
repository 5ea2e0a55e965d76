"""Forms of pages: read within bounds, unknown fields refused, and shown again with what was typed if it is wrong.

Who may send one is decided before: `api.auth.guard` refuses pages of other sites, and keys without the scope.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request

from onthedot.api.http.bodies import read_body
from onthedot.errors import FieldProblem, Invalid, Unreadable
from onthedot.model.accepted import known_names
from onthedot.web.links import is_local

__all__ = ["RATE_MOST", "Form", "read_form"]

FIELDS_MOST = 2000
RATE_MOST = 10_000
"""Per second, of bulk operations."""


class Form:
    """What was sent (or nothing, for a form that is shown first), and what is wrong with it."""

    def __init__(self, values: Mapping[str, list[str]] | None = None) -> None:
        self._values = dict(values or {})
        self.problems: list[FieldProblem] = []

    def text(self, name: str, default: str = "") -> str:
        """One line or text without the space around it; with the line breaks that browsers send made plain."""
        found = self._values.get(name)
        return default if not found else found[-1].replace("\r\n", "\n").strip()

    def given(self, name: str) -> str | None:
        """The same, None if it is empty."""
        return self.text(name) or None

    def many(self, name: str) -> list[str]:
        """All values of a field that may stand several times, such as the boxes of a list."""
        return list(self._values.get(name, ()))

    def flag(self, name: str) -> bool:
        """A checkbox."""
        return self.text(name) in ("on", "true", "1")

    def number(self, name: str, low: int, high: int) -> int | None:
        """None if it is empty; Invalid if it is not an integer within these bounds."""
        given = self.given(name)
        if given is None:
            return None
        if not re.fullmatch(r"[0-9]{1,19}", given, re.ASCII) or not low <= int(given) <= high:
            accepted = f"an integer from {low} to {high}"
            raise Invalid.one(name, "not a valid number", given=given[:100], accepted=accepted)
        return int(given)

    def back(self, default: str) -> str:
        """The page to return to, from the field `back`; never one of another server."""
        asked = self.text("back")
        return asked if is_local(asked) else default

    def refuse(self, error: Invalid) -> Form:
        """Keep what the service said; `error_at` gives it to the template, field by field."""
        self.problems.extend(error.problems)
        return self

    def error_at(self, name: str) -> str | None:
        """What is wrong with a field, in the API's words."""
        return next((_words(each) for each in self.problems if each.path == name), None)

    def errors_elsewhere(self, *names: str) -> list[str]:
        """What is wrong with anything but these fields: shown above the form."""
        return [f"{each.path}: {_words(each)}" for each in self.problems if each.path not in names]


async def read_form(request: Request, *names: str) -> Form:
    """The form that was sent. `names` are all its fields, `back` is always one; another is Invalid."""
    raw = await read_body(request)
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, strict_parsing=bool(raw), errors="strict",
            max_num_fields=FIELDS_MOST,
        )  # fmt: skip
    except ValueError:
        raise Unreadable("the form can't be read; accepted: fields in URL encoding, at most 2,000") from None
    known = (*names, "back")
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        if name not in known:
            accepted = known_names(name, known, "no fields")
            raise Invalid.one(name[:200], "unknown field", given=value[:200], accepted=accepted)
        values.setdefault(name, []).append(value)
    return Form(values)


def _words(problem: FieldProblem) -> str:
    return problem.message if problem.accepted is None else f"{problem.message}; accepted: {problem.accepted}"
