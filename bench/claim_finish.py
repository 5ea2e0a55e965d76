"""What claiming and finishing costs the store: one-off no-op runs, and recurring ones.

python -m bench.claim_finish sqlite:////tmp/bench.db
python -m bench.claim_finish postgresql://user@host/database        (an empty database)

Rates are of this moment; CPU is what to compare: of this process and, if the server runs on this machine, of all of the
server's processes. `--single N`: N runs more, claimed in tens and each finished by itself, as it is without a rush.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg

from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget
from onthedot.plan import on_outcome
from onthedot.store import Finished, NewJob, Store, open_store

OK = Outcome(kind="ok")
TARGET = WebhookTarget(url="http://example.com/hook")
TICK = os.sysconf("SC_CLK_TCK")


async def create(store: Store, schedule: Schedule, count: int) -> None:
    for start in range(0, count, 5000):
        jobs = [
            NewJob(tenant=1, spec=JobSpec(schedule=schedule, target=TARGET)) for _ in range(min(5000, count - start))
        ]
        await store.create_jobs(jobs)


def results_of(runs: list[ClaimedRun], now: int, rng: random.Random) -> list[Finished]:
    return [
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


async def drain(store: Store, batch: int, most: int) -> int:
    """Claim and finish on two connections, as a node does: while one batch is written, the next is claimed."""
    rng, done = random.Random(1), 0

    async def finish(runs: list[ClaimedRun], now: int) -> None:
        report = await store.finish("bench", results_of(runs, now, rng))
        assert report.recorded == len(runs)

    writing: asyncio.Task[None] | None = None
    while done < most:
        claim = await store.claim("bench", offers=["webhook"], level=1, limit=batch, lookahead_ms=2000)
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
    return done


async def close_one_offs(store: Store, batch: int, most: int) -> int:
    """The jobs that those runs ended: what is written after the fact."""
    return await store.close_one_offs(most=most)


async def one_by_one(store: Store, batch: int, most: int) -> int:
    rng, done = random.Random(1), 0
    while done < most:
        claim = await store.claim("bench", offers=["webhook"], level=1, limit=batch, lookahead_ms=2000)
        for run in claim.runs:
            report = await store.finish("bench", results_of([run], claim.now, rng))
            assert report.recorded == 1
        done += len(claim.runs)
    return done


async def server_processes(url: str) -> Callable[[], float]:
    """CPU seconds of all processes of a server on this machine."""
    if not url.startswith("postgres"):
        return lambda: 0.0
    connection = await asyncpg.connect(url)
    backend = connection.get_server_pid()
    try:
        parent = _stat(backend)[1]
    except OSError:
        return lambda: 0.0
    finally:
        await connection.close()

    def seconds() -> float:
        total = 0.0
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    ticks, above = _stat(int(entry.name))
                except OSError:
                    continue
                total += ticks if above == parent else 0
        return total / TICK

    return seconds


def _stat(pid: int) -> tuple[int, int]:
    """(ticks of CPU, parent)"""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12]), int(fields[1])


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--pending", type=int, default=0, help="further runs that are not due: the table's size")
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--single", type=int, default=0)
    asked = parser.parse_args()
    store = await open_store(asked.url)
    try:
        server = await server_processes(asked.url)
        await store.ensure_partitions()
        await create(store, Schedule(in_=Duration(365 * 86_400_000)), asked.pending)
        await create(store, Schedule(in_=Duration(1)), asked.count)
        await measure(store, server, "one-off", drain, asked.batch, asked.count)
        await measure(store, server, "closing one-offs", close_one_offs, asked.batch, asked.count)
        await create(store, Schedule(in_=Duration(1)), asked.single)
        await measure(store, server, "one by one", one_by_one, 10, asked.single)
        await create(store, Schedule(every=Duration(1500)), asked.batch)
        await measure(store, server, "recurring", drain, asked.batch, 20 * asked.batch)
    finally:
        await store.close()


async def measure(store: Store, server: Callable[[], float], what: str, act: Any, batch: int, most: int) -> None:
    if not most:
        return
    began, mine, theirs = time.perf_counter(), time.process_time(), server()
    done = await act(store, batch, most)
    took, mine, theirs = time.perf_counter() - began, time.process_time() - mine, server() - theirs
    print(
        f"{what:10} {done:8} runs {done / took:9.0f}/s   CPU a run: process {mine / done * 1e6:6.1f} µs"
        f"   server {theirs / done * 1e6:6.1f} µs"
    )


if __name__ == "__main__":
    asyncio.run(main())
