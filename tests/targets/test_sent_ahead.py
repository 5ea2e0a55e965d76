"""Calls that are sent ahead: whatever dies, is cancelled or takes its time, each is run at most once, answered once."""

from __future__ import annotations

import asyncio
import collections
import os
import random
import signal
import time
from pathlib import Path

import msgspec
import psutil
import pytest

from onthedot.model.run import Outcome
from onthedot.targets.contract import Ended, Stop
from onthedot.targets.function.estimates import Throughput
from onthedot.targets.function.pool import WorkerPool
from tests.services.waiting import until
from tests.targets.bench import Bench
from tests.targets.conftest import Log
from tests.targets.processes import gone
from tests.targets.sending import NotBegun, send

NOTE = """
    import os, sys, time
    book = None
    def note(number, path, spin=0.0, end=False):
        global book
        if book is None:
            book = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(book, b"%d\\n" % number)
        if spin:
            until = time.monotonic() + spin
            while time.monotonic() < until: pass
        if end:
            os._exit(9)
    def block(path):
        return open(path).read()
"""


def noted(book: Path) -> collections.Counter[int]:
    return collections.Counter(int(line) for line in book.read_text().split())


async def test_what_became_another_nodes_while_it_waited_is_not_run(bench: Bench, tmp_path: Path):
    """As in a process that was frozen while all workers were busy; here the first one is yet to be started."""
    name, book = bench.define(NOTE), tmp_path / "book"
    stale = bench.tell(f"{name}:note", lambda at: None, number=1, path=str(book))
    stale = msgspec.structs.replace(stale, may_begin=lambda: False)
    answers = await asyncio.gather(
        send(bench.functions, stale), bench.call(f"{name}:note", number=2, path=str(book)), return_exceptions=True
    )
    assert isinstance(answers[0], NotBegun)
    assert isinstance(answers[1], Outcome)
    assert answers[1].ok
    assert noted(book) == {2: 1}


async def test_killed_at_random_each_call_is_run_once_at_most_and_answered_once(bench: Bench, tmp_path: Path):
    """kill -9 of workers under load. A call fails only if it was the one that ran: one a kill, and no more."""
    name, book, dice = bench.define(NOTE), tmp_path / "book", random.Random(7)
    bench.functions._workers = WorkerPool(3, [str(tmp_path)])
    await bench.warm(f"{name}:note", number=-1, path=str(book))
    os.truncate(book, 0)
    total, kills = 3000, 0
    answered = 0

    async def one(number: int) -> str | None:
        nonlocal answered
        outcome = await bench.call(f"{name}:note", number=number, path=str(book), spin=dice.choice([0, 0, 0, 0.0005]))
        answered += 1
        assert outcome.ok or "SIGKILL" in (outcome.error or ""), outcome
        return outcome.error

    async def kill_some() -> None:
        nonlocal kills
        while kills < 40 and answered < total:
            next_kill = min(total, answered + dice.randrange(1, 80))
            await until(lambda after=next_kill: answered >= after, "more are answered")  # type: ignore[misc]
            if victims := [pid for pid in bench.pids if not gone(pid)]:
                os.kill(dice.choice(victims), signal.SIGKILL)
                kills += 1

    left = iter(range(total))

    async def some() -> dict[int, str | None]:
        return {number: await one(number) for number in left}

    *results, _ = await asyncio.gather(*(some() for _ in range(150)), kill_some())
    errors = {number: error for result in results if result is not None for number, error in result.items()}
    assert len(errors) == total
    seen = noted(book)
    assert max(seen.values()) == 1
    failed = {number for number, error in errors.items() if error is not None}
    assert set(seen) >= set(range(total)) - failed
    assert kills > 5
    assert len(failed) <= kills


async def test_cancelled_at_random_nobody_else_suffers(bench: Bench, tmp_path: Path):
    name, book, dice = bench.define(NOTE), tmp_path / "book", random.Random(11)
    await bench.warm(f"{name}:note", number=-1, path=str(book))
    os.truncate(book, 0)
    cancelled: set[int] = set()

    async def one(number: int) -> None:
        call = asyncio.ensure_future(
            bench.call(f"{name}:note", number=number, path=str(book), spin=dice.choice([0, 0, 0.0005, 0.02]))
        )
        if dice.random() < 0.1:
            for _ in range(dice.randrange(20)):
                await asyncio.sleep(0)
            call.cancel()
        await asyncio.wait([call])
        if call.cancelled():
            cancelled.add(number)
        else:
            assert call.result().ok, call.result()

    left = iter(range(1200))

    async def some() -> None:
        for number in left:
            await one(number)

    await asyncio.gather(*(some() for _ in range(100)))
    seen = noted(book)
    assert max(seen.values()) == 1
    assert set(seen) >= set(range(1200)) - cancelled
    assert cancelled


