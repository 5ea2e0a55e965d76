"""On the Dot inside somebody's own program, on both stores."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from onthedot import Scheduler
from onthedot.echo import EchoServer
from onthedot.errors import Conflict, Invalid, NotFound
from onthedot.model.run import RunView
from tests.services.waiting import until


class Heard:
    """What the program's functions were called with. They run in other threads."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._calls: list[Any] = []
        self._more = asyncio.Event()

    def __call__(self, what: Any) -> None:
        self._loop.call_soon_threadsafe(self._took, what)

    def _took(self, what: Any) -> None:
        self._calls.append(what)
        self._more.set()

    async def wait_for(self, count: int = 1, within: float = 20.0) -> list[Any]:
        async with asyncio.timeout(within):
            while len(self._calls) < count:
                self._more.clear()
                await self._more.wait()
        return list(self._calls)

    def so_far(self) -> list[Any]:
        return list(self._calls)


@pytest.fixture
async def heard() -> Heard:
    return Heard()


def scheduler_for(url: str, **settings: Any) -> Scheduler:
    return Scheduler(url, **{"poll_interval": "200ms", "grace": "2s", **settings})


async def ended(scheduler: Scheduler, job: int | str) -> RunView:
    """The newest run of a job, once it has ended."""

    async def look() -> RunView | None:
        runs = await scheduler.runs(job, limit=1)
        return runs[0] if runs and runs[0].status in ("DONE", "FAILED", "SKIPPED", "CANCELLED") else None

    run = await until(look, f"a run of {job} ends")
    assert run is not None
    return run


async def test_a_decorated_function_is_called_again_and_again(store_url, heard):
    scheduler = scheduler_for(store_url)

    @scheduler.job(every="300ms", params={"who": "A"})
    async def greet(who: str) -> str:
        heard((who, threading.current_thread() is threading.main_thread()))
        return f"hello {who}"

    async with scheduler:
        calls = await heard.wait_for(3)
        run = await scheduler.get_run((await ended(scheduler, "greet")).id)
    assert calls[:3] == [("A", False)] * 3
    assert run.status == "DONE"
    assert run.outcome is not None
    assert run.result == "hello A"
    assert asyncio.iscoroutinefunction(greet), "the decorated function is what it was"


async def test_jobs_are_added_while_it_runs(store_url, heard):
    """Its function was unknown when the node started: it is offered from now on, and the row says so."""
    scheduler = scheduler_for(store_url, poll_interval="1h")
    async with scheduler:

        def late(n: int) -> None:
            heard(n)

        made = await scheduler.add(late, in_="1ms", params={"n": 7})
        assert await heard.wait_for() == [7]
        run = await ended(scheduler, made.id)
        assert run.status == "DONE"

        async def offered() -> bool:
            return "function:late" in (await scheduler.service.list_nodes())[0].offers

        assert await until(offered, "the node's row names the new function")


async def test_each_is_called_once_at_its_instant_and_not_before(store_url, heard):
    """They are handed over before it. Database and test read the same clock."""
    scheduler = scheduler_for(store_url)

    async def note(due: int) -> None:
        heard((due, time.time() * 1000 - due))

    async with scheduler:
        base = int(time.time() * 1000) + 3000  # all of them are made before the first is due, on a busy machine too
        dues = [base + 10 * number for number in range(40)]
        made = [
            await scheduler.add(note, at=datetime.fromtimestamp(due / 1000, UTC).isoformat(), params={"due": due})
            for due in dues
        ]
        calls = await heard.wait_for(len(dues))
        runs = [await ended(scheduler, job.id) for job in made]
    late = dict(calls)
    assert sorted(due for due, _ in calls) == dues
    assert min(late.values()) >= 0
    for due, run in zip(dues, runs, strict=True):
        assert run.status == "DONE"
        assert run.lateness_ms is not None
        assert 0 <= run.lateness_ms <= late[due] + 1  # when it was called, not when that was told


async def test_a_timer_calls_an_address(store_url):
    async with EchoServer() as echo, scheduler_for(store_url) as scheduler:
        made = await scheduler.add(echo.url, in_="1ms")
        (arrival,) = await echo.wait_for(1)
        assert arrival.headers["x-onthedot-job"] == str(made.id)


