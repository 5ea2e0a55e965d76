"""What came of making the jobs of one source what it says."""

from __future__ import annotations

import msgspec

__all__ = ["SyncReport"]


class SyncReport(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of the jobs that were (or, in a dry run, would be) created, updated, left alone, removed."""

    created: list[str]
    updated: list[str]
    unchanged: list[str]
    removed: list[str]
