"""Jobs: create, read."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.errors import NotFound, OnTheDotError, StoreUnavailable
from onthedot.model.job import JobRecord, JobView
from onthedot.store.driver import Transaction
from onthedot.store.jobs.close_one_offs import is_over
from onthedot.store.jobs.create import NewJob
from onthedot.store.jobs.create_fast import add_simple, all_simple
from onthedot.store.jobs.create_group import create_group
from onthedot.store.jobs.idempotency import KEPT, Idempotency, UsedKey, is_same, mismatch
from onthedot.store.jobs.rows import job_record
from onthedot.store.jobs.views import VIEW, job_view, no_job, read_view, read_views
from onthedot.store.shapes import Rows
from onthedot.store.topic import Topic

__all__ = ["Jobs"]


class Jobs(Topic):
    async def create_jobs(self, items: Sequence[NewJob]) -> list[JobView | OnTheDotError]:
        """Create a group of jobs in one transaction; one answer per item, in order.

        An item that can't be gets its own error (its key is taken: Conflict) and the others are written. A repeat of an
        earlier request (same idempotency) is answered with the job that one made.

        A few simple ones are one statement; else it is three for jobs without a key, however many items, and each
        further concern (keys, tags, idempotency) adds its own (ADR 0007 has the figures).
        """
        if items and self.driver.dialect == "postgres" and all_simple(items):
            return await self._with_earlier(items, await add_simple(self.driver, items))
        if any(item.spec.chained for item in items):  # they may have to wait for a sync of their tenant
            return await self.driver.transact_slow(lambda tx: create_group(tx, items))
        return await self.driver.transact(lambda tx: create_group(tx, items))

    async def _with_earlier(
        self, items: Sequence[NewJob], answers: Sequence[JobView | OnTheDotError | None]
    ) -> list[JobView | OnTheDotError]:
        """What is not answered yet repeats an earlier request. The others are written: whatever goes wrong from here on
        may not be told to them, or they would be made again."""
        repeats = [item for item, answer in zip(items, answers, strict=True) if answer is None]
        earlier: Sequence[JobView | OnTheDotError] = ()
        if repeats:
            try:
                earlier = await self.driver.transact(lambda tx: create_group(tx, repeats))
            except Exception as error:
                unread = StoreUnavailable(f"the earlier response could not be read: {error}")
                known = error if isinstance(error, OnTheDotError) else unread
                earlier = [known] * len(repeats)
        told = iter(earlier)
        return [next(told) if answer is None else answer for answer in answers]

    async def earlier_jobs(self, tenant: int, repeats: Sequence[Idempotency]) -> dict[str, JobView]:
        """The jobs that the very same requests made before, by their idempotency keys. Writes nothing."""
        asked = {repeat.key: repeat.fingerprint for repeat in repeats}

        async def body(tx: Transaction) -> dict[str, JobView]:
            rows = await tx.rows("read_idempotency", Rows([UsedKey(tenant, key) for key in asked]))
            jobs = {
                row["key"]: int(row["result"])
                for row in rows
                if is_same(row["fingerprint"], asked[row["key"]]) and row["result"].isdecimal()
            }
            views = await read_views(tx, tenant, list(jobs.values()))
            return {key: views[job_id] for key, job_id in jobs.items() if job_id in views}

        return await self.driver.read(body) if asked else {}

    async def refuse_other_bodies(self, tenant: int, repeats: Sequence[Idempotency]) -> None:
        """IdempotencyMismatch if one of these keys was used with another request. Writes nothing."""
        asked = {repeat.key: repeat.fingerprint for repeat in repeats}

        async def body(tx: Transaction) -> None:
            kept_since = await tx.now() - KEPT
            for row in await tx.rows("read_idempotency", Rows([UsedKey(tenant, key) for key in asked])):
                if not is_same(row["fingerprint"], asked[row["key"]]) and row["created_at"] > kept_since:
                    raise mismatch(row["key"].rpartition("#")[0] or row["key"])

        if asked:
            await self.driver.read(body)

    async def known_repeats(self, tenant: int, repeats: Sequence[Idempotency]) -> dict[str, bool]:
        """Which of these idempotency keys were used, and whether for the very same requests. Writes nothing."""
        asked = {repeat.key: repeat.fingerprint for repeat in repeats}

        async def body(tx: Transaction) -> dict[str, bool]:
            kept_since = await tx.now() - KEPT
            rows = await tx.rows("read_idempotency", Rows([UsedKey(tenant, key) for key in asked]))
            return {
                row["key"]: is_same(row["fingerprint"], asked[row["key"]])
                for row in rows
                if row["created_at"] > kept_since
            }

        return await self.driver.read(body) if asked else {}

    async def get_job(self, tenant: int, job_id: int) -> JobView:
        return await self.driver.read(lambda tx: read_view(tx, tenant, job_id))

    async def job_names(self, tenant: int, ids: Sequence[int]) -> dict[int, str]:
        """By id: the name, or else the key, of those that are there and have one of them."""
        rows = await self.driver.read(lambda tx: tx.rows("job_names", tenant, list(ids)))
        return {row["id"]: row["name"] for row in rows}

    async def get_job_by_key(self, tenant: int, key: str) -> JobView:
        row = await self.driver.read(lambda tx: tx.row("get_job_by_key" + VIEW, tenant, key))
        if row is None:
            raise NotFound(f"job with key {key!r} not found")
        return job_view(row)

    async def get_record(self, tenant: int, job_id: int) -> JobRecord:
        async def body(tx: Transaction) -> JobRecord:
            row = await tx.row("find_job", tenant, job_id)
            if row is None:
                raise no_job(job_id)
            record = job_record(row)
            if is_over(record, scheduled=False) and await tx.row("scheduled_run", job_id) is None:
                return msgspec.structs.replace(record, state="ended")
            return record

        return await self.driver.read(body)

    async def cursor_slot(self, tenant: int, job_id: int) -> int | None:
        """The slot that a job fires next, whatever its state."""
        row = await self.driver.read(lambda tx: tx.row("cursor_slot", tenant, job_id))
        return None if row is None else int(row["slot"])

    async def timer_left(self, tenant: int, job_id: int) -> int:
        """Milliseconds until it is due; 0 from then on, whether it has fired yet or not."""
        row = await self.driver.read(lambda tx: tx.row("timer_left", tenant, job_id))
        if row is None:
            raise NotFound(f"timer {job_id} not found")
        return max(0, row["left_ms"] or 0)
