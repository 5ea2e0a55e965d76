"""A value that a setting does not accept, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from onthedot.model.accepted import known_names
from onthedot.model.duration import Duration
from onthedot.model.field_errors import mistakes

__all__ = ["WrongValue", "quoted", "read_duration", "unknown_field", "wrong_field"]


class WrongValue(Exception):
    """What is accepted, and why this is not, if more can be said than that."""

    def __init__(self, accepted: str, why: str = "") -> None:
        super().__init__(accepted)
        self.accepted = accepted
        self.why = why

    def told(self, value: str) -> str:
        """As an error says it. `value`: what was given, or words for it if it may be a secret."""
        why = self.why or f"{value} is not valid"
        return f"{why}{'' if why.endswith('?') else '.'} Accepted: {self.accepted}"


def quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"


def wrong_field(error: Exception, value: Any, kind: Any, path: str) -> str:
    """The field that made msgspec refuse a table, or the same as JSON, with the nearest name of one that is unknown.
    Never the value: it may be a secret."""
    if not isinstance(error, msgspec.ValidationError):
        return str(error)
    try:
        loose = msgspec.json.decode(value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str))
    except (msgspec.MsgspecError, TypeError, ValueError) as unreadable:  # further on than the first wrong field
        return str(unreadable)
    found = next(mistakes(loose, kind, path), None)
    if found is None:
        return f"{path}: {error}"
    if found.message == "unknown field":
        return f"{found.path}: unknown field{_nearest(found.accepted or '')}"
    more = f" ({found.accepted})" if found.accepted and not found.message.startswith(("expected", "required")) else ""
    return f"{found.path}: {found.message}{more}"


def read_duration(value: str | float, path: str) -> Duration:
    """Raises ValueError with the field and what was given."""
    try:
        return Duration.parse(value)
    except ValueError as error:
        raise ValueError(f"{path}: {quoted(value)}: {error}") from None


def unknown_field(name: str, known: Iterable[str], path: str) -> str:
    return f"{path}.{name}: unknown field{_nearest(known_names(name, known))}"


def _nearest(known: str) -> str:
    """Only that: what is accepted follows."""
    near, mark, _ = known.partition("?")
    return f"; {near}?" if mark else ""
