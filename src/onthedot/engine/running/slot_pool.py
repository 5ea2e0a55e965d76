"""The slots of one kind of target: how many runs of it this node holds and runs, and how many more it may claim.

A run takes room from its claim on, held or running, so that what is claimed can be run. A quarter more than the
capacity may be held: with four processes and four runs held for two seconds ahead, somebody's "run now" must not wait
for those two seconds. If it does take too long, the held run that finds no slot is given back.
"""

from __future__ import annotations

from collections.abc import Callable

from onthedot.engine.running.backlog_share import BacklogShare
from onthedot.engine.tuning import RECOVER_EVERY, SLOT_SOON

__all__ = ["SlotPool"]


class SlotPool:
    """Calls nobody: what gives room back says whether somebody waited for it."""

    __slots__ = (
        "_ahead",
        "_missing",
        "_recover_at",
        "_run_seconds",
        "_spare",
        "_whole",
        "backlog",
        "capabilities",
        "capacity",
        "held",
        "hold_most",
        "lacking",
        "name",
        "running",
        "sifted",
        "supplied",
        "wanted",
    )

    def __init__(
        self,
        name: str,
        capabilities: list[str],
        capacity: int,
        hold_most: int,
        ahead: Callable[[str], int] = lambda name: 0,
    ) -> None:
        self.name = name
        self._ahead = ahead
        self.capabilities = capabilities
        self.capacity = self._whole = capacity
        self.lacking: str | None = None  # what the machine has run out of, as long as the capacity is less for it
        self._recover_at = 0.0
        self.hold_most = hold_most
        self._spare = max(1, capacity // 4)
        self._run_seconds: float | None = None  # seconds a run took of late; None: not known, or they get stuck
        self.held = 0
        self.running = 0
        self.sifted = 0  # so many more are claimed as long as some slot is free: of most, others than they take it
        self.supplied = False  # what it holds lasts for a while: it claims in portions
        self.wanted = 0  # a claim waits for room for so many; 0: none does
        self._missing = 0  # not before so many came free: reckoning the room at each end was 0.5 µs a run
        self.backlog = BacklogShare()

    @property
    def room(self) -> int:
        """How many more may be claimed now: what could start at once, and what will find a slot in a moment."""
        most = self.most
        free = most - self.running + self._soon(most)
        if self.sifted and free > 0:
            return max(0, min(self.hold_most, free + self._spare + self.sifted) - self.held)
        return max(0, min(self.hold_most - self.held, free, free + self._spare - self.held))

    @property
    def has_enough(self) -> bool:
        """Whether a claim is worth it right after the last one. A target that holds runs ahead is not waiting for it,
        and claims of what has just come free would be small."""
        room = self.room
        return room > 0 and bool(self.capabilities) and (room >= self.wanted or not (self.holds_ahead or self.supplied))

    @property
    def holds_ahead(self) -> bool:
        return self.most > self.capacity

    @property
    def most(self) -> int:
        """How many may run now: the capacity, and what the target sends ahead. A worker process that gets through a
        function in 30 µs would otherwise wait for the node after each. Measured in turns: 328-399 µs of the node's CPU
        a run without, 129-144 with."""
        return self.capacity + self._ahead(self.name)

    @property
    def soon(self) -> int:
        return self._soon(self.most)

    def _soon(self, most: int) -> int:
        """How many runs the slots get through in SLOT_SOON seconds, as they went of late. Without these, what two
        worker processes finish in a moment is claimed run by run: measured at the same load, 39 runs a second instead
        of 146, and 6 ms of the database's CPU a run instead of 0.7. A target that takes calls ahead has counted them
        itself."""
        if self._run_seconds is None or most > self.capacity:
            return 0
        return min(self.hold_most, int(self.capacity * SLOT_SOON / max(self._run_seconds, 0.0005)))

    def want_more(self, portion: int | None = None) -> None:
        """More is due than fitted: a claim waits until a quarter is free, or a `portion`: not run by run."""
        most = self.most
        quarter = max(1, min(most + self._soon(most), self.hold_most) // 4)
        self.wanted = quarter if portion is None else min(portion, quarter)
        self._missing = self.wanted - self.room

    def hold(self) -> None:
        self.held += 1

    def let_go(self, run_id: str = "") -> bool:
        """A held run was given back, cancelled or dropped. Whether there is room now that was waited for."""
        self.held -= 1
        return self._gave_room(run_id)

    @property
    def has_slot(self) -> bool:
        return self.running < self.capacity or self.running < self.most

    def start(self) -> bool:
        """A held run takes its slot; False when none is free."""
        if self.running >= self.capacity and self.running >= self.most:
            return False
        self.held -= 1
        self.running += 1
        return True

    def end(self, seconds: float | None = None, run_id: str = "") -> bool:
        """A run is over; `seconds` is how long it had its slot. Whether there is room now that was waited for."""
        self.running -= 1
        if seconds is not None:
            before = seconds if self._run_seconds is None else self._run_seconds
            self._run_seconds = before + (seconds - before) / 8
        return bool(self.wanted or self.backlog.runs) and self._gave_room(run_id)

    @property
    def at_leisure(self) -> bool:
        """Whether so many slots are free that one may be taken a moment too early, or given back a moment too late."""
        return self.running * 2 < self.capacity

    def stuck(self) -> None:
        """A held run waited for a slot in vain: no more than can start at once, until it goes quickly again."""
        self._run_seconds = None

    def squeeze(self, now: float, what: str) -> bool:
        """The machine had no room for a run: half of what runs now from here on. False: that was done a moment ago."""
        if self.lacking is not None and now < self._recover_at:
            return False
        self.lacking = what
        self.capacity = max(1, min(self.capacity, self.running) // 2)
        self._recover_at = now + RECOVER_EVERY
        return True

    def recover(self, now: float) -> None:
        if self.lacking is None or now < self._recover_at:
            return
        self.capacity = min(self._whole, self.capacity + max(1, self.capacity // 4))
        self._recover_at = now + RECOVER_EVERY
        if self.capacity == self._whole:
            self.lacking = None

    def _gave_room(self, run_id: str) -> bool:
        for_backlog = bool(self.backlog.runs) and self.backlog.remove(run_id, self.most)
        if not self.wanted:
            return for_backlog
        self._missing -= 1
        if self._missing <= 0:
            self._missing = self.wanted - self.room
            if self._missing <= 0:
                self.wanted = 0
                return True
        return for_backlog
