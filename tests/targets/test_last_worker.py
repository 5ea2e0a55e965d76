"""One job never has all worker processes: if its calls all hang, one is left to the others."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from onthedot.targets.function.pool import WorkerPool
from tests.services.waiting import until
from tests.targets.bench import Bench
from tests.targets.sending import send

WORK = """
    def block(path):
        return open(path).read()
    def quick():
        return "quick"
"""


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "go"
    os.mkfifo(path)
    return path


@asynccontextmanager
async def hanging(bench: Bench, name: str, fifo: Path, job_id: int, calls: int) -> AsyncIterator[list[float]]:
    """So many calls of a job at once, and when those that began did so."""
    began: list[float] = []
    tasks = [
        asyncio.ensure_future(send(bench.functions, bench.tell(name, began.append, job_id=job_id, path=str(fifo))))
        for _ in range(calls)
    ]
    try:
        yield began
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_calls_of_one_job_leave_a_worker_to_the_others(bench: Bench, tmp_path: Path, fifo: Path):
    bench.functions._workers = WorkerPool(3, [str(tmp_path)])
    name = bench.define(WORK)
    async with hanging(bench, f"{name}:block", fifo, 70, 10) as began:
        await until(lambda: len(began) == 2, "two of three workers are theirs")
        for _ in range(3):
            assert (await bench.call(f"{name}:quick")).detail == {"result": "quick"}
        assert len(began) == 2


async def test_who_waits_behind_them_is_let_by(bench: Bench, tmp_path: Path, fifo: Path):
    """Also if no worker was free when it came: the one that another job leaves is for the next one of another job."""
    bench.functions._workers = WorkerPool(2, [str(tmp_path)])
    name = bench.define(WORK)
    theirs = tmp_path / "theirs"
    os.mkfifo(theirs)
    async with (
        hanging(bench, f"{name}:block", fifo, 70, 1) as first,
        hanging(bench, f"{name}:block", theirs, 71, 1) as other,
    ):
        await until(lambda: first and other, "both workers are taken")
        async with hanging(bench, f"{name}:block", fifo, 70, 5) as more:
            late = asyncio.ensure_future(send(bench.functions, bench.tell(f"{name}:quick", lambda at: None)))
            await asyncio.sleep(0)
            theirs.write_text("go")
            assert (await late).detail == {"result": "quick"}
            assert more == []


async def test_a_single_worker_is_for_all(bench: Bench, tmp_path: Path):
    bench.functions._workers = WorkerPool(1, [str(tmp_path)])
    name = bench.define(WORK)
    calls = [bench.tell(f"{name}:quick", lambda at: None, job_id=70) for _ in range(5)]
    outcomes = await asyncio.gather(*(send(bench.functions, call) for call in calls))
    assert [outcome.detail for outcome in outcomes] == [{"result": "quick"}] * 5
