"""`lifespan` with real ASGI frameworks, under a real uvicorn: started in every worker, each slot fires once."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from uvicorn.lifespan.on import LifespanOn

from onthedot import Scheduler
from onthedot.errors import Conflict
from tests.services.ports import free_port
from tests.services.waiting import until, until_blocking

SCHEDULED = """
import os
from onthedot import Scheduler, current_run

scheduler = Scheduler({store!r}, poll_interval="200ms")

@scheduler.job(every="200ms", catch_up="all")
async def tick():
    with open({heard!r}, "a") as file:
        file.write(f"{{current_run().id}} {{os.getpid()}}\\n")
"""
APPS = {
    "starlette": """
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

async def jobs(request):
    return PlainTextResponse((await scheduler.get("tick")).key)

app = Starlette(routes=[Route("/", jobs)], lifespan=scheduler.lifespan)
""",
    "fastapi": """
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

app = FastAPI(lifespan=scheduler.lifespan)

@app.get("/", response_class=PlainTextResponse)
def jobs():
    return scheduler.get("tick").key
""",
    "litestar": """
from litestar import Litestar, MediaType, get

@get("/", media_type=MediaType.TEXT)
async def jobs() -> str:
    return (await scheduler.get("tick")).key

app = Litestar([jobs], lifespan=[scheduler.lifespan])
""",
    "quart": """
from quart import Quart

app = Quart(__name__)

@app.while_serving
async def scheduled():
    async with scheduler:
        yield

@app.get("/")
async def jobs():
    return (await scheduler.get("tick")).key
""",
}


@contextmanager
def serving(directory: Path, store: str, framework: str, *options: str) -> Iterator[tuple[str, Path]]:
    """The address, and the file in which the job writes. It ends by SIGTERM, in order."""
    heard = directory / "heard"
    (directory / "program.py").write_text(SCHEDULED.format(store=store, heard=str(heard)) + APPS[framework])
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "program:app", "--port", str(port), "--log-level", "warning", *options]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=directory, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield f"http://127.0.0.1:{port}/", heard
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
        said = (directory / "log").read_text()
        assert code in (0, -signal.SIGTERM), said  # uvicorn raises the signal again when it has ended
        assert "Traceback" not in said, said
    finally:
        process.kill()
        process.wait()


def answer(address: str) -> str:
    try:
        return httpx.get(address, timeout=5).text
    except httpx.TransportError:
        return ""


@asynccontextmanager
async def started(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    """As uvicorn starts and stops it, in this process: starting another for each framework took 6 s of CPU."""
    lifespan = LifespanOn(uvicorn.Config(app, lifespan="on", log_config=None))
    await lifespan.startup()
    assert not lifespan.should_exit
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        yield client
    await lifespan.shutdown()
    assert not lifespan.should_exit


@pytest.mark.parametrize("framework", list(APPS))
async def test_a_framework_starts_and_stops_it(tmp_path: Path, framework: str):
    """Its handlers use the scheduler: async ones on its loop, sync ones (FastAPI) in a thread."""
    store, heard = f"sqlite:///{tmp_path}/jobs.db", tmp_path / "heard"
    scope: dict[str, Any] = {"__name__": __name__}
    exec(SCHEDULED.format(store=store, heard=str(heard)) + APPS[framework], scope)
    async with started(scope["app"]) as client:
        assert (await client.get("/")).text == "tick"
        await until(lambda: heard.exists() and len(heard.read_text().splitlines()) >= 2, "the job runs")
    with pytest.raises(Conflict, match="not running"):
        await scope["scheduler"].get("tick")
    runs = [line.split()[0] for line in heard.read_text().splitlines()]
    assert len(runs) == len(set(runs))


def test_two_workers_share_one_store(tmp_path: Path, postgres_url: str):
    with serving(tmp_path, postgres_url, "starlette", "--workers", "2") as (address, heard):
        until_blocking(lambda: answer(address) == "tick", "the server answers")

        def lines() -> list[list[str]]:
            return [line.split() for line in heard.read_text().splitlines()] if heard.exists() else []

        until_blocking(lambda: len({pid for _, pid in lines()}) == 2 and len(lines()) >= 15, "both workers run it")
    runs = [run for run, _ in lines()]
    assert len(runs) == len(set(runs)), "a slot fired twice"
    slots = sorted(int(run.split("-")[1]) for run in runs)
    assert slots == list(range(slots[0], slots[-1] + 1, 200)), "a slot is missing"


async def test_the_lifespan_protocol_itself(sqlite_url: str):
    """Without a framework: `async with scheduler.lifespan(app)` between startup and shutdown."""
    scheduler = Scheduler(sqlite_url)
    called = asyncio.Event()
    loop = asyncio.get_running_loop()

    @scheduler.job(every="100ms")
    def tick() -> None:
        loop.call_soon_threadsafe(called.set)

    async with scheduler.lifespan(object()) as state:
        assert state is None, "what is yielded would be taken for the state of the app"
        await until(called.is_set, "it runs")
    with pytest.raises(Exception, match="not running"):
        await scheduler.get("tick")
