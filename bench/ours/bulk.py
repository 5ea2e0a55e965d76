"""A bulk pause of many jobs, and whether it makes others late: a server of its own process does both."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import asyncpg

from bench.contest import quantiles
from bench.ours.arrivals import arriving
from bench.ours.parts import opened, spec, webhooks
from bench.ours.seeding import FIRST, SOON, copy_jobs, indexes_later, settled
from bench.ours.serving import serving
from onthedot.model.bulk import BulkFilter, BulkRequest
from onthedot.service import DEFAULT_TENANT, Service

__all__ = ["bulk_pause"]

CALM = 10
"""Seconds of firings before the pause begins, to compare with."""
_TAGS = "INSERT INTO job_tags (tenant, tag, job_id) SELECT $1, 'bulk', g FROM generate_series($2::bigint, $3) g"


async def bulk_pause(store: str, jobs: int, rate: int, seconds: int, calm: int = CALM) -> dict[str, Any]:
    """Of `jobs`, while `rate` others fire each second: for `calm` seconds before, and `seconds` in all."""
    async with arriving() as arrivals, opened(store, webhooks()) as (opened_store, service):
        await _many(store, service, jobs)
        async with serving(store, "api,executor"):
            base = await arrivals.expect(service, rate, seconds)
            await asyncio.sleep(base / 1000 + calm - time.time())
            began = time.time() * 1000
            asked = BulkRequest(verb="pause", filter=BulkFilter(tag="bulk"))
            operation = await service.start_operation(DEFAULT_TENANT, asked)
            await opened_store.notify("operations")
            while not operation.has_ended:
                await asyncio.sleep(0.1)
                operation = await service.get_operation(DEFAULT_TENANT, operation.id)
            ended = time.time() * 1000
            await arrivals.all_of(rate * seconds)
    assert (operation.state, operation.done) == ("done", jobs), operation
    before, busy = quantiles(arrivals.between(base + 1000, began)), quantiles(arrivals.between(began, ended))
    return {
        "seconds": (ended - began) / 1000,
        "rate": jobs / (ended - began) * 1000,
        "late_ms": busy,
        "calm_ms": before,
        "to_calm": busy["p99"] / before["p99"],
    }


async def _many(store: str, service: Service, jobs: int) -> None:
    pattern = await service.create_job(DEFAULT_TENANT, spec({"every": "1d"}, SOON, tags=["bulk"]))
    connection = await asyncpg.connect(store)
    async with indexes_later(connection, ["jobs", "runs", "job_tags"], jobs):
        await copy_jobs(connection, pattern.id, FIRST, jobs - 1, {})
        await connection.execute(_TAGS, DEFAULT_TENANT, FIRST, FIRST + jobs - 2)
    await settled(connection)
    await connection.close()
