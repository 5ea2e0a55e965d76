"""The supervisor, with workers that live and die as a test says."""

from __future__ import annotations

import asyncio
import signal

import pytest
import structlog

from onthedot.clock import FakeClock
from onthedot.errors import OnTheDotError
from onthedot.launcher import supervisor
from onthedot.launcher.supervisor import GIVE_UP, HEALTHY, Supervisor
from onthedot.settings import Settings


class FakePipe:
    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


class FakeWorker:
    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.stdin = FakePipe()
        self.stays = False  # it drains for long
        self.returncode: int | None = None
        self.signals: list[int] = []
        self._over = asyncio.Event()

    async def wait(self) -> int:
        await self._over.wait()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int, /) -> None:
        self.signals.append(number)
        if number == signal.SIGTERM and not self.stays:
            self.end(0)

    def end(self, code: int) -> None:
        self.returncode = code
        self._over.set()


class Hall:
    """Where workers come from."""

    def __init__(self) -> None:
        self.workers: list[FakeWorker] = []

    async def start(self, number: int) -> FakeWorker:
        self.workers.append(FakeWorker(1000 + len(self.workers)))
        return self.workers[-1]


@pytest.fixture
def hall() -> Hall:
    return Hall()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def test_all_seats_are_taken_and_left_together(hall, clock):
    supervisor = Supervisor(3, hall.start, clock)
    running = asyncio.create_task(supervisor.run())
    await clock.settle()
    assert len(hall.workers) == 3
    supervisor.stop()
    await running
    assert all(worker.signals[0] == signal.SIGTERM for worker in hall.workers)
    assert len(hall.workers) == 3


async def test_who_dies_is_replaced_at_once(hall, clock):
    supervisor = Supervisor(2, hall.start, clock)
    running = asyncio.create_task(supervisor.run())
    await clock.advance(HEALTHY + 1)
    hall.workers[0].end(-9)
    await clock.settle()
    assert len(hall.workers) == 3
    supervisor.stop()
    await running


async def test_who_dies_young_is_replaced_after_a_pause(hall, clock):
    supervisor = Supervisor(1, hall.start, clock)
    running = asyncio.create_task(supervisor.run())
    await clock.settle()
    hall.workers[0].end(1)
    await clock.settle()
    assert len(hall.workers) == 1
    await clock.advance(0.5)
    assert len(hall.workers) == 2
    supervisor.stop()
    await running


async def test_it_gives_up_on_what_can_not_live_and_stops_the_others(hall, clock):
    supervisor = Supervisor(2, hall.start, clock)
    running = asyncio.create_task(supervisor.run())
    await clock.settle()
    survivor = hall.workers[1]
    for _ in range(GIVE_UP):
        next(worker for worker in hall.workers if worker is not survivor and worker.returncode is None).end(3)
        await clock.advance(3.3)
    with pytest.raises(OnTheDotError, match="exited 5 times in a row right after starting, last with exit code 3"):
        await running
    assert survivor.signals == [signal.SIGTERM]


async def test_a_long_life_makes_up_for_early_deaths(hall, clock):
    supervisor = Supervisor(1, hall.start, clock)
    running = asyncio.create_task(supervisor.run())
    for _ in range(3 * GIVE_UP):
        await clock.advance(HEALTHY + 1)
        hall.workers[-1].end(1)
    await clock.settle()
    assert not running.done()
    supervisor.stop()
    await running


async def test_a_stop_during_the_pause_is_heard(hall, clock):
    supervisor = Supervisor(1, hall.start, clock)
    running = asyncio.create_task(supervisor.run())
    await clock.settle()
    hall.workers[0].end(1)
    await clock.settle()
    supervisor.stop()
    await running
    assert len(hall.workers) == 1


async def test_the_second_stop_is_no_second_signal_which_could_merge_with_the_first(hall, clock):
    supervisor = Supervisor(2, hall.start, clock)
    running = asyncio.create_task(supervisor.run())
    await clock.settle()
    for worker in hall.workers:
        worker.stays = True
    supervisor.stop()
    assert not any(worker.stdin.closed for worker in hall.workers)
    supervisor.stop_at_once()
    assert all(worker.stdin.closed for worker in hall.workers)
    assert [worker.signals for worker in hall.workers] == [[signal.SIGTERM]] * 2
    for worker in hall.workers:
        worker.end(0)
    await running


@pytest.mark.parametrize("at_once", [False, True])
async def test_a_worker_that_was_being_started_is_told_too(hall: Hall, clock: FakeClock, at_once: bool):
    started = asyncio.Event()

    async def slowly(number: int) -> FakeWorker:
        await started.wait()
        return await hall.start(number)

    supervisor = Supervisor(1, slowly, clock)
    running = asyncio.create_task(supervisor.run())
    await clock.settle()
    supervisor.stop_at_once() if at_once else supervisor.stop()
    started.set()
    await running
    assert hall.workers[0].signals == [signal.SIGTERM]
    assert hall.workers[0].stdin.closed is at_once


async def test_other_signals_reach_all_who_live(hall, clock):
    supervisor = Supervisor(2, hall.start, clock)
    running = asyncio.create_task(supervisor.run())
    await clock.settle()
    supervisor.forward(signal.SIGHUP)
    assert [worker.signals for worker in hall.workers] == [[signal.SIGHUP]] * 2
    supervisor.stop()
    await running


async def test_a_store_that_is_away_is_left_to_the_workers(free_port):
    """They wait for it; the supervisor only says what it knows."""
    url = f"postgresql://postgres@127.0.0.1:{free_port()}/none?timeout=1"
    with structlog.testing.capture_logs() as said:
        told = await supervisor._told(Settings(store=url, workers=2), None, 8000)
    assert "2 processes" in told
    assert [line["event"] for line in said] == ["store unavailable; workers will wait for it"]
