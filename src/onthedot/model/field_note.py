"""What one field means, and an example of it."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["FieldNote"]


class FieldNote(msgspec.Struct, frozen=True):
    """The example is a fragment that fits into the object the field belongs to; it names further fields where one alone
    would not be valid. None: the field can't be used yet."""

    meaning: str
    example: dict[str, Any] | None = None
