"""The Python of the README and of docs/embedding.md does what it says. Only its waiting is made shorter."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from queue import Queue
from typing import Any

import httpx
import pytest
import uvicorn
from uvicorn.lifespan.on import LifespanOn

from onthedot import Scheduler, current_run
from onthedot.embed import RunNotice
from onthedot.errors import Conflict
from tests.services.waiting import until, until_blocking

ROOT = Path(__file__).parents[2]
SHORTER = {"*/5 * * * * *": "* * * * * *", '"10s"': '"1s"', '"30s"': '"1s"'}
PAGE = "docs/embedding.md"


def blocks(name: str) -> list[str]:
    """The Python of a page, as it stands."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.MULTILINE | re.DOTALL)


def block(name: str, marked: str) -> str:
    (found,) = [text for text in blocks(name) if "onthedot" in text and marked in text]
    return found


PROGRAMS = {
    "README": ("README.md", "scheduler.run()", ["every five seconds, on the dot"]),
    "plain": (PAGE, "scheduler.start()", ["refreshed", "a report"]),
    "asyncio": (PAGE, "asyncio.run(main())", ["refreshed", "a plain function runs in a thread"]),
    "run": (PAGE, "scheduler.run()", ["refreshed"]),
}


@pytest.mark.parametrize("program", list(PROGRAMS))
async def test_it_runs_as_written(tmp_path, program):
    name, marked, says = PROGRAMS[program]
    text = block(name, marked)
    for long, short in SHORTER.items():
        text = text.replace(long, short)
    (tmp_path / "program.py").write_text(text)
    out = tmp_path / "out"
    with out.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-u", "program.py"], cwd=tmp_path, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        await until(lambda: all(line in out.read_text() for line in says) or process.poll() is not None, "it says so")
        assert process.poll() is None, out.read_text()
        process.send_signal(signal.SIGINT)
        code = process.wait(20)
    finally:
        process.kill()
        process.wait()
    assert (tmp_path / "jobs.db").exists()
    if "\nscheduler.run()" in text:
        assert code == 0
        assert "Traceback" not in out.read_text()


async def test_the_web_application_runs_as_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {"__name__": __name__}
    exec(block(PAGE, "FastAPI(lifespan="), scope)
    lifespan = LifespanOn(uvicorn.Config(scope["app"], lifespan="on", log_config=None))
    await lifespan.startup()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(scope["app"]), base_url="http://test") as client:
        run = (await client.get("/refresh")).json()["run"]

    async def done() -> bool:
        return bool((await scope["scheduler"].get_run(run)).status == "DONE")

    await until(done, "it has run")
    await lifespan.shutdown()
    assert "refreshed" in capsys.readouterr().out


def test_a_function_asks_for_its_run_as_written(sqlite_url, capsys):
    scope: dict[str, Any] = {}
    exec(block(PAGE, "def charge("), scope)
    scheduler = Scheduler(sqlite_url).start()
    try:
        scheduler.add(scope["charge"], in_="1ms", key="charge", args=["Ada"])
        until_blocking(lambda: [run for run in scheduler.runs("charge") if run.status == "DONE"], "it is done")
        (run,) = scheduler.runs("charge")
    finally:
        scheduler.stop()
    assert f"{run.id} charge {run.scheduled_for} 1 {{'customer': 'Ada'}}" in capsys.readouterr().out


def test_listeners_listen_as_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    exec(block(PAGE, '@scheduler.on("failed")'), scope)
    scheduler = scope["scheduler"].start()

    def breaks() -> None:
        raise ValueError("no luck")

    try:
        scheduler.add(breaks, in_="1ms", key="breaks", retry={"attempts": 1})
        until_blocking(lambda: [run for run in scheduler.runs("breaks") if run.status == "FAILED"], "it failed")
    finally:
        scheduler.stop()
    assert "breaks: ValueError: no luck" in capsys.readouterr().out


def test_every_block_of_the_page_is_run():
    assert len(blocks(PAGE)) == 6


# the table for people from APScheduler

ELSEWHERE = ("Scheduler(url).start()", "async with scheduler:", "scheduler.run()", '@scheduler.job(every="10s")')
"""What is run by the programs above, or is no statement."""
TOPICS = (
    *("cron", "interval", "date", "OrTrigger", "AndTrigger", "JobStore", "Executor", "misfire_grace_time", "coalesce"),
    *("max_instances", "replace_existing", "listener", "pause_job", "resume_job", "modify_job", "reschedule_job"),
    *("BackgroundScheduler", "AsyncIOScheduler", "BlockingScheduler", "timezone", "jitter", "shutdown(wait=False)"),
)


def table() -> list[tuple[str, str]]:
    text = (ROOT / PAGE).read_text().partition("| APScheduler 3 | On the Dot |\n|---|---|\n")[2].partition("\n\n")[0]
    return [(theirs.strip(), ours.strip()) for _, theirs, ours, _ in (line.split("|") for line in text.splitlines())]


def test_every_row_has_an_answer():
    assert all(theirs and ours for theirs, ours in table())
    asked = "\n".join(theirs for theirs, _ in table())
    assert [topic for topic in TOPICS if topic not in asked] == []


def test_every_answer_works(tmp_path, monkeypatch):
    """One after the other, on one scheduler, as the table has them."""
    monkeypatch.chdir(tmp_path)
    heard: Queue[Any] = Queue()
    firing: Queue[Any] = Queue()

    def f() -> None:
        firing.put(current_run().scheduled_for)

    def g(a: int, b: int) -> None:
        raise AssertionError("an hour has not passed")

    def listener(notice: RunNotice) -> None:
        heard.put(notice)

    scheduler = Scheduler("sqlite:///mine.db").start()
    scope = {
        **locals(),
        "Scheduler": Scheduler,
        "datetime": datetime,
        "timedelta": timedelta,
        "url": "sqlite:///other.db",
    }
    ran = 0
    try:
        for _, ours in table():
            for code in re.findall(r"`([^`]+)`", ours):
                if code in ELSEWHERE or not re.match(r"(\[?scheduler\.|Scheduler\(|list\()", code):
                    continue
                ran += 1
                if "replace=False" in code:
                    with pytest.raises(Conflict):
                        eval(code, scope)
                else:
                    assert eval(code, scope) is not None or "remove" in code or "shutdown" in code, code
    finally:
        scheduler.stop()
    assert ran >= 40
    assert isinstance(datetime.fromisoformat(firing.get(timeout=1)), datetime), "what was added for now has run"