async def test_a_function_that_ends_its_process_costs_nobody_behind_it(bench: Bench, tmp_path: Path):
    name, book = bench.define(NOTE), tmp_path / "book"
    await bench.warm(f"{name}:note", number=-1, path=str(book))
    os.truncate(book, 0)
    calls = [bench.call(f"{name}:note", number=n, path=str(book), end=n % 50 == 25) for n in range(400)]
    outcomes = await asyncio.gather(*calls)
    for number, outcome in enumerate(outcomes):
        assert outcome.ok is (number % 50 != 25)
        assert outcome.ok or "exit code 9" in (outcome.error or "")
    assert noted(book) == collections.Counter(range(400))


async def test_nothing_waits_behind_a_call_that_takes_its_time(bench: Bench, tmp_path: Path):
    """They were sent ahead to the same worker, since the call was expected to be short."""
    fifo, book = tmp_path / "go", tmp_path / "book"
    os.mkfifo(fifo)
    name = bench.define(NOTE + "    def either(number, path, long):\n        return (block if long else len)(path)\n")
    either = f"{name}:either"
    await bench.warm(either, number=0, path=str(book), long=False)
    long = asyncio.ensure_future(bench.call(either, number=1, path=str(fifo), long=True))
    short = [bench.call(either, number=2, path=str(book), long=False) for _ in range(100)]
    assert all(outcome.ok for outcome in await asyncio.gather(*short))
    assert not long.done()
    await asyncio.to_thread(fifo.write_text, "went")
    assert (await long).detail == {"result": "went"}


async def test_what_is_printed_belongs_to_the_call_that_printed_it(bench: Bench):
    name = bench.define("""
        import ctypes, logging, os, subprocess, sys
        puts = ctypes.CDLL(None).puts
        def say(number):
            match number % 5:
                case 0: print(number)
                case 1: os.write(2, b"%d\\n" % number)
                case 2: puts(b"%d" % number)
                case 3: logging.warning("%d", number)
            if number % 97 == 0:
                subprocess.run(["echo", str(number)])
    """)
    await bench.warm(f"{name}:say", number=4)
    logs = [Log() for _ in range(500)]
    await asyncio.gather(*(bench.call(f"{name}:say", log=log, number=n) for n, log in enumerate(logs)))
    for number, log in enumerate(logs):
        words = log.text.replace("WARNING root:", "").split()
        expected = (number % 5 != 4) + (number % 97 == 0)
        assert words[-expected:] == [str(number)] * expected if expected else words == []


async def test_short_calls_use_every_process(bench: Bench):
    name = bench.define("import os\ndef work(): return os.getpid()")
    await bench.warm(f"{name}:work")

    async def burst() -> set[int]:
        outcomes = await asyncio.gather(*(bench.call(f"{name}:work") for _ in range(2000)))
        return {outcome.detail["result"] for outcome in outcomes}

    await burst()  # for which a second process is worth its start; the first may be through before that one is there
    await until(lambda: len(bench.pids) == 2)
    assert await burst() == set(bench.pids)