async def test_a_key_replaces_and_no_key_makes_another(sqlite_url):
    scheduler = scheduler_for(sqlite_url)

    @scheduler.function("chore")
    def anything() -> None:
        raise AssertionError("an hour has not passed")

    async with scheduler:
        first = await scheduler.add("chore", every="1h", key="a")
        again = await scheduler.add(anything, every="2h", key="a")
        assert (first.id, first.version) == (again.id, again.version - 1)
        with pytest.raises(Conflict):
            await scheduler.add("chore", every="3h", key="a", replace=False)
        one, other = [await scheduler.add("chore", every="1h") for _ in range(2)]
        assert one.id != other.id
        assert {job.id async for job in scheduler.jobs()} == {first.id, one.id, other.id}
        assert (await scheduler.get("a")).id == (await scheduler.get(first.id)).id


async def test_the_verbs(store_url, heard):
    scheduler = scheduler_for(store_url)

    @scheduler.job(every="1h", key="chore")
    def chore() -> None:
        heard("called")

    async with scheduler:
        assert (await scheduler.pause("chore")).state == "paused"
        assert (await scheduler.resume("chore")).state == "active"
        run = await scheduler.run_now("chore")
        assert await heard.wait_for() == ["called"]
        assert (await ended(scheduler, "chore")).id == run.id
        await scheduler.remove("chore")
        with pytest.raises(NotFound):
            await scheduler.get("chore")


async def test_added_jobs_stay_and_undecorated_ones_go(store_url, heard):
    first = scheduler_for(store_url)
    first.function("work")(lambda: heard("first"))
    first.job(every="1h", key="kept")(_nothing)
    first.job(every="1h", key="dropped")(_nothing)
    async with first:
        made = await first.add("work", in_="1500ms", key="later")

    second = scheduler_for(store_url)
    second.function("work")(lambda: heard("second"))
    second.job(every="1h", key="kept")(_nothing)
    async with second:
        assert {job.key async for job in second.jobs()} >= {"kept", "later"}
        with pytest.raises(NotFound):
            await second.get("dropped")
        assert await heard.wait_for() == ["second"]
        run = await ended(second, made.id)
    assert run.status == "DONE"


async def test_to_add_a_job_again_keeps_its_pause_unless_the_call_says_otherwise(store_url):
    """As each start of the program does."""
    async with scheduler_for(store_url) as scheduler:
        await scheduler.add("https://example.com/", every="1h", key="mine")
        await scheduler.service.pause_job(1, (await scheduler.get("mine")).id, note="out of order")
        again = await scheduler.add("https://example.com/", every="2h", key="mine")
        assert again.state == "paused"
        assert again.pause is not None
        assert again.pause.note == "out of order"
        assert str(again.schedule.every) == "2h"
        said = await scheduler.add("https://example.com/", every="2h", key="mine", paused=False)
        assert said.state == "active"
        said = await scheduler.add("https://example.com/", every="2h", key="mine", paused=True)
        assert said.state == "paused"
        new = await scheduler.add("https://example.com/", every="2h", key="new", paused=True)
        assert new.state == "paused"


async def test_two_programs_on_one_store_leave_each_other_alone(postgres_url):
    one, other = scheduler_for(postgres_url, name="one"), scheduler_for(postgres_url, name="other")
    one.job(every="1h", key="of-one")(_nothing)
    other.job(every="1h", key="of-other")(_nothing)
    async with one, other:
        assert {job.key async for job in one.jobs()} == {"of-one", "of-other"}


def _nothing() -> None:
    raise AssertionError("an hour has not passed")


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"evry": "10s"}, "evry"),
        ({"every": "soon"}, "schedule.every"),
        ({"cron": "61 * * * *"}, "schedule.cron"),
        ({"every": "1s", "cron": "* * * * *"}, "schedule"),
        ({"every": "1s", "overlap": "sometimes"}, "policy.overlap"),
        ({"every": "1s", "retry": {"attempts": -1}}, "policy.retry.attempts"),
        ({}, "schedule"),
    ],
)
async def test_wrong_fields_are_named(sqlite_url, given, path):
    async with scheduler_for(sqlite_url) as scheduler:
        with pytest.raises(Invalid) as caught:
            await scheduler.add(_nothing, **given)
        assert path in [problem.path for problem in caught.value.problems]
        with pytest.raises(Invalid, match="not registered"):
            await scheduler.add("nobody", every="1h")
        assert [job async for job in scheduler.jobs()] == []


async def test_what_can_not_be_registered(sqlite_url):
    scheduler = scheduler_for(sqlite_url)
    with pytest.raises(ValueError, match="has no name"):
        scheduler.job(every="1h")(lambda: None)
    scheduler.job(every="1h")(_nothing)
    with pytest.raises(Conflict, match="duplicate job"):
        scheduler.job(every="2h")(_nothing)
    with pytest.raises(Conflict, match="is not running"):
        await scheduler.pause("x")
    async with scheduler:
        with pytest.raises(Conflict, match="is already running"):
            scheduler.job(every="1h", key="more")(_nothing)
        with pytest.raises(Conflict, match="is already running"):
            await scheduler.__aenter__()


