"""Work that goes on without a node: what a try of a run has started outside, and where."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["Work"]


class Work(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Recorded before anything is started, so that whoever comes later knows what to look for. Times in ms, on the
    database's clock."""

    target: dict[str, Any]  # as it was started: the job may have been changed since. Empty: it need not be found
    try_number: int
    place: str  # where it can be reached: an engine, a cluster and namespace, an account and region
    started_at: int | None = None
    lateness_ms: int | None = None
    outdated: bool = (
        False  # never stored: the job has another target now, so what was not started of this is not started
    )
    accepted: dict[str, Any] | None = None  # what the receiver of a call answered that will tell later how it ended
