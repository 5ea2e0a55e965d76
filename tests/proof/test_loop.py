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


def test_who_spins_is_told_and_time_goes_on(loop):
    async def spins(until):
        while loop.time() < until:
            await asyncio.sleep(0)

    async def story():
        spinning = loop.create_task(spins(1.0))
        await asyncio.sleep(2)
        await spinning

    loop.run_until_complete(story())
    assert loop.time() == pytest.approx(2, abs=0.1)
    assert "something spins" in loop.errors[0]


def test_what_fails_is_told_by_name(loop):
    async def story():
        loop.call_soon(int, "seven")
        loop.outside_later(0.1, int, "eight")
        await asyncio.sleep(1)

    loop.run_until_complete(story())
    assert [error.partition(":")[0] for error in loop.errors] == ["int", "int"]


def test_what_belongs_to_no_process_is_never_frozen(loop):
    place, seen = Place("frozen"), []

    async def sleeper():
        await loop.pause(1)
        seen.append(round(loop.time()))

    async def story():
        task = loop.create_task(sleeper(), context=place.context)
        await asyncio.sleep(0.5)
        loop.freeze(place)
        loop.outside_later(1, seen.append, "outside")
        await asyncio.sleep(2.5)
        assert seen == ["outside"]
        loop.thaw(place)
        await task

    loop.run_until_complete(story())
    assert seen == ["outside", 3]


def test_tasks_stand_in_a_set_in_their_order_wherever_they_lie_in_memory(loop):
    async def nothing():
        return None

    async def story():
        ballast, tasks = [], []
        for number in range(30):
            ballast.append([object() for _ in range(number * 7 % 11)])
            tasks.append(loop.create_task(nothing(), name=f"t{number}"))
            if number % 3:
                ballast.pop(0)
        numbers = [hash(task) for task in tasks]
        assert numbers == list(range(numbers[0], numbers[0] + 30))
        assert set(tasks) < asyncio.all_tasks()
        await asyncio.wait(set(tasks))

    loop.run_until_complete(story())


def test_a_cancelled_timer_does_not_come(loop):
    seen: list[str] = []

    async def story():
        loop.call_later(1, seen.append, "later").cancel()
        loop.call_soon(seen.append, "soon").cancel()
        await asyncio.sleep(2)

    loop.run_until_complete(story())
    assert seen == []


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