async def test_a_slow_function_holds_up_nothing(store_url, heard):
    """It blocks its thread for longer than a beat; the beat goes on, and so do the others."""
    release = threading.Event()
    scheduler = scheduler_for(store_url, lease="2s")

    @scheduler.function()
    def stuck() -> None:
        heard("stuck")
        release.wait(30)

    @scheduler.function()
    async def quick() -> None:
        heard("quick")

    async with scheduler:
        await scheduler.add(stuck, in_="1ms")
        await heard.wait_for(1)
        (before,) = await scheduler.service.list_nodes()
        began = time.monotonic()
        for number in range(3):
            await scheduler.add(quick, in_="1ms")
            await heard.wait_for(2 + number)

        async def beats() -> bool:
            return (await scheduler.service.list_nodes())[0].beat_at > before.beat_at

        await until(beats, "another beat")
        assert time.monotonic() - began < 20
        assert heard.so_far() == ["stuck", "quick", "quick", "quick"]
        release.set()


async def test_failing_and_slow_ones_are_told(store_url):
    scheduler = scheduler_for(store_url)

    @scheduler.function()
    def breaks() -> None:
        logging.getLogger("mine").warning("about to break")
        raise RuntimeError("no luck")

    @scheduler.function()
    async def dawdles() -> None:
        await asyncio.Event().wait()

    async with scheduler:
        broken = await scheduler.add(breaks, in_="1ms", retry={"attempts": 1})
        slow = await scheduler.add(dawdles, in_="1ms", timeout="100ms", retry={"attempts": 1})
        run = await ended(scheduler, broken.id)
        assert (run.status, run.error) == ("FAILED", "RuntimeError: no luck")
        log = await scheduler.service.run_logs(1, run.id)
        assert "about to break" in (log or "")
        assert "no luck" in (log or "")
        late = await ended(scheduler, slow.id)
        assert late.status == "FAILED"
        assert late.outcome is not None
        assert late.outcome["kind"] == "timeout"


async def test_the_same_scheduler_may_run_again(sqlite_url, heard):
    scheduler = scheduler_for(sqlite_url)

    def called(n: int) -> None:
        heard(n)

    for number in range(2):
        async with scheduler:
            await scheduler.add(called, in_="1ms", params={"n": number})
            await heard.wait_for(number + 1)
    assert heard.so_far() == [0, 1]


def test_settings_are_those_of_a_node(sqlite_url):
    settings = Scheduler(sqlite_url, next_job_count=5).settings
    assert (settings.next_job_count, settings.roles, settings.concurrency) == (5, ("executor",), 100)
    checked: Callable[..., Scheduler] = Scheduler
    with pytest.raises(Exception, match="Did you mean NEXT_JOB_COUNT"):
        checked(sqlite_url, next_jobs_count=5)


async def test_a_plugin_that_fails_is_named_in_the_programs_own_logging(sqlite_url, caplog):
    async with scheduler_for(sqlite_url, targets={"pigeon": {}}) as scheduler:
        assert scheduler.settings.targets == {"pigeon": {}}
    said = [record.getMessage() for record in caplog.records if record.name == "onthedot"]
    assert said[0].startswith("plug-in pigeon can't be used: is not installed, but has settings in [targets.pigeon]")


async def test_failures_reach_the_programs_own_logging(store_url, caplog):
    scheduler = scheduler_for(store_url)

    @scheduler.function()
    def breaks() -> None:
        raise RuntimeError("no luck")

    @scheduler.function()
    def works() -> None:
        return None

    with caplog.at_level(logging.INFO, logger="onthedot"):
        async with scheduler:
            await scheduler.add(works, in_="1ms", key="fine")
            await scheduler.add(breaks, in_="1ms", key="broken", retry={"attempts": 2, "backoff": "10ms"})
            await ended(scheduler, "fine")
            await ended(scheduler, "broken")
    said = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "onthedot"]
    (retried,) = [text for level, text in said if level == "WARNING"]
    (failed,) = [text for level, text in said if level == "ERROR"]
    assert retried.startswith("job broken: run ")
    assert retried.endswith("failed (attempt 1) and will be retried: RuntimeError: no luck")
    assert failed.endswith("failed permanently: RuntimeError: no luck")
    assert not any("fine" in text for _, text in said)


