"""Pausing the whole installation: one row, which every claim reads.

While it is there, a claim takes nothing but runs that were asked for by hand, and a node is told to give back what it
holds and has not begun: the orders of `orders.sql` say so for as long as it lasts, so a claim that was under way when
the row was written is found too. Jobs and runs are not touched, however many there are, and what is created or changed
meanwhile needs no care. When it is over, the first claim of a job's cursor writes the slots that passed as one range
row, `paused`, as the resume of a job does (`plan.claim`); one-off runs, retries and backfills go on.
"""

from __future__ import annotations

from onthedot.model.freeze import Freeze
from onthedot.model.instant import format_instant
from onthedot.store.abandoned_requests import acting
from onthedot.store.driver import Transaction
from onthedot.store.jobs.audit_log import write_audit
from onthedot.store.jobs.idempotency import Idempotency, once
from onthedot.store.topic import Topic

__all__ = ["Freezes", "read_freeze"]


class Freezes(Topic):
    async def freeze(self, tenant: int, note: str | None, *, idempotency: Idempotency | None = None) -> Freeze:
        """Pause everything. If it is paused already, the note is replaced, if one is given."""

        async def pause(tx: Transaction) -> Freeze:
            who, now = acting(), await tx.now()
            before = await read_freeze(tx)
            if before is None:
                await tx.execute("begin_freeze", now, note, who.name)
            elif note is not None:
                await tx.execute("note_freeze", note, who.name)
            else:
                return before
            await write_audit(tx, "freeze", tenant, now, summary=note)
            after = await read_freeze(tx)
            assert after is not None
            return after

        return await self.as_asked(lambda tx: once(tx, tenant, idempotency, Freeze, lambda: pause(tx)))

    async def unfreeze(self, tenant: int, *, idempotency: Idempotency | None = None) -> bool:
        """Whether it was paused."""

        async def resume(tx: Transaction) -> bool:
            now = await tx.now()
            if not await tx.execute("end_freeze", now):
                return False
            await write_audit(tx, "unfreeze", tenant, now)
            return True

        return await self.as_asked(lambda tx: once(tx, tenant, idempotency, bool, lambda: resume(tx)))

    async def current_freeze(self) -> Freeze | None:
        return await self.driver.read(read_freeze)


async def read_freeze(tx: Transaction) -> Freeze | None:
    row = await tx.row("current_freeze")
    return None if row is None else Freeze(since=format_instant(row["began_at"]), note=row["note"], by=row["actor"])
