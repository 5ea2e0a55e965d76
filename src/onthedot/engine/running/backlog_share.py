"""How many of a pool's slots the backlog has: what comes over a minute late, is filled in or driven anew.

Of each claim it may take half. But claim by claim half of what is free becomes all there is, if its runs take long:
what was on time then found no slot, waited and went to another node (165 ms late in the simulation, seed 710). So a
quarter of the slots is never the backlog's, and of two slots it has one.
"""

from __future__ import annotations

__all__ = ["BacklogShare"]


class BacklogShare:
    """`slots` is always how many the pool has at that moment."""

    __slots__ = ("runs", "waits")

    def __init__(self) -> None:
        self.runs: set[str] = set()
        self.waits = False  # for room of its own: it could not have all it might

    def room(self, wanted: int, slots: int) -> int:
        """How many of `wanted` a claim may bring."""
        room = max(0, _most(slots) - len(self.runs))
        self.waits = room < wanted
        return min(room, wanted)

    def add(self, run_id: str) -> None:
        self.runs.add(run_id)

    def remove(self, run_id: str, slots: int) -> bool:
        """Whichever run of the pool is over. Whether the backlog may have more now, after it waited for it: once a
        quarter of its room is free, not run by run."""
        self.runs.discard(run_id)
        if not self.waits or len(self.runs) > _most(slots) * 3 // 4:
            return False
        self.waits = False
        return True


def _most(slots: int) -> int:
    return max(1, slots * 3 // 4)
