"""The loop with virtual time: jumps, freezes, kills."""

from __future__ import annotations

import asyncio

import pytest

from proof.sim.clocks import DatabaseTime, ProcessClock
from proof.sim.loop import Deadlock, Place, VirtualLoop, at_once


@pytest.fixture
def loop():
    loop = VirtualLoop()
    yield loop
    loop.close()


def test_time_jumps_to_the_next_timer(loop):
    async def sleep_long():
        await asyncio.sleep(3600)
        return loop.time()

    assert loop.run_until_complete(sleep_long()) == pytest.approx(3600, abs=0.001)


def test_sleepers_wake_in_order(loop):
    woken = []

    async def sleeper(seconds):
        await asyncio.sleep(seconds)
        woken.append(seconds)

    async def all_of_them():
        await asyncio.gather(*(sleeper(seconds) for seconds in (3, 1, 2)))

    loop.run_until_complete(all_of_them())
    assert woken == [1, 2, 3]


def test_nothing_left_to_do_is_an_error(loop):
    with pytest.raises(Deadlock):
        loop.run_until_complete(loop.create_future())


def test_a_frozen_place_stands_still_and_is_late_afterwards(loop):
    place, seen = Place("frozen"), []

    async def ticking():
        while True:
            await asyncio.sleep(1)
            seen.append(round(loop.time()))

    async def story():
        task = loop.create_task(ticking(), context=place.context)
        await asyncio.sleep(2.5)
        loop.freeze(place)
        await asyncio.sleep(7.5)
        assert seen == [1, 2]
        loop.thaw(place)
        await asyncio.sleep(0.5)
        task.cancel()

    loop.run_until_complete(story())
    assert seen == [1, 2, 10]


def test_what_a_frozen_place_spawned_is_frozen_too(loop):
    place, seen = Place("frozen"), []

    async def child():
        await asyncio.sleep(1)
        seen.append("child")

    async def parent():
        await asyncio.gather(child(), child())

    async def story():
        task = loop.create_task(parent(), context=place.context)
        await asyncio.sleep(0.5)
        loop.freeze(place)
        await asyncio.sleep(5)
        assert seen == []
        loop.thaw(place)
        await task

    loop.run_until_complete(story())
    assert seen == ["child", "child"]


def test_at_once_refuses_what_waits(loop):
    async def ready():
        return 7

    async def waits():
        await asyncio.sleep(1)

    async def story():
        assert at_once(ready()) == 7
        with pytest.raises(RuntimeError, match="not supposed to wait"):
            at_once(waits())

    loop.run_until_complete(story())


def test_clocks_differ_and_jump(loop):
    database, process = DatabaseTime(loop, 1_000_000), ProcessClock(loop, 2_000_000, 50.0)

    async def story():
        await asyncio.sleep(1)
        assert database.now_ms() == 1_001_000
        assert process.now_ms() == 2_001_000
        assert process.monotonic() == pytest.approx(51, abs=0.001)
        process.jump(-3_600_000)
        database.step(-500)
        assert process.now_ms() == 2_001_000 - 3_600_000
        assert process.monotonic() == pytest.approx(51, abs=0.001)
        assert database.now_ms() == 1_000_500
        assert database.highest == 1_001_000

    loop.run_until_complete(story())
