"""How many runs a second the store claims and finishes: one-off no-op rows, and recurring ones.

python bench/claim_finish.py sqlite:////tmp/bench.db
python bench/claim_finish.py postgresql://user@host/database        (an empty database)
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time

from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.model.schedule import Schedule
from onthedot.model.target import WebhookTarget
from onthedot.plan import on_outcome
from onthedot.store import Finished, NewJob, Store, open_store

OK = Outcome(kind="ok")
TARGET = WebhookTarget(url="http://example.com/hook")


async def create(store: Store, schedule: Schedule, count: int) -> None:
    for start in range(0, count, 5000):
        jobs = [
            NewJob(tenant=1, spec=JobSpec(schedule=schedule, target=TARGET)) for _ in range(min(5000, count - start))
        ]
        await store.create_jobs(jobs)


async def drain(store: Store, batch: int, most: int) -> tuple[int, float, float]:
    """Claim and finish on two connections, as a node does: while one batch is written, the next is claimed."""
    rng, done, claiming, finishing = random.Random(1), 0, 0.0, 0.0

    async def finish(runs: list[ClaimedRun], now: int) -> None:
        nonlocal finishing
        began = time.perf_counter()
        results = [
            Finished(
                run=run,
                outcome=OK,
                decision=on_outcome(run, OK, now, rng),
                started_at=now,
                finished_at=now,
                lateness_ms=1,
                duration_ms=1,
            )
            for run in runs
        ]
        report = await store.finish("bench", results)
        assert report.recorded == len(runs)
        finishing += time.perf_counter() - began

    writing: asyncio.Task[None] | None = None
    while done < most:
        began = time.perf_counter()
        claim = await store.claim("bench", offers=["webhook"], level=1, limit=batch, lookahead_ms=2000)
        claiming += time.perf_counter() - began
        if writing is not None:
            await writing
            writing = None
        if not claim.runs:
            if claim.next_ready is None or claim.next_ready > claim.now:
                break
            continue
        writing = asyncio.ensure_future(finish(claim.runs, claim.now))
        done += len(claim.runs)
    if writing is not None:
        await writing
    return done, claiming, finishing


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--pending", type=int, default=0, help="further runs that are not due: the table's size")
    parser.add_argument("--batch", type=int, default=1000)
    asked = parser.parse_args()
    store = await open_store(asked.url)
    try:
        await store.ensure_partitions()
        await create(store, Schedule(in_=Duration(365 * 86_400_000)), asked.pending)
        await create(store, Schedule(in_=Duration(1)), asked.count)
        await measure(store, "one-off", asked.batch, asked.count)
        await create(store, Schedule(every=Duration(1500)), asked.batch)
        await measure(store, "recurring", asked.batch, 20 * asked.batch)
    finally:
        await store.close()


async def measure(store: Store, what: str, batch: int, most: int) -> None:
    began = time.perf_counter()
    done, claiming, finishing = await drain(store, batch, most)
    took = time.perf_counter() - began
    print(
        f"{what:10} {done:8} runs {done / took:9.0f}/s   claim {claiming / done * 1e6:5.1f} µs"
        f"   finish {finishing / done * 1e6:5.1f} µs a run"
    )


if __name__ == "__main__":
    asyncio.run(main())
