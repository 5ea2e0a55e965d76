"""What came of making the jobs of one source what it says."""

from __future__ import annotations

import msgspec

__all__ = ["SyncReport"]


class SyncReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Keys of the jobs that were (or, in a dry run, would be) created, updated, left alone, removed.

    `adopted`: taken over from another source (and among the updated or unchanged, too). `kept`: of this source, not in
    the file any more, and not removed. `held`: in the file, but somebody else's, and left as they are: key → whose.
    """

    created: list[str]
    updated: list[str]
    unchanged: list[str]
    removed: list[str]
    adopted: list[str] = msgspec.field(default_factory=list)
    kept: list[str] = msgspec.field(default_factory=list)
    held: dict[str, str] = msgspec.field(default_factory=dict)
