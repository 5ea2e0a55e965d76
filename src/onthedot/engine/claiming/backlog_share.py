"""How many of a pool's slots the backlog has: what comes over a minute late, is filled in or driven anew.

Of each claim it may take half. But claim by claim half of what is free becomes all there is, if its runs take long:
what was on time then found no slot, waited and went to another node (165 ms late in the simulation, seed 710). So a
quarter of the slots is never the backlog's, and of two slots it has one.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["BacklogShare"]


class BacklogShare:
    __slots__ = ("_freed", "_runs", "_slots", "waits")

    def __init__(self, slots: Callable[[], int], freed: Callable[[], None]) -> None:
        """`freed`: whom to tell that the backlog may have more, after it could not have all it might."""
        self._slots = slots
        self._freed = freed
        self._runs: set[str] = set()
        self.waits = False  # for room of its own

    @property
    def _most(self) -> int:
        return max(1, self._slots() * 3 // 4)

    def room(self, wanted: int) -> int:
        """How many of `wanted` a claim may bring."""
        room = max(0, self._most - len(self._runs))
        self.waits = room < wanted
        return min(room, wanted)

    def add(self, run_id: str) -> None:
        self._runs.add(run_id)

    def remove(self, run_id: str) -> None:
        """Whichever run of the pool is over. Told once a quarter of the room is free, not run by run."""
        if not self._runs:
            return
        self._runs.discard(run_id)
        if self.waits and len(self._runs) <= self._most * 3 // 4:
            self.waits = False
            self._freed()
