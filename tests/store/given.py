"""What the store's tests start from: specs in one line, rows as they are, runs that a node holds."""

from __future__ import annotations

from typing import Any

from onthedot.errors import OnTheDotError
from onthedot.model.decoding import convert
from onthedot.model.job import JobSpec, JobView
from onthedot.store import Idempotency, NewJob, Store
from onthedot.store.driver import Transaction

HOUR = 3_600_000
DAY = 24 * HOUR
HOURLY = {"cron": "0 * * * *"}


def spec(**fields: Any) -> JobSpec:
    """A job that POSTs somewhere each hour, unless told otherwise."""
    plain = {"schedule": HOURLY, "target": {"type": "webhook", "url": "https://example.com/hook"}}
    return convert({**plain, **fields}, JobSpec)


def new(tenant: int = 1, idempotency: Idempotency | None = None, source: str | None = None, **fields: Any) -> NewJob:
    return NewJob(tenant=tenant, spec=spec(**fields), idempotency=idempotency, source=source)


async def create(store: Store, tenant: int = 1, **fields: Any) -> JobView:
    (answer,) = await store.create_jobs([new(tenant, **fields)])
    assert not isinstance(answer, OnTheDotError), answer
    return answer


async def change(store: Store, job: JobView, tenant: int = 1, if_match: int | None = None, **fields: Any) -> JobView:
    """PUT: the whole spec anew."""
    return await store.update_job(tenant, job.id, lambda _: spec(**fields), if_match=if_match)


async def fetch(store: Store, sql: str) -> list[dict[str, Any]]:
    async def body(tx: Transaction) -> list[dict[str, Any]]:
        return [dict(row) for row in await tx.sql(sql)]

    return await store.driver.read(body)


async def execute(store: Store, sql: str) -> None:
    async def body(tx: Transaction) -> None:
        await tx.sql(sql)

    await store.driver.transact_slow(body)


async def runs_of(store: Store, job: JobView) -> list[dict[str, Any]]:
    return await fetch(store, f"SELECT * FROM runs WHERE job_id = {job.id} ORDER BY slot, id")


async def cursor_of(store: Store, job: JobView) -> dict[str, Any]:
    (row,) = [row for row in await runs_of(store, job) if row["cursor"]]
    return row


async def history_of(store: Store, job: JobView) -> list[dict[str, Any]]:
    return await fetch(store, f"SELECT * FROM history WHERE job_id = {job.id} ORDER BY slot, id")


async def hold(store: Store, run_id: str, *, cursor: bool = False) -> None:
    """A node claimed it. For a cursor that a verb must not find any more: cursor=False."""
    flag = "true" if cursor else "false"
    await execute(
        store,
        f"UPDATE runs SET state = 'running', node = 'n1', token = token + 1, cursor = {flag} WHERE id = '{run_id}'",
    )


async def retrying(store: Store, run_id: str, ready_at: int) -> None:
    """It was tried once and waits for its next try."""
    await execute(
        store,
        f"UPDATE runs SET state = 'pending', node = NULL, token = 1, tries = 1, cursor = false, ready_at = {ready_at} "
        f"WHERE id = '{run_id}'",
    )
