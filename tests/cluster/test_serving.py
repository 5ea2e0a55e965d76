"""One node, served in this process until it is told to stop."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import aiohttp
import pytest

from onthedot.engine import Node
from onthedot.errors import StoreUnavailable
from onthedot.jobsfile import read_jobs_file
from onthedot.launcher import serving, wait_for_store
from onthedot.launcher.serving import Stopping, serve
from onthedot.model.duration import Duration
from onthedot.settings import Settings
from tests.services.waiting import until


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """Logging is set up for a process of its own; this one belongs to pytest."""
    monkeypatch.setattr(serving, "configure_logging", lambda level, style=None: None)


@pytest.fixture
def settings(sqlite_url, tmp_path) -> Settings:
    return Settings(store=sqlite_url, port=0, logs_base_directory=tmp_path / "logs", grace=Duration.parse("1s"))


class Served:
    """`serve` as a task, and the address that its banner names."""

    def __init__(self, settings: Settings, capsys: Any, jobs: Any = None) -> None:
        self.stopping = Stopping()
        self.task = asyncio.create_task(serve(settings, jobs, stopping=self.stopping))
        self._capsys = capsys
        self.shown = ""

    async def url(self) -> str:
        def look() -> str:
            self.shown += self._capsys.readouterr().out
            found = re.search(r"● (http://\S+)", self.shown)
            return found[1] if found else ""

        url = await until(lambda: look() or self.task.done(), "the banner is shown")
        assert isinstance(url, str), self.task
        return url

    async def get(self, path: str) -> tuple[int, Any]:
        async with aiohttp.ClientSession() as session, session.get(await self.url() + path) as answer:
            return answer.status, json.loads(await answer.read())

    async def ready(self) -> None:
        async def look() -> bool:
            return (await self.get("/readyz"))[0] == 200

        await until(look, "the node is ready")


async def test_it_serves_until_it_is_asked_to_stop(settings, capsys):
    served = Served(settings, capsys)
    await served.ready()
    assert (await served.get("/v1/jobs"))[0] == 200
    assert "open to everybody on this machine" in served.shown
    served.stopping.ask()
    await asyncio.wait_for(served.task, 20)
    assert served.task.exception() is None


async def test_a_database_that_goes_away_as_soon_as_it_was_opened_does_not_end_the_start(settings, capsys, monkeypatch):
    """A node asked once more, only for its banner, and a connection cut at that moment was the end of it."""
    opened = wait_for_store.prepared_when_there

    async def then_away(*args: Any, **kwargs: Any) -> Any:
        prepared = await opened(*args, **kwargs)
        assert prepared is not None

        async def away(*_: Any, **__: Any) -> Any:
            raise StoreUnavailable("away")

        for name in ("any_key", "register", "now"):
            monkeypatch.setattr(prepared.store, name, away)
        return prepared

    monkeypatch.setattr(serving, "prepared_when_there", then_away)
    served = Served(settings, capsys)
    status, ready = await served.get("/readyz")
    assert (status, ready["engine"]) == (503, "not registered yet")
    assert not served.task.done()
    served.stopping.ask()
    await asyncio.wait_for(served.task, 20)
    assert served.task.exception() is None


async def test_the_page_is_served_too(settings, capsys):
    served = Served(settings, capsys)
    async with aiohttp.ClientSession() as session, session.get(await served.url()) as answer:
        assert answer.status == 200
        assert "text/html" in answer.headers["content-type"]
    served.stopping.ask()
    await asyncio.wait_for(served.task, 20)


async def test_a_failing_engine_ends_it_with_the_fault(settings, capsys, monkeypatch):
    """Any exception but the database's: stop in order, exit non-zero."""
    failing = asyncio.Event()

    async def wait(node: Node) -> None:
        await failing.wait()
        raise RuntimeError("the engine broke")

    monkeypatch.setattr(Node, "wait", wait)
    served = Served(settings, capsys)
    await served.ready()
    failing.set()
    with pytest.raises(RuntimeError, match="the engine broke"):
        await asyncio.wait_for(served.task, 20)


async def test_a_start_that_fails_leaves_nothing_open(settings, capsys, monkeypatch):
    async def refuse(*_: Any) -> None:
        raise RuntimeError("not today")

    monkeypatch.setattr("onthedot.main._refuse_without_key", refuse)
    with pytest.raises(RuntimeError, match="not today"):
        await Served(settings, capsys).task
    monkeypatch.undo()
    monkeypatch.setattr(serving, "configure_logging", lambda level, style=None: None)
    again = Served(settings, capsys)
    await again.ready()
    again.stopping.ask()
    await asyncio.wait_for(again.task, 20)


async def test_asked_before_it_is_up_it_stops_all_the_same(settings, capsys):
    served = Served(settings, capsys)
    served.stopping.ask()
    await asyncio.wait_for(served.task, 20)
    assert served.task.exception() is None


async def test_a_reload_is_heard(settings, capsys, tmp_path):
    path = tmp_path / "jobs.json"

    def write(key: str) -> None:
        job = {"key": key, "schedule": {"every": "1h"}, "target": {"type": "webhook", "url": "http://127.0.0.1:9/"}}
        path.write_text(json.dumps([job]))

    write("before")
    given = Settings(
        store=settings.store, port=0, logs_base_directory=settings.logs_base_directory, jobs_file_path=path
    )
    served = Served(given, capsys, read_jobs_file(path))

    async def keys() -> list[str]:
        _, page = await served.get("/v1/jobs")
        return [job["key"] for job in page["items"]]

    assert await keys() == ["before"]
    write("after")
    served.stopping.reload.set()

    async def changed() -> bool:
        return await keys() == ["after"]

    await until(changed, "the file is loaded again")
    served.stopping.ask()
    await asyncio.wait_for(served.task, 20)


async def test_who_only_executes_shows_no_address(settings, capsys):
    given = Settings(store=settings.store, roles=("executor",), logs_base_directory=settings.logs_base_directory)
    stopping = Stopping()
    task = asyncio.create_task(serve(given, None, stopping=stopping))
    shown: list[str] = []

    def look() -> bool:
        shown.append(capsys.readouterr().out)
        return "no API" in "".join(shown)

    await until(look, "the banner is shown")
    stopping.ask()
    await asyncio.wait_for(task, 20)
    assert "http://" not in "".join(shown)
