"""A scheduler in a background thread, for programs without an event loop: plain calls, from any thread."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from onthedot import Scheduler, current_run
from onthedot.embed import RunNotice
from onthedot.errors import Conflict, Invalid, NotFound
from tests.services.waiting import until_blocking

ENDS = ("DONE", "FAILED", "SKIPPED", "CANCELLED")


@pytest.fixture
def scheduler(store_url: str) -> Iterator[Scheduler]:
    made = Scheduler(store_url, poll_interval="200ms", grace="2s")
    yield made
    made.stop()


def idle() -> None:
    return None


def test_jobs_run_and_every_verb_works_without_await(scheduler: Scheduler):
    heard: Queue[Any] = Queue()

    @scheduler.job(every="1h", key="hourly")
    def hourly() -> str:
        heard.put(threading.current_thread().name)
        return "fine"

    assert scheduler.start() is scheduler
    run = scheduler.run_now("hourly")
    assert heard.get(timeout=20).startswith("onthedot-function")
    until_blocking(lambda: scheduler.get_run(run.id).status == "DONE", "it ends")
    assert scheduler.get_run(run.id).result == "fine"
    assert [each.id for each in scheduler.runs("hourly")] == [run.id]
    added = scheduler.add(lambda_free, key="added", every=timedelta(hours=1), args=[1], params={"b": 2})
    assert scheduler.get("added").params == {"a": 1, "b": 2}
    assert {job.key for job in scheduler.jobs()} == {"hourly", "added"}
    assert scheduler.pause("added").state == "paused"
    assert scheduler.resume(added.id).state == "active"
    changed = scheduler.change("added", cron="0 3 * * *", tz="Europe/Berlin", timeout="5s", params={"a": 3})
    assert (changed.schedule.cron, changed.schedule.every, str(changed.policy.timeout)) == ("0 3 * * *", None, "5s")
    assert changed.params == {"a": 3}
    scheduler.remove("added")
    with pytest.raises(NotFound):
        scheduler.get("added")


def lambda_free(a: int, b: int = 0) -> None:
    return None


def test_it_answers_any_thread_and_coroutines_of_other_loops(sqlite_url: str):
    scheduler = Scheduler(sqlite_url).start()
    try:
        seen: Queue[Any] = Queue()
        threads = [
            threading.Thread(
                target=lambda n=n: seen.put(scheduler.add("https://example.com/", every="1h", key=f"k{n}").key)
            )
            for n in range(4)
        ]
        for thread in threads:
            thread.start()
        assert {seen.get(timeout=20) for _ in threads} == {"k0", "k1", "k2", "k3"}

        async def elsewhere() -> list[str | None]:
            await scheduler.pause("k0")
            return [job.key async for job in scheduler.jobs(status="paused")]

        assert asyncio.run(elsewhere()) == ["k0"]
    finally:
        scheduler.stop()


def test_the_first_jobs_may_come_from_several_threads_at_once(tmp_path: Path):
    """In a new process: the fields of a job are worked out by the first thread that needs them, alone. (msgspec 0.22
    crashed each time that several did.)"""
    (tmp_path / "program.py").write_text(
        "import threading\n"
        "from onthedot import Scheduler\n"
        "scheduler = Scheduler('sqlite:///:memory:').start()\n"
        "made = []\n"
        "def add(n):\n"
        "    made.append(scheduler.add('https://example.com/', every='1h', key=f'k{n}').key)\n"
        "threads = [threading.Thread(target=add, args=(n,)) for n in range(6)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "print(*sorted(made))\n"
        "scheduler.stop()\n"
    )
    done = subprocess.run([sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "k0 k1 k2 k3 k4 k5\n", "")


def test_functions_use_the_scheduler_that_calls_them(scheduler: Scheduler):
    heard: Queue[Any] = Queue()

    def plain() -> None:
        heard.put(("plain", scheduler.get("first").key))

    async def waits() -> None:
        heard.put(("waits", (await scheduler.get("second")).key))

    scheduler.start()
    scheduler.add(plain, in_="1ms", key="first")
    assert heard.get(timeout=20) == ("plain", "first")
    scheduler.add(waits, in_="1ms", key="second")
    assert heard.get(timeout=20) == ("waits", "second")


def test_what_is_added_before_the_start_is_created_then(scheduler: Scheduler):
    heard: Queue[str] = Queue()

    def early() -> None:
        heard.put(current_run().job_key or "")

    assert scheduler.add(early, in_="1ms", key="early") is None
    with pytest.raises(Conflict, match="not running"):
        scheduler.get("early")
    with pytest.raises(Invalid):
        scheduler.add(early, every="soon")
    scheduler.start()
    assert heard.get(timeout=20) == "early"


def test_starting_twice_stopping_twice_and_starting_again(sqlite_url: str):
    scheduler = Scheduler(sqlite_url)
    scheduler.stop()
    for _ in range(2):
        scheduler.start()
        with pytest.raises(Conflict, match="already running"):
            scheduler.start()
        scheduler.shutdown(wait=False)
        scheduler.shutdown()
        with pytest.raises(Conflict, match="not running"):
            scheduler.run_now("x")
    assert not [each for each in threading.enumerate() if each.name.startswith("onthedot-scheduler")]


async def test_a_coroutine_may_start_it_in_the_background_and_stop_it(sqlite_url: str):
    scheduler = Scheduler(sqlite_url).start()
    await scheduler.add("https://example.com/", every="1h", key="ping")
    assert [job.key async for job in scheduler.jobs()] == ["ping"]
    await scheduler.stop()
    with pytest.raises(Conflict, match="not running"):
        await scheduler.get("ping")
    await scheduler.stop()


def test_what_keeps_it_from_starting_is_raised_where_it_is_started(tmp_path: Path):
    scheduler = Scheduler(f"sqlite:///{tmp_path}/missing/folder/jobs.db")
    with pytest.raises(Exception, match="missing"):
        scheduler.start()
    first = Scheduler(f"sqlite:///{tmp_path}/jobs.db").start()
    try:
        with pytest.raises(Exception, match=r"(?i)use|lock|open"):
            Scheduler(f"sqlite:///{tmp_path}/jobs.db").start()
    finally:
        first.stop()


@pytest.mark.parametrize("wait", [True, False])
def test_stop_waits_for_what_executes_or_not(sqlite_url: str, wait: bool):
    began, release, ended = threading.Event(), threading.Event(), threading.Event()
    scheduler = Scheduler(sqlite_url, grace="20s")

    def works() -> None:
        began.set()
        release.wait(20)
        ended.set()

    scheduler.start()
    made = scheduler.add(works, in_="1ms")
    assert began.wait(20)
    stopping = threading.Thread(target=scheduler.stop, args=(wait,))
    stopping.start()
    if wait:
        release.set()
    stopping.join(20)
    assert not stopping.is_alive()
    assert ended.is_set() is wait
    release.set()
    assert ended.wait(20)
    again = Scheduler(sqlite_url)
    with_function = again.function("works")(idle)
    assert with_function is idle
    again.start()
    try:
        run = until_blocking(lambda: next((r for r in again.runs(made.id) if r.status == "DONE"), None), "it is done")
        assert run is not None
        assert run.attempt == (1 if wait else 2), "what was not waited for runs again"
    finally:
        again.stop()


def test_a_job_may_stop_the_scheduler(sqlite_url: str):
    scheduler = Scheduler(sqlite_url, grace="20s")
    asked = threading.Event()

    def last() -> None:
        scheduler.stop()
        asked.set()

    scheduler.start()
    scheduler.add(last, in_="1ms", key="last")
    assert asked.wait(20), "it does not wait for itself"
    scheduler.stop()


def test_the_program_may_end_without_stopping_it(tmp_path: Path):
    """What executes at the end of the program is let to its end, and recorded."""
    (tmp_path / "program.py").write_text(
        "import threading\n"
        "from onthedot import Scheduler\n"
        f"scheduler = Scheduler('sqlite:///{tmp_path}/jobs.db')\n"
        "began, release = threading.Event(), threading.Event()\n"
        "def works():\n"
        "    began.set()\n"
        "    release.wait(1)\n"
        "    print('ended', flush=True)\n"
        "scheduler.start()\n"
        "scheduler.add(works, in_='1ms', key='works')\n"
        "began.wait(20)\n"
        "print('leaving', flush=True)\n"
    )
    done = subprocess.run([sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["leaving", "ended"], "")
    again = Scheduler(f"sqlite:///{tmp_path}/jobs.db").start()
    try:
        assert [run.status for run in again.runs("works")] == ["DONE"]
    finally:
        again.stop()


def test_listeners_hear_what_becomes_of_runs(scheduler: Scheduler, caplog: pytest.LogCaptureFixture):
    heard: Queue[tuple[str, RunNotice]] = Queue()

    @scheduler.on("done")
    def done(notice: RunNotice) -> None:
        heard.put(("done", notice))

    async def failed(notice: RunNotice) -> None:
        heard.put(("failed", notice))

    assert scheduler.on("failed", failed) is failed
    scheduler.on("dead", lambda notice: heard.put(("dead", notice)))

    @scheduler.on("done")
    def broken(notice: RunNotice) -> None:
        raise RuntimeError("the listener's own mistake")

    def breaks() -> None:
        raise ValueError("no luck")

    with caplog.at_level(logging.ERROR, logger="onthedot"):
        scheduler.start()
        scheduler.add(idle, in_="1ms", key="fine")
        kind, notice = heard.get(timeout=20)
        assert (kind, notice.kind, notice.job_key, notice.error) == ("done", "done", "fine", None)
        assert scheduler.get_run(notice.run_id).status == "DONE", "it is recorded when it is told"
        scheduler.add(breaks, in_="1ms", key="broken", retry={"attempts": 2, "backoff": "10ms"})
        told = [heard.get(timeout=20) for _ in range(3)]
        scheduler.stop()
    assert sorted(kind for kind, _ in told) == ["dead", "failed", "failed"]
    assert {notice.job_key for _, notice in told} == {"broken"}
    assert all(notice.error == "ValueError: no luck" for _, notice in told)
    assert heard.empty()
    assert "the listener's own mistake" in caplog.text
    with pytest.raises(Invalid, match="not an event") as wrong:
        scheduler.on("finished", done)  # type: ignore[call-overload]
    shown = "".join(traceback.format_exception_only(wrong.value))
    assert "on: accepted: done, failed, dead, late (given: 'finished')" in shown, "in a traceback, too"


def test_late_runs_are_told(sqlite_url: str):
    """It was due while nobody ran it."""
    first = Scheduler(sqlite_url)
    first.function("work")(idle)
    first.start()
    first.add("work", at=datetime.now(UTC) + timedelta(milliseconds=50), key="late", paused=True)
    first.stop()
    heard: Queue[RunNotice] = Queue()
    second = Scheduler(sqlite_url)
    second.function("work")(idle)
    second.on("late", heard.put, than=timedelta(milliseconds=20))
    second.start()
    try:
        until_blocking(
            lambda: (
                datetime.now(UTC)
                > datetime.fromisoformat(str(second.get("late").created_at)) + timedelta(milliseconds=200)
            ),
            "it is late",
        )
        second.resume("late")
        notice = heard.get(timeout=20)
        assert (notice.kind, notice.job_key) == ("late", "late")
        assert (notice.lateness_ms or 0) > 20
    finally:
        second.stop()


def test_a_program_that_starts_again_resumes_no_job_that_somebody_paused(store_url: str):
    def start() -> Scheduler:
        program = Scheduler(store_url)
        program.add("https://example.com/", every="1h", key="mine")
        program.add("https://example.com/", every="1h", key="told", paused=False)
        return program.start()

    first = start()
    try:
        for key in ("mine", "told"):
            assert first.pause(key).state == "paused"
    finally:
        first.stop()
    second = start()
    try:
        assert {job.key: job.state for job in second.jobs()} == {"mine": "paused", "told": "active"}
    finally:
        second.stop()


def test_the_zone_and_the_defaults_of_all_jobs(sqlite_url: str):
    defaults = {"timeout": "30s", "retry": {"attempts": 7}, "max_running": 2, "tags": ["mine"]}
    scheduler = Scheduler(sqlite_url, tz="Europe/Berlin", defaults=defaults)
    scheduler.job(cron="0 3 * * *", key="decorated")(idle)
    scheduler.start()
    try:
        made = scheduler.get("decorated")
        assert (made.schedule.tz, str(made.policy.timeout), made.policy.retry.attempts) == ("Europe/Berlin", "30s", 7)
        assert (made.policy.max_running, made.tags) == (2, ["mine"])
        local = scheduler.add(idle, at=datetime(2040, 6, 1, 9), timeout="1s", key="own")  # noqa: DTZ001
        assert (local.next_run, str(local.policy.timeout)) == ("2040-06-01T07:00:00.000Z", "1s")
        other = scheduler.add(idle, cron="0 3 * * *", tz="UTC", key="utc")
        assert other.schedule.tz == "UTC"
    finally:
        scheduler.stop()
    with pytest.raises(Invalid, match=r"defaults\.timout"):
        Scheduler(sqlite_url, defaults={"timout": "30s"})


@pytest.mark.parametrize(
    ("args", "params", "message"),
    [([1, 2, 3], None, "too many positional"), ([1], {"a": 2}, "multiple values"), ("ab", None, "list or tuple")],
)
def test_arguments_that_do_not_fit_are_named(sqlite_url: str, args: Any, params: Any, message: str):
    scheduler = Scheduler(sqlite_url)
    with pytest.raises(Invalid, match=message):
        scheduler.add(lambda_free, args=args, params=params, every="1h")
    with pytest.raises(Invalid, match="only for functions"):
        scheduler.add("https://example.com/", args=[1], every="1h")


@pytest.mark.parametrize("what", [None, 7, ["idle"]])
def test_what_can_not_be_run_is_said(what: Any):
    with pytest.raises(TypeError, match="what to run is a function, the name of a registered one, or a URL; not "):
        Scheduler("sqlite:///:memory:").add(what, every="1h")


def test_so_many_run_at_once(scheduler: Scheduler):
    """`max_running=2`: the third waits, and is not lost."""
    release = threading.Event()
    began: Queue[str] = Queue()

    def works() -> None:
        began.put(current_run().id)
        release.wait(20)

    scheduler.job(at="2099-01-01T00:00:00Z", key="works", max_running=2)(works)
    scheduler.start()
    asked = {scheduler.run_now("works").id for _ in range(3)}
    two = {began.get(timeout=20) for _ in range(2)}
    waiting = (asked - two).pop()
    assert until_blocking(lambda: scheduler.get_run(waiting).waiting == "group", "the third waits")
    assert began.empty()
    release.set()
    assert began.get(timeout=20) == waiting
