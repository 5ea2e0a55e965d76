"""Runs that wait for a destination: it has as many open calls of a node as it may, or its breaker is open there; or for
a slot, because their job or tenant has its share of a node's workers.

What a claim brought goes back before it is begun: pending, with the same token, no try counted and due when it was.
Until a node has room there, it requires the destination too (see `model.destination`): so no node claims it with the
others, and each finds by hopping through an index what is waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from onthedot.model.destination import DestinationLoad
from onthedot.store.driver import Driver, Transaction
from onthedot.store.runs.orders import put_back
from onthedot.store.runs.spec_cache import SpecCache
from onthedot.store.shapes import Rows, Shape
from onthedot.store.topic import Topic

__all__ = ["DestinationCount", "DestinationWaits", "TurnedAway", "WaitingSeen", "WaitsFor"]

RELEASED = 1000
"""Runs that expired while they waited, in one transaction."""

_LOADS = msgspec.json.Decoder(list[DestinationLoad])


WaitsFor = Literal["destination", "slot"]


class TurnedAway(msgspec.Struct, frozen=True, kw_only=True):
    """A run that a node holds and that has to wait for its destination or its share. `version`: of the job, as it was
    claimed."""

    run_id: str
    token: int
    version: int
    requires: str
    until: int | None = None  # when it expires
    waiting: WaitsFor = "destination"


class WaitingRun(Shape, frozen=True):
    id: str
    version: int
    requires: str
    until: int | None
    waiting: str


class WaitingSeen(msgspec.Struct, frozen=True, kw_only=True):
    """`requires`: what runs that wait require, in order. `expired`: some of them should not wait any longer."""

    requires: list[str]
    expired: bool


class DestinationCount(msgspec.Struct, frozen=True, kw_only=True):
    requires: str
    waiting: int
    since: int | None


class DestinationWaits(Topic):
    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._present_jobs = SpecCache()

    async def wait_for_destinations(self, node: str, runs: Sequence[TurnedAway]) -> None:
        """They go back, and wait; or they end, if their job is gone or paused, or its schedule has that slot no more.
        Those whose job was changed since the claim go back as they came: they may have another destination."""
        if not runs:
            return

        async def body(tx: Transaction) -> None:
            back = {run.id for run in await put_back(tx, self._present_jobs, node, [(r.run_id, r.token) for r in runs])}
            rows = [WaitingRun(r.run_id, r.version, r.requires, r.until, r.waiting) for r in runs if r.run_id in back]
            if rows:
                await tx.rows("wait_for_destination", Rows(rows))

        await self.driver.transact_slow(body)

    async def waited_for(self, ranges: Sequence[tuple[str, str]], most: int) -> WaitingSeen:
        """What is required between these bounds by runs that wait: no more than so many of each range."""

        async def body(tx: Transaction) -> WaitingSeen:
            found = set[str]()
            for low, high in ranges:
                here = set[str]()
                for kind in ("free", "lane"):
                    rows = await tx.rows(f"waited_for+where.{kind}_runs", low, high, most)
                    here |= {row["requires"] for row in rows}
                found |= set(sorted(here)[:most])
            expired = await tx.rows("any_expired_waiting")
            return WaitingSeen(requires=sorted(found), expired=bool(expired))

        return await self.driver.read(body, watched=True)

    async def release_expired_waiting(self) -> int:
        """What expired while it waited is claimed with all others from now on, and then ends. How many it were."""
        return await self.driver.transact_slow(lambda tx: tx.execute("release_expired_waiting", RELEASED))

    async def count_waiting(self, requires: Sequence[str]) -> list[DestinationCount]:
        """How many runs wait for each of these."""
        rows = await self.driver.read(lambda tx: tx.rows("count_waiting", list(requires)))
        return [DestinationCount(requires=r["requires"], waiting=r["waiting"], since=r["since"]) for r in rows]

    async def destinations_of_nodes(self) -> dict[str, list[DestinationLoad]]:
        """What the live nodes said of their destinations with their last beats."""
        rows = await self.driver.read(lambda tx: tx.rows("destinations_of_nodes"))
        return {row["id"]: _LOADS.decode(row["destinations"]) for row in rows}
