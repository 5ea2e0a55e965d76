"""A function knows which run it is called for."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from onthedot import Scheduler, current_run
from onthedot.client import AsyncClient
from onthedot.model.current_run import CurrentRun
from tests.conftest import Launch
from tests.services.waiting import until


def test_outside_of_a_run_there_is_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ONTHEDOT_RUN_ID", raising=False)
    with pytest.raises(RuntimeError, match="not inside a run"):
        current_run()


def test_sync_and_async_functions_know_it(sqlite_url: str):
    heard: Queue[Any] = Queue()
    scheduler = Scheduler(sqlite_url)

    @scheduler.job(at="2099-01-01T00:00:00Z", params={"n": 1})
    def plain(n: int) -> None:
        thread = threading.Thread(target=lambda: heard.put(n))
        thread.start()
        thread.join()
        heard.put(current_run())

    @scheduler.job(at="2099-01-01T00:00:00Z")
    async def waits(n: int = 0) -> None:
        async def inner() -> CurrentRun:
            await asyncio.sleep(0)
            return current_run()

        heard.put(await asyncio.create_task(inner()))

    scheduler.start()
    try:
        run = scheduler.run_now("plain", params={"n": 7})
        assert heard.get(timeout=20) == 7
        seen = heard.get(timeout=20)
        assert (seen.id, seen.job_id, seen.job_key) == (run.id, run.job_id, "plain")
        assert (seen.scheduled_for, seen.attempt, seen.params) == (run.scheduled_for, 1, {"n": 7})
        runs = [scheduler.run_now("waits").id for _ in range(3)]
        assert {heard.get(timeout=20).id for _ in range(3)} == set(runs)
    finally:
        scheduler.stop()
    with pytest.raises(RuntimeError):
        current_run()


async def test_functions_of_a_server_know_it(tmp_path: Path, launch: Launch):
    (tmp_path / "work.py").write_text(
        "import onthedot\n"
        "def tell(n):\n"
        "    run = onthedot.current_run()\n"
        "    return [run.id, run.job_key, run.scheduled_for, run.attempt, run.params]\n"
    )
    (tmp_path / "jobs.yaml").write_text(
        "jobs:\n"
        "  - key: teller\n"
        "    schedule: {at: '2099-01-01T00:00:00Z'}\n"
        "    target: {type: function, function: 'work:tell'}\n"
        "    params: {n: 5}\n"
    )
    node = await launch("--store", f"sqlite:///{tmp_path}/server.db", "--jobs", str(tmp_path / "jobs.yaml"))
    async with AsyncClient(node.url) as client:
        job = await client.get_job_by_key("teller")
        run = await client.run_job(job.id)

        async def ended() -> Any:
            seen = await client.get_run(run.id)
            return seen if seen.status in ("DONE", "FAILED") else None

        seen = await until(ended, "it ends")
    assert seen.status == "DONE", seen.error
    assert seen.result == [run.id, "teller", run.scheduled_for, 1, {"n": 5}]


def test_asking_for_it_loads_no_engine():
    """A worker process that imports onthedot must not load what a server is made of."""
    code = (
        "import sys, onthedot\n"
        "ours = {name for name in sys.modules if name.startswith('onthedot')}\n"
        "assert ours == {'onthedot', 'onthedot.version'}, ours\n"
        "onthedot.current_run\n"
        "heavy = {'asyncio', 'asyncpg', 'structlog', 'onthedot.engine', 'onthedot.store'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
