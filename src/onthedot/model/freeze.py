"""The whole installation is paused."""

from __future__ import annotations

import msgspec

__all__ = ["Freeze"]


class Freeze(msgspec.Struct, frozen=True, kw_only=True):
    """Since when no scheduled run starts, why, and who wanted that."""

    since: str
    note: str | None
    by: str | None
