"""Pauses that end by themselves, at an instant of the database's clock."""

from __future__ import annotations

import msgspec

from onthedot import telemetry
from onthedot.plan import on_resume
from onthedot.store.driver import Transaction
from onthedot.store.jobs.apply_plan import apply_change, lock
from onthedot.store.topic import Topic

__all__ = ["Pauses"]

MOST = 100


class Pauses(Topic):
    async def resume_due(self) -> int | None:
        """Jobs whose pause is over go on. Milliseconds until the next one is; None: none ends by itself."""
        rows = await self.driver.read(lambda tx: tx.rows("pauses_over", MOST))
        for row in rows:
            if row["pause_until"] > row["now"]:
                return int(row["pause_until"] - row["now"])
            await self._resume(row["tenant"], row["id"])
        return 0 if len(rows) == MOST else None

    async def _resume(self, tenant: int, job_id: int) -> None:
        """As of that instant, not of this moment: what came due since, while the nodes were away or on their way to
        notice, is the job's like any other slot, and follows its catch-up policy."""

        async def body(tx: Transaction) -> bool:
            job = await lock(tx, tenant, job_id)
            until = None if job is None else job.record.pause_until
            if job is None or until is None or job.record.state != "paused" or until > job.now:
                return False
            change = on_resume(job.record, job.cursor_slot, until, job.taken)
            resumed = msgspec.structs.replace(job.record.spec, paused=False)
            await apply_change(tx, job, resumed, change, verb="resume")
            return True

        if await self.driver.transact_slow(body):
            telemetry.emit("job.changed", tenant=tenant, job_id=job_id)
            await self.driver.notify("due")
