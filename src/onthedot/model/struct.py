"""What all structs that come from outside have in common: frozen, no unknown fields."""

from __future__ import annotations

import msgspec

__all__ = ["Strict"]


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A struct that is decoded strictly: an unknown field is an error, not a shrug."""
