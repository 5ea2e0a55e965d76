"""How much this node can run: webhooks by CONCURRENCY, functions and commands by FUNCTION_PROCESSES.

A run takes room from its claim on, held or running, so that what is claimed can be run. A quarter more than the
capacity may be held: with four processes and four runs held for two seconds ahead, somebody's "run now" must not wait
for those two seconds. If it does take too long, the held run that finds no slot is given back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from onthedot.engine.claiming.backlog_share import BacklogShare

__all__ = ["QUICK", "RECOVER", "Capacity", "SlotPool", "pool_of"]

QUICK = 0.05
"""Half of the time that a held run waits for a slot before it is given back."""
RECOVER = 1.0
"""Seconds after a lack until a pool that was made smaller grows again, by a quarter each time; and until another lack
makes it smaller once more: hundreds of runs meet the same one together."""


def pool_of(offer: str) -> str:
    """Which room a run takes: "function:reports" → "function"."""
    return offer.partition(":")[0]


class SlotPool:
    """The slots of one kind of target."""

    __slots__ = (
        "_ahead",
        "_missing",
        "_pace",
        "_recover_at",
        "_spare",
        "_whole",
        "backlog",
        "calm",
        "capacity",
        "freed",
        "held",
        "hold_most",
        "lacking",
        "name",
        "offers",
        "running",
        "wanted",
    )

    def __init__(
        self,
        name: str,
        offers: list[str],
        capacity: int,
        hold_most: int,
        freed: Callable[[], None],
        ahead: Callable[[str], int] = lambda name: 0,
    ) -> None:
        self.name = name
        self._ahead = ahead
        self.offers = offers
        self.capacity = self._whole = capacity
        self.lacking: str | None = None  # what the machine has run out of, as long as the capacity is less for it
        self._recover_at = 0.0
        self.hold_most = hold_most
        self._spare = max(1, capacity // 4)
        self._pace: float | None = None  # seconds a run took of late; None: not known, or they get stuck
        self.held = 0
        self.running = 0
        self.calm = False  # what it holds lasts for a while: it claims in portions
        self.wanted = 0  # ring when there is room for so many; 0: nobody waits
        self._missing = 0  # not before so many came free: reckoning the room at each end was 0.5 µs a run
        self.freed = freed
        self.backlog = BacklogShare(lambda: self.most, lambda: self.freed())

    @property
    def room(self) -> int:
        """How many more may be claimed now: what could start at once, and what will find a slot in a moment."""
        most = self.most
        free = most - self.running + self._soon(most)
        return max(0, min(self.hold_most - self.held, free, free + self._spare - self.held))

    @property
    def has_enough(self) -> bool:
        """Whether a claim is worth it right after the last one. A target that holds runs ahead is not waiting for it,
        and claims of what has just come free would be small."""
        room = self.room
        return room > 0 and bool(self.offers) and (room >= self.wanted or not (self.holds_ahead or self.calm))

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
        """How many runs the slots get through in QUICK seconds, as they went of late. Without these, what two worker
        processes finish in a moment is claimed run by run: measured at the same load, 39 runs a second instead of 146,
        and 6 ms of the database's CPU a run instead of 0.7. A target that takes calls ahead has counted them itself."""
        if self._pace is None or most > self.capacity:
            return 0
        return min(self.hold_most, int(self.capacity * QUICK / max(self._pace, 0.0005)))

    def want_more(self, portion: int | None = None) -> None:
        """More is due than fitted: ring once a quarter is free, rather than claim run by run; or a `portion`."""
        most = self.most
        quarter = max(1, min(most + self._soon(most), self.hold_most) // 4)
        self.wanted = quarter if portion is None else min(portion, quarter)
        self._missing = self.wanted - self.room

    def hold(self) -> None:
        self.held += 1

    def let_go(self, run_id: str = "") -> None:
        """A held run was given back, cancelled or dropped."""
        self.held -= 1
        self.backlog.remove(run_id)
        self._ring()

    def start(self) -> bool:
        """A held run takes its slot; False when none is free."""
        if self.running >= self.capacity and self.running >= self.most:
            return False
        self.held -= 1
        self.running += 1
        return True

    def end(self, seconds: float | None = None, run_id: str = "") -> None:
        """A run is over; `seconds` is how long it had its slot."""
        self.running -= 1
        self.backlog.remove(run_id)
        if seconds is not None:
            self._pace = seconds if self._pace is None else self._pace + (seconds - self._pace) / 8
        if self.wanted:
            self._ring()

    @property
    def at_leisure(self) -> bool:
        """Whether so many slots are free that one may be taken a moment too early, or given back a moment too late."""
        return self.running * 2 < self.capacity

    def stuck(self) -> None:
        """A held run waited for a slot in vain: no more than can start at once, until it goes quickly again."""
        self._pace = None

    def squeeze(self, now: float, what: str) -> bool:
        """The machine had no room for a run: half of what runs now from here on. False: that was done a moment ago."""
        if self.lacking is not None and now < self._recover_at:
            return False
        self.lacking = what
        self.capacity = max(1, min(self.capacity, self.running) // 2)
        self._recover_at = now + RECOVER
        return True

    def recover(self, now: float) -> None:
        if self.lacking is None or now < self._recover_at:
            return
        self.capacity = min(self._whole, self.capacity + max(1, self.capacity // 4))
        self._recover_at = now + RECOVER
        if self.capacity == self._whole:
            self.lacking = None

    def _ring(self) -> None:
        if not self.wanted:
            return
        self._missing -= 1
        if self._missing > 0:
            return
        self._missing = self.wanted - self.room
        if self._missing <= 0:
            self.wanted = 0
            self.freed()


class Capacity:
    def __init__(
        self,
        offers: Iterable[str],
        *,
        capacities: dict[str, int],
        default: int,
        hold_most: int,
        freed: Callable[[], None] = lambda: None,
        ahead: Callable[[str], int] = lambda name: 0,
    ) -> None:
        """`ahead`: how many more than its capacity a kind takes at this moment."""
        self.pools: dict[str, SlotPool] = {}
        self._capacities = capacities
        self._default = default
        self._hold_most = hold_most
        self._freed = freed
        self._ahead = ahead
        self._offers: Sequence[str] = ()
        self.offer(list(offers))

    def offer(self, offers: Sequence[str]) -> bool:
        """What the node can run now; whether that has changed. A program may register functions while it runs, and a
        jobs file may name new ones. A pool whose offers are gone stays: what it runs must be counted to its end."""
        if offers == self._offers:
            return False
        self._offers = offers
        grouped: dict[str, list[str]] = {name: [] for name in self.pools}
        for offer in offers:
            grouped.setdefault(pool_of(offer), []).append(offer)
        for name, members in grouped.items():
            if name not in self.pools:
                capacity = self._capacities.get(name, self._default)
                self.pools[name] = SlotPool(name, members, capacity, self._hold_most, self._freed, self._ahead)
            self.pools[name].offers = members
        return True

    def on_freed(self, freed: Callable[[], None]) -> None:
        """Whom to tell when a pool that is waited for has room again."""
        self._freed = freed
        for pool in self.pools.values():
            pool.freed = freed

    def of(self, target_type: str) -> SlotPool:
        """A job may have got a target of another kind since the claim looked: it must be counted somewhere."""
        return self.pools.get(target_type) or next(iter(self.pools.values()))

    @property
    def capacity(self) -> int:
        return sum(pool.capacity for pool in self.pools.values() if pool.offers)

    @property
    def lacking(self) -> str | None:
        """What this machine has run out of, and how much less runs for it; None: nothing."""
        return (
            "; ".join(
                f"{pool.lacking}: {pool.capacity} {pool.name}s at a time"
                for pool in self.pools.values()
                if pool.lacking is not None
            )
            or None
        )

    @property
    def held(self) -> int:
        return sum(pool.held for pool in self.pools.values())

    @property
    def running(self) -> int:
        return sum(pool.running for pool in self.pools.values())
