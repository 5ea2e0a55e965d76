"""A value that a setting does not accept."""

from __future__ import annotations

from typing import Any

__all__ = ["WrongValue", "quoted"]


class WrongValue(Exception):
    """The value is not valid; the message says what is accepted."""


def quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"
