"""The look before a claim: is there anything to claim, where, and if not, when to look again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from onthedot.store.driver import Driver, Row
from onthedot.store.shapes import Rows, Shape
from onthedot.store.topic import Topic

__all__ = ["Floor", "Looks", "Seen", "margins", "recent"]

T = TypeVar("T")

REMEMBERED = 256
"""Sets of offers of which something is known from the last look."""

_NOTHING = 2**62  # ms: everything is due within them


class Offered(Shape, frozen=True):
    """What a node offers, and the number of the pool that would run it."""

    requires: str
    pool: int


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a look saw for one pool: where there is something to claim, and when to look again if there is not."""

    now: int
    free: bool = False
    cursors: bool = False
    lanes: bool = False
    next_ready: int | None = None
    floor: int = 0
    unbounded: bool = False
    frozen: bool = False  # all is paused: there may be something that was asked for by hand
    thawed_at: int | None = None  # when that was last over

    @property
    def nothing(self) -> bool:
        return not (self.frozen or self.free or self.cursors or self.lanes)


class Floor:
    """From where on a claim looks at `ready_at`: 30 s before the oldest run that there was.

    It spares the scan the dead entries that a long snapshot keeps at the head of the index. One look a second goes
    without it, so that nothing below stays unseen. What such a look left behind counts like what it took: a backlog
    that had no room was else below the floor, and its share of the slots lay idle for most of each second.
    """

    TRAIL = 30_000
    GAP = 1.0

    def __init__(self) -> None:
        self._floor = 0
        self._looked_at: float | None = None

    def begin(self, monotonic: float) -> tuple[int, bool]:
        """The floor for this claim, and whether it looks without one."""
        if self._looked_at is None or monotonic - self._looked_at >= self.GAP:
            self._looked_at = monotonic
            return 0, True
        return self._floor, False

    def forget(self) -> None:
        """The clock was set back behind it: the next look goes without."""
        self._floor, self._looked_at = 0, None

    def end(self, ready: Iterable[int], now: int) -> None:
        """After a look without floor, which saw runs that were ready then: where the next ones begin."""
        self._floor = min(ready, default=now) - self.TRAIL


class Looks(Topic):
    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._floors: dict[tuple[str, ...], Floor] = {}

    async def look(
        self, pools: Sequence[Sequence[str]], *, level: int, lookahead_ms: int, within_ms: int | None = None
    ) -> list[Seen]:
        """What there is to claim for each of these pools of offers: one statement, without a transaction. `within_ms`:
        what is ready ahead of its time is left until one is due so soon."""
        now = asyncio.get_running_loop().time()
        floors = [recent(self._floors, tuple(offers), Floor()) for offers in pools]
        begun = [floor.begin(now) for floor in floors]
        lowest = min(bound for bound, _ in begun)
        offered = Rows([Offered(offer, number) for number, offers in enumerate(pools) for offer in offers])
        soon, leave = margins(lookahead_ms, within_ms)
        rows = await self.driver.read(lambda tx: tx.rows("peek", level, soon, lowest, leave, offered), watched=True)
        of_pool = {row["pool"]: row for row in rows}
        seen = [_seen(of_pool[number], *floor) for number, floor in enumerate(begun)]
        for floor, there in zip(floors, seen, strict=True):
            if there.floor > there.now:
                floor.forget()
            elif there.unbounded and there.nothing:
                floor.end((), there.now)
        return seen


def recent(memory: dict[tuple[str, ...], T], key: tuple[str, ...], new: T) -> T:
    """What is remembered of these offers, or `new`. What was not asked for of late is forgotten: offers that name a
    destination may be any number."""
    found = memory.pop(key, new)
    memory[key] = found
    if len(memory) > REMEMBERED:
        del memory[next(iter(memory))]
    return found


def margins(lookahead_ms: int, within_ms: int | None) -> tuple[int, int]:
    """How soon a run that may be held ahead is looked for, and within how long one must be due lest all are left."""
    return (lookahead_ms // 2, _NOTHING) if within_ms is None else (within_ms, within_ms)


def _seen(row: Row, floor: int, unbounded: bool) -> Seen:
    return Seen(
        now=row["now"],
        free=bool(row["free"]),
        cursors=bool(row["cursors"]),
        lanes=bool(row["lanes"]),
        next_ready=row["next"],
        floor=floor,
        unbounded=unbounded and not row["frozen"],  # nothing is claimed that could say where the next ones begin
        frozen=bool(row["frozen"]),
        thawed_at=row["thawed_at"],
    )
