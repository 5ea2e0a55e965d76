"""How a claim's free slots are divided, so that no kind of run starves another."""

from __future__ import annotations

from collections.abc import Sequence

from onthedot.model.run import RunKind

__all__ = ["BACKLOG_MS", "in_backlog", "on_time_share", "shares"]

BACKLOG_MS = 60_000
"""What is later than this is backlog, and does not come before what is on time."""


def shares(limit: int, wanted: Sequence[int]) -> list[int]:
    """Divide `limit` among several: nobody gets more than wanted while another lacks its fair part.

    >>> shares(1000, [1000, 10, 0])
    [990, 10, 0]
    >>> shares(900, [1000, 1000, 1000])
    [300, 300, 300]
    """
    given = [0] * len(wanted)
    left = limit
    unserved = [index for index, want in enumerate(wanted) if want > 0]
    while left > 0 and unserved:
        part = max(left // len(unserved), 1)
        for index in list(unserved):
            take = min(part, wanted[index] - given[index], left)
            given[index] += take
            left -= take
            if given[index] >= wanted[index]:
                unserved.remove(index)
    return given


def in_backlog(kind: RunKind, due: int, now: int) -> bool:
    return kind in ("backfill", "redrive") or due <= now - BACKLOG_MS


def on_time_share(limit: int) -> int:
    """How many of `limit` slots a backlog may take: half of them, rounded up so that it moves on even with one."""
    return (limit + 1) // 2
