"""The clerk that writes what runs print while they run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from onthedot.clock import FakeClock
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.running.live_logs import LiveLogWriter
from onthedot.engine.running.run_log import RunLog
from onthedot.engine.tuning import LIVE_LOG_EVERY, LIVE_LOG_PORTION
from onthedot.errors import StoreUnavailable
from onthedot.store import LiveLog
from tests.engine.making import claimed


class Shelf:
    def __init__(self) -> None:
        self.logs: dict[str, str] = {}
        self.puts = 0
        self.away = False

    async def put_live_logs(self, logs: Sequence[LiveLog]) -> None:
        self.puts += 1
        if self.away:
            raise StoreUnavailable("away")
        self.logs.update({log.run_id: log.text for log in logs})

    async def drop_live_logs(self, ended: Sequence[tuple[str, int]]) -> None:
        for run_id, _ in ended:
            del self.logs[run_id]


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
async def clerk(shelf: Shelf, fake_clock: FakeClock):
    clerk = LiveLogWriter(store=shelf, clock=fake_clock, health=StoreHealth())

    async def work() -> None:
        while True:
            await clerk.step()

    task = asyncio.create_task(work())
    yield clerk
    task.cancel()


def printing(slot: int = 1000) -> RunLog:
    return RunLog(claimed(f"1-{slot}"), None)


def say(clerk: LiveLogWriter, log: RunLog, text: str) -> None:
    log.write(text)
    clerk.wrote(log)


async def test_a_portion_a_moment_and_gone_at_the_end(clerk, shelf, fake_clock):
    log = printing()
    say(clerk, log, "one\n")
    say(clerk, log, "two\n")
    assert shelf.logs == {}
    await fake_clock.advance(LIVE_LOG_EVERY)
    assert list(shelf.logs.values()) == ["one\ntwo\n"]
    say(clerk, log, "three\n")
    await fake_clock.advance(LIVE_LOG_EVERY)
    assert list(shelf.logs.values()) == ["one\ntwo\nthree\n"]
    await fake_clock.advance(10 * LIVE_LOG_EVERY)
    assert shelf.puts == 2, "nothing new, nothing written"
    clerk.ended(log)
    await fake_clock.advance(LIVE_LOG_EVERY)
    assert shelf.logs == {}


async def test_a_run_that_ends_at_once_costs_the_store_nothing(clerk, shelf, fake_clock):
    log = printing()
    say(clerk, log, "quick\n")
    clerk.ended(log)
    await fake_clock.advance(10 * LIVE_LOG_EVERY)
    assert shelf.puts == 0


async def test_runs_that_print_much_take_turns(clerk, shelf, fake_clock):
    logs = [printing(slot) for slot in range(LIVE_LOG_PORTION // 65536 + 5)]
    for log in logs:
        say(clerk, log, "x" * 70_000)
    await fake_clock.advance(LIVE_LOG_EVERY)
    assert len(shelf.logs) == LIVE_LOG_PORTION // 65536
    await fake_clock.advance(LIVE_LOG_EVERY)
    assert len(shelf.logs) == len(logs)
    assert {len(text) for text in shelf.logs.values()} == {65536}


async def test_a_store_that_is_away_stops_nothing(clerk, shelf, fake_clock):
    log = printing()
    shelf.away = True
    say(clerk, log, "one\n")
    await fake_clock.advance(LIVE_LOG_EVERY)
    shelf.away = False
    say(clerk, log, "two\n")
    await fake_clock.advance(LIVE_LOG_EVERY)
    assert list(shelf.logs.values()) == ["one\ntwo\n"]
