"""Expected slots against the rows of one job."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

__all__ = ["JobVerdict", "LedgerEntry", "judge"]


class LedgerEntry(msgspec.Struct, frozen=True, gc=False):
    """A row of the ledger or of the runs that live: a slot of its own, or all from `slot` to `until`."""

    run_id: str
    slot: int
    until: int | None = None
    next: bool = False  # the row that is the job's next slot: nothing after it is decided yet


class JobVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Of one job in one interval. `waiting`: due, and the job's next run is this slot or an earlier one."""

    expected: int
    waiting: int
    missing: list[int]
    twice: list[int]

    @property
    def decided(self) -> int:
        return self.expected - self.waiting - len(self.missing)


def judge(expected: Sequence[int], entries: Iterable[LedgerEntry]) -> JobVerdict:
    """Each expected slot has exactly one row, and no slot between them has two. What is in the ledger and among the
    runs that live under one id is one row: it ended while we looked."""
    rows = {entry.run_id: entry for entry in entries}
    covered = Counter[int]()
    upcoming: int | None = None
    for entry in rows.values():
        if entry.next:
            upcoming = entry.slot
        if entry.until is None:
            covered[entry.slot] += 1
        else:
            first = bisect_left(expected, entry.slot)
            covered.update(expected[first : bisect_left(expected, entry.until + 1)])
    bare = [slot for slot in expected if not covered[slot]]
    missing = [slot for slot in bare if upcoming is None or slot < upcoming]
    low, high = (expected[0], expected[-1]) if expected else (0, -1)
    return JobVerdict(
        expected=len(expected),
        waiting=len(bare) - len(missing),
        missing=missing,
        twice=sorted(slot for slot, rows in covered.items() if rows > 1 and low <= slot <= high),
    )