async def test_more_is_welcome_only_while_calls_are_short(bench: Bench, tmp_path: Path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    name = bench.define(NOTE)
    assert bench.functions.ahead() == 0
    await bench.warm(f"{name}:note", number=1, path=str(tmp_path / "book"))
    assert 0 < bench.functions.ahead() <= 1000
    blocked = [asyncio.ensure_future(bench.call(f"{name}:block", path=str(fifo))) for _ in range(3)]
    await until(lambda: len(bench.functions._workers._all) == 2 and bench.functions._workers._waiting)
    await until(lambda: bench.functions.ahead() == 0)
    for task in blocked:
        task.cancel()
    await asyncio.wait(blocked)


async def test_who_finds_no_worker_may_go_elsewhere(bench: Bench, tmp_path: Path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    name = bench.define(NOTE)
    busy = [asyncio.ensure_future(bench.call(f"{name}:block", path=str(fifo))) for _ in range(2)]
    await asyncio.sleep(0)
    told: list[float] = []
    with pytest.raises(NotBegun):
        await send(bench.functions, bench.tell(f"{name}:block", told.append, path=str(fifo)))
    assert told == []
    for task in busy:
        task.cancel()
    await asyncio.wait(busy)


async def test_a_call_that_waited_says_when_it_began(bench: Bench, tmp_path: Path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    name = bench.define(NOTE)
    told: list[float] = []
    asked = time.monotonic()
    await send(bench.functions, bench.tell(f"{name}:note", told.append, number=1, path=str(tmp_path / "book")))
    (began,) = told  # it waited for the process to start
    assert asked < began <= time.monotonic()
    await bench.warm(f"{name}:note", number=1, path=str(tmp_path / "book"))
    told.clear()
    long = asyncio.ensure_future(send(bench.functions, bench.tell(f"{name}:block", told.append, path=str(fifo))))
    await until(lambda: any(worker.in_long_call for worker in bench.functions._workers._all))
    assert len(told) == 1  # at once, or when the node saw it
    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long


async def test_cancelled_before_it_begins_it_says_so(bench: Bench, tmp_path: Path):
    name = bench.define(NOTE)
    call = asyncio.ensure_future(send(bench.functions, bench.tell(f"{name}:block", lambda at: None, path="never")))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(NotBegun):
        await call


async def test_a_worker_that_stands_still_holds_up_nobody_else(bench: Bench, tmp_path: Path):
    """SIGSTOP: what was sent to it and not begun goes to another one."""
    name, book = bench.define(NOTE), tmp_path / "book"
    note = f"{name}:note"
    await bench.warm(note, number=-1, path=str(book))
    os.truncate(book, 0)
    (frozen,) = bench.pids[:1]
    os.kill(frozen, signal.SIGSTOP)
    calls = [asyncio.ensure_future(bench.call(note, number=n, path=str(book))) for n in range(100)]
    await until(lambda: sum(call.done() for call in calls) >= 99)
    os.kill(frozen, signal.SIGCONT)
    assert all(outcome.ok for outcome in await asyncio.gather(*calls))
    assert noted(book) == collections.Counter(range(100))


async def test_what_does_not_fit_a_message_arrives_whole_and_can_be_taken_back(bench: Bench, tmp_path: Path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    name = bench.define("def work(text, path):\n    return len(text) if path is None else len(open(path).read())\n")
    work = f"{name}:work"
    await bench.warm(work, text="", path=None)
    long = asyncio.ensure_future(bench.call(work, text="", path=str(fifo)))
    sizes = [10, 15_000, 16_500, 70_000, 1_000_000] * 4
    outcomes = await asyncio.gather(*(bench.call(work, text="x" * size, path=None) for size in sizes))
    assert [outcome.detail["result"] for outcome in outcomes] == sizes
    long.cancel()
    await asyncio.wait([long])


async def test_a_worker_that_grows_is_replaced(bench: Bench):
    name = bench.define("import os\nkept = []\ndef work():\n    kept.append(b'x' * 40_000)\n    return os.getpid()")
    bench.functions._workers = WorkerPool(1, bench.functions._workers._import_paths)
    pids = [(await bench.call(f"{name}:work")).detail["result"] for _ in range(2100)]
    assert len(set(pids)) == 2  # looked at after 1,000 calls, and after 2,000: 80 MB later


async def test_a_worker_that_does_not_grow_stays(bench: Bench):
    name = bench.define("import os\ndef work(): return os.getpid()")
    bench.functions._workers = WorkerPool(1, bench.functions._workers._import_paths)
    pids = [(await bench.call(f"{name}:work")).detail["result"] for _ in range(2100)]
    assert len(set(pids)) == 1


async def test_after_a_reload_nothing_begins_in_an_old_worker(bench: Bench, tmp_path: Path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    name = bench.define("def work(path):\n    return open(path).read() if path else 'old'\n")
    work = f"{name}:work"
    bench.functions._workers = WorkerPool(1, [str(tmp_path)])
    await bench.warm(work, path=None)
    long = asyncio.ensure_future(bench.call(work, path=str(fifo)))
    await until(lambda: bench.functions._workers._all[0].in_long_call)
    behind = [asyncio.ensure_future(bench.call(work, path=None)) for _ in range(5)]
    await asyncio.sleep(0)
    (tmp_path / f"{name}.py").write_text("def work(path):\n    return 'newer'\n")
    await bench.functions.reload()
    await asyncio.to_thread(fifo.write_text, "went")
    assert (await long).detail == {"result": "went"}  # it was begun before
    assert [(await task).detail["result"] for task in behind] == ["newer"] * 5


async def test_whoever_waits_when_the_pool_closes_is_told(bench: Bench, tmp_path: Path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    name = bench.define(NOTE)
    calls = [asyncio.ensure_future(bench.call(f"{name}:block", path=str(fifo))) for _ in range(5)]
    await until(lambda: len(bench.pids) == 2)
    pids = bench.pids
    await bench.functions._workers.close()
    outcomes = await asyncio.gather(*calls)
    assert all(not outcome.ok and outcome.retryable for outcome in outcomes)
    assert not any(psutil.pid_exists(pid) for pid in pids)


async def test_a_call_that_cannot_be_sent_fails_alone(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    name = bench.define("def work(text): return len(text)")
    assert (await bench.call(f"{name}:work", text="")).ok

    def none_left(name: str) -> int:
        raise OSError("too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(os, "memfd_create", none_left)
        outcome = await bench.call(f"{name}:work", text="x" * 100_000)
        assert outcome.retryable
        assert outcome.error == "can't send the call to the worker process: too many open files"
    assert (await bench.call(f"{name}:work", text="x" * 100_000)).detail == {"result": 100_000}
    assert len(bench.pids) == 1


async def test_a_call_that_is_refused_says_so_once(bench: Bench):
    told: list[Ended] = []
    handle = bench.functions.start(bench.tell("os:system", lambda at: None), time.monotonic(), told.append)
    assert handle.stop("cancelled") is Stop.ENDED
    await asyncio.sleep(0)
    (ended,) = told
    assert ended.outcome is not None
    assert ended.outcome.kind == "refused"


async def test_a_deep_queue_is_not_given_up_while_it_moves(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Only what stands still is given up: many short calls may wait for longer than one that finds no process."""
    monkeypatch.setattr("onthedot.targets.function.pool._TOO_LONG", 60.0)
    book = tmp_path / "book"
    note = f"{bench.define(NOTE)}:note"
    told: list[float] = []
    calls = [bench.tell(note, told.append, number=n, path=str(book), spin=0.002) for n in range(300)]
    assert all(outcome.ok for outcome in await asyncio.gather(*(send(bench.functions, call) for call in calls)))
    assert noted(book) == collections.Counter(range(300))
    assert max(told) - min(told) > 0.1


async def test_what_waits_for_too_long_may_go_elsewhere_although_others_end(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("onthedot.targets.function.pool._TOO_LONG", 0.05)
    book = tmp_path / "book"
    note = f"{bench.define(NOTE)}:note"
    await bench.call(note, number=0, path=str(book))
    calls = [bench.tell(note, lambda at: None, number=n, path=str(book), spin=0.002) for n in range(1, 301)]
    outcomes = await asyncio.gather(*(send(bench.functions, call) for call in calls), return_exceptions=True)
    done = [n for n, outcome in enumerate(outcomes, 1) if not isinstance(outcome, BaseException)]
    assert 0 < len(done) < 300
    assert {type(outcome) for outcome in outcomes if isinstance(outcome, BaseException)} == {NotBegun}
    assert noted(book) == collections.Counter([0, *done]), "what was given up did not run"


def test_how_many_are_welcome_follows_what_ended():
    """A quarter of a second of work; less when they get slower, never for want of calls."""
    flow = Throughput()
    flow.look(1.0, busy=True)
    assert flow.soon == 0
    now = 1.0
    for _ in range(40):
        flow.ended, now = 50, now + 0.025
        flow.look(now, busy=False)
    assert 490 <= flow.soon <= 500
    flow.ended = 1
    flow.look(now + 0.025, busy=False)
    assert 490 <= flow.soon <= 500, "there was nothing more to do"
    flow.ended = 1_000_000
    flow.look(now + 5, busy=True)
    assert 490 <= flow.soon <= 500, "they were idle"
    now += 5
    for _ in range(40):
        flow.ended, now = 10, now + 0.025
        flow.look(now, busy=True)
    assert 98 <= flow.soon <= 105
    for _ in range(40):
        flow.ended, now = 1000, now + 0.025
        flow.look(now, busy=True)
    assert flow.soon == 1000
