"""A bulk pause of many jobs, and whether it makes others late."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import asyncpg

from bench.contest import in_time, quantiles
from bench.ours.parts import create, in_process, opened, running, spec
from bench.ours.seeding import FIRST, copy_jobs, indexes_later, settled
from onthedot.model.bulk import BulkFilter, BulkRequest
from onthedot.service import DEFAULT_TENANT

__all__ = ["bulk_pause"]

CALM = 10
"""Seconds of firings before the pause begins, to compare with."""


async def bulk_pause(store: str, jobs: int, rate: int, seconds: int) -> dict[str, Any]:
    """Of `jobs`, while `rate` others fire each second: for `CALM` seconds before, and `seconds` in all."""
    late: list[tuple[float, float]] = []

    async def note(due_ms: float) -> None:
        now = time.time()
        late.append((now, now * 1000 - due_ms))

    targets = in_process(note=note)
    function = {"type": "function", "function": "note"}
    async with opened(store, targets) as (opened_store, service):
        pattern = await service.create_job(DEFAULT_TENANT, spec({"every": "1d"}, function, tags=["bulk"]))
        connection = await asyncpg.connect(store)
        async with indexes_later(connection, ["jobs", "runs", "job_tags"], jobs):
            await copy_jobs(connection, pattern.id, FIRST, jobs - 1, {})
            await connection.execute(
                "INSERT INTO job_tags (tenant, tag, job_id) "
                "SELECT $1, 'bulk', g FROM generate_series($2::bigint, $3) g",
                DEFAULT_TENANT,
                FIRST,
                FIRST + jobs - 2,
            )
        await settled(connection)
        await connection.close()
        base = int(time.time() + 5 + rate * seconds / 1000)
        dues = [base * 1000 + n * 1000 // rate for n in range(rate * seconds)]
        instants = (
            time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(due // 1000)) + f".{due % 1000:03d}Z" for due in dues
        )
        await create(
            service,
            (spec({"at": at}, function, params={"due_ms": due}) for at, due in zip(instants, dues, strict=True)),
        )
        in_time(base, 1.0)
        async with running(opened_store, targets):
            await asyncio.sleep(base + CALM - time.time())
            began = time.time()
            asked = BulkRequest(verb="pause", filter=BulkFilter(tag="bulk"))
            operation = await service.start_operation(DEFAULT_TENANT, asked)
            while operation.state == "running":
                await asyncio.sleep(0.1)
                operation = await service.get_operation(DEFAULT_TENANT, operation.id)
            ended = time.time()
            await asyncio.sleep(1)
    calm = quantiles([ms for at, ms in late if base + 1 < at < began])
    busy = quantiles([ms for at, ms in late if began <= at <= ended])
    assert (operation.state, operation.done) == ("done", jobs), operation
    return {
        "seconds": ended - began,
        "rate": jobs / (ended - began),
        "late_ms": busy,
        "calm_ms": calm,
        "to_calm": busy["p99"] / calm["p99"],
    }
