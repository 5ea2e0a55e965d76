"""Which firings a change adds, moves and removes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.plan.future import ToCome

__all__ = ["SlotDifference", "compare"]

MOST = 10_000
"""Slots of a job that are compared."""


class SlotDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Up to `until`."""

    until: int
    added: list[int]
    moved: list[tuple[int, int]]
    removed: list[int]


def compare(before: ToCome | None, after: ToCome | None, since: int, until: int) -> SlotDifference:
    """The firings in since … until of a job before a change and after it; None: there is no such job."""
    old, new = _slots(before, since, until), _slots(after, since, until)
    end = min([until, *(slots[-1] for slots in (old, new) if len(slots) >= MOST)])
    gone = {slot for slot in old if slot <= end}.difference(new)
    come = {slot for slot in new if slot <= end}.difference(old)
    moved = _pairs(sorted(gone), sorted(come))
    return SlotDifference(
        until=end,
        added=sorted(come - {slot for _, slot in moved}),
        moved=moved,
        removed=sorted(gone - {slot for slot, _ in moved}),
    )


def _slots(of: ToCome | None, since: int, until: int) -> list[int]:
    found: list[int] = []
    if of is not None:
        for slot in of.after(since - 1):
            if slot > until or len(found) >= MOST:
                break
            found.append(slot)
    return found


def _pairs(gone: Sequence[int], come: Sequence[int]) -> list[tuple[int, int]]:
    """One that is gone and one that has come, with no other between them: the first of each, in order of time."""
    all_of_them = sorted([*((slot, True) for slot in gone), *((slot, False) for slot in come)])
    pairs: list[tuple[int, int]] = []
    place = 0
    while place + 1 < len(all_of_them):
        (one, left), (other, also_left) = all_of_them[place], all_of_them[place + 1]
        if left == also_left:
            place += 1
            continue
        pairs.append((one, other) if left else (other, one))
        place += 2
    return pairs
