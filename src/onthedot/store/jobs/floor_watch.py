"""One node's look for jobs that a clock which was ahead carried into the future."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from onthedot import telemetry
from onthedot.model.instant import NEVER, format_instant
from onthedot.plan import SLACK_MS
from onthedot.store.driver import Driver, Row, Transaction
from onthedot.store.jobs.apply_plan import lock
from onthedot.store.jobs.floors import find_correction
from onthedot.store.jobs.rows import job_record
from onthedot.store.jobs.waiting_ahead import put_waiting_right
from onthedot.store.topic import Topic

__all__ = ["FloorWatch"]

LOOKED_AT = 50_000
"""Jobs in one look, by their key: about 20 ms of the database."""
AT_ONCE = 20
"""Jobs that are put right in one transaction: a verb on one of them waits for no more than that."""
TOLD_FOR = 3600.0
"""Seconds for which `readyz` tells of it."""


class FloorWatch(Topic):
    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._told: tuple[float, str] | None = None

    @property
    def clock_note(self) -> str | None:
        """What this process found and put right of late."""
        if self._told is None or asyncio.get_running_loop().time() - self._told[0] > TOLD_FOR:
            return None
        return self._told[1]

    async def put_floors_right(self, after: int = 0) -> tuple[int, int]:
        """Look at the jobs behind `after`, so many at once, and put right what stands in a future that has not come.
        How many jobs that were, and after which one to go on; 0: that was the last."""
        if not after:
            await self.driver.transact_slow(self._recall)
            if await put_waiting_right(self.driver):
                await self.driver.notify("due")
        found, following = await self.driver.read(lambda tx: self._candidates(tx, after))
        right: list[int] = []
        for start in range(0, len(found), AT_ONCE):
            some = found[start : start + AT_ONCE]
            right += await self.driver.transact_slow(lambda tx, some=some: self._put_right(tx, some))  # type: ignore[misc]
        if right:
            now = format_instant(await self.driver.read(lambda tx: tx.now()))
            telemetry.emit("floor.repaired", n=len(right), jobs=right[:10])
            told = f"the clock was ahead; {len(right)} jobs that it had moved into the future were repaired at {now}"
            self._told = asyncio.get_running_loop().time(), told
            await self.driver.notify("due")
        return len(right), following

    async def floors_ahead(self, limit: int = 100) -> list[int]:
        """Jobs that stand in a future that has not come, at most so many. Only looks."""

        async def body(tx: Transaction) -> list[int]:
            now, after, found = await tx.now(), 0, list[int]()
            while len(found) < limit:
                rows, after = await self._candidates(tx, after)
                for row in rows:
                    job = await tx.row("find_job", row["tenant"], row["id"])
                    cursor = await tx.row("cursor_slot", row["tenant"], row["id"])
                    slot = None if cursor is None else cursor["slot"]
                    if job is not None and await find_correction(tx, job_record(job), slot, now) is not None:
                        found.append(row["id"])
                if not after:
                    break
            return found[:limit]

        return await self.driver.read(body)

    async def _candidates(self, tx: Transaction, after: int) -> tuple[Sequence[Row], int]:
        there = await tx.row("job_after", after, LOOKED_AT)
        until = NEVER if there is None else there["id"]
        rows = await tx.rows("floors_ahead", after, until, await tx.now() + tx.lookahead + SLACK_MS)
        return rows, 0 if there is None else until

    async def _put_right(self, tx: Transaction, some: Sequence[Row]) -> list[int]:
        jobs = [await lock(tx, row["tenant"], row["id"]) for row in some]
        return [job.record.id for job in jobs if job is not None and job.set_back]

    async def _recall(self, tx: Transaction) -> None:
        """What a node took while the clock was ahead and would keep until then goes back: others need the room."""
        await tx.execute("recall_far", await tx.now() + tx.lookahead + SLACK_MS)
