"""A bulk pause of many jobs, and whether it makes others late: `python -m bench.bulk [JOBS] [FIRINGS A SECOND]`."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time

import asyncpg

from bench.ours.parts import create, in_process, opened, running, spec
from bench.ours.seeding import FIRST, copy_jobs, indexes_later, settled
from onthedot.model.bulk import BulkFilter, BulkRequest
from onthedot.service import DEFAULT_TENANT
from tests.services.postgres import running_postgres

CALM = 10
"""Seconds of firings before the pause begins, to compare with."""


async def measure(url: str, jobs: int, rate: int) -> None:
    late: list[tuple[float, float]] = []

    async def note(due_ms: float) -> None:
        now = time.time()
        late.append((now, now * 1000 - due_ms))

    targets = in_process(note=note)
    function = {"type": "function", "function": "note"}
    async with opened(url, targets) as (store, service):
        pattern = await service.create_job(DEFAULT_TENANT, spec({"every": "1d"}, function, tags=["bulk"]))
        connection = await asyncpg.connect(url)
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
        base, seconds = int(time.time()) + 15, 60
        dues = [base * 1000 + n * 1000 // rate for n in range(rate * seconds)]
        instants = (
            time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(due // 1000)) + f".{due % 1000:03d}Z" for due in dues
        )
        await create(
            service,
            (spec({"at": at}, function, params={"due_ms": due}) for at, due in zip(instants, dues, strict=True)),
        )
        async with running(store, targets):
            await asyncio.sleep(base + CALM - time.time())
            began = time.time()
            asked = BulkRequest(verb="pause", filter=BulkFilter(tag="bulk"))
            operation = await service.start_operation(DEFAULT_TENANT, asked)
            while operation.state == "running":
                await asyncio.sleep(0.1)
                operation = await service.get_operation(DEFAULT_TENANT, operation.id)
            ended = time.time()
            await asyncio.sleep(1)
        calm = [ms for at, ms in late if base + 1 < at < began]
        busy = [ms for at, ms in late if began <= at <= ended]
        print(f"{operation.verb} of {operation.done:,} jobs: {ended - began:.1f} s, {operation.state}")
        for name, found in (("before", calm), ("meanwhile", busy)):
            p50, p99 = statistics.median(found), statistics.quantiles(found, n=100)[98]
            print(f"lateness {name}: p50 {p50:.2f} ms, p99 {p99:.2f} ms, max {max(found):.1f} ms, {len(found)} firings")


def main() -> None:
    jobs, rate = [int(each) for each in (*sys.argv[1:], *("100000", "100")[len(sys.argv) - 1 :])]
    with running_postgres() as server:
        asyncio.run(measure(server.create_database("bulk"), jobs, rate))


if __name__ == "__main__":
    main()