async def test_dates_durations_and_zones_of_python_are_taken(sqlite_url):
    scheduler = scheduler_for(sqlite_url)
    berlin = ZoneInfo("Europe/Berlin")
    async with scheduler:
        aware = await scheduler.add(_nothing, at=datetime(2040, 6, 1, 9, tzinfo=berlin), key="aware")
        zoned = await scheduler.add(_nothing, at=datetime(2040, 6, 1, 9), tz=berlin, key="zoned")  # noqa: DTZ001
        naive = datetime(2040, 6, 1, 9)  # noqa: DTZ001  # the machine's local time
        local = await scheduler.add(_nothing, at=naive, key="local")
        often = await scheduler.add(
            _nothing,
            every=timedelta(minutes=1, milliseconds=500),
            start=date(2040, 1, 1),
            timeout=timedelta(seconds=5),
            retry={"attempts": 2, "backoff": timedelta(seconds=2)},
            key="often",
        )
    assert aware.next_run == zoned.next_run == "2040-06-01T07:00:00.000Z"
    assert local.next_run == f"{naive.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.000Z"
    assert str(often.schedule.every) == "1m500ms"
    assert often.next_run is not None
    assert often.next_run.startswith("2040-01-01T")
    assert (str(often.policy.timeout), str(often.policy.retry.backoff)) == ("5s", "2s")


@pytest.mark.parametrize(
    ("given", "path", "message"),
    [
        ({"every": timedelta(seconds=-1)}, "schedule.every", "can't be negative"),
        ({"every": timedelta(microseconds=1500)}, "schedule.every", "whole number of milliseconds"),
        ({"every": "1h", "retry": {"backoff": timedelta(-1)}}, "policy.retry.backoff", "can't be negative"),
        ({"cron": "0 3 * * *", "tz": timezone(timedelta(hours=1))}, "schedule.tz", "not a named time zone"),
        ({"every": "1h", "params": ["db"]}, "params", "must be a mapping"),
        ({"every": "1h", "params": "db"}, "params", "must be a mapping"),
    ],
)
async def test_what_can_not_be_taken_is_named(sqlite_url, given, path, message):
    with pytest.raises(Invalid) as caught:
        scheduler_for(sqlite_url).job(**given)(_nothing)
    (problem,) = caught.value.problems
    assert problem.path == path
    assert message in problem.message


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_run_ends_what_is_under_way_when_it_is_told_to_stop(tmp_path, number):
    """A program of its own: the run that has begun ends, is recorded, and the exit code is 0."""
    program = tmp_path / "program.py"
    program.write_text(
        "import asyncio\n"
        "from onthedot import Scheduler\n"
        f"scheduler = Scheduler('sqlite:///{tmp_path}/jobs.db')\n"
        "@scheduler.job(every='1h', catch_up='latest', start='2020-01-01T00:00:00Z')\n"
        "async def rare(): pass\n"
        "@scheduler.job(every='500ms', overlap='skip')\n"
        "async def slow():\n"
        "    print('began', flush=True)\n"
        "    await asyncio.sleep(1)\n"
        "    print('ended', flush=True)\n"
        "scheduler.run()\n"
        "print('drained', flush=True)\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, str(program), stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    async with asyncio.timeout(30):
        assert await process.stdout.readline() == b"began\n"
        process.send_signal(number)
        rest = await process.stdout.read()
        assert await process.wait() == 0
    assert rest.splitlines()[-2:] == [b"ended", b"drained"]
    again = scheduler_for(f"sqlite:///{tmp_path}/jobs.db")
    again.job(every="500ms", overlap="skip", key="slow", paused=True)(_nothing)
    async with again:
        statuses = [run.status for run in await again.runs("slow")]
    assert "DONE" in statuses
    assert "FAILED" not in statuses


async def test_functions_follow_each_other_and_get_the_trigger_if_they_ask_for_it(store_url: str, heard: Heard):
    """The decorators name each other in any order; a function that knows nothing of chains is called as ever."""
    scheduler = scheduler_for(store_url)

    @scheduler.job(at="2099-01-01T00:00:00Z", on_success=["report", "tidy"])
    def load(table: str = "orders") -> dict[str, Any]:
        return {"table": table}

    @scheduler.job(at="2099-01-01T00:00:00Z")
    async def report(trigger: dict[str, Any]) -> None:
        heard((trigger["job_key"], trigger["status"], trigger["result"]))

    @scheduler.job(at="2099-01-01T00:00:00Z")
    def tidy() -> None:
        heard("tidy")

    async with scheduler:
        run = await scheduler.run_now("load")
        assert sorted(await heard.wait_for(2), key=str) == [("load", "DONE", {"table": "orders"}), "tidy"]
        assert len((await scheduler.get_run(run.id)).followers or []) == 2
