"""One sleeper for all timeouts: each at its instant, none for what ended in time."""

from __future__ import annotations

import asyncio
import functools

from onthedot.engine.running.deadlines import Deadlines


async def test_expires_in_order_and_not_before(fake_clock):
    deadlines, expired = Deadlines(fake_clock), []
    deadlines.set(2.0, lambda: expired.append("second"))
    deadlines.set(1.0, lambda: expired.append("first"))
    await deadlines.step()  # woken by the new head
    assert expired == []
    step = asyncio.ensure_future(deadlines.step())
    await fake_clock.advance(0.999)
    assert expired == []
    await fake_clock.advance(0.001)
    assert step.done()
    assert expired == ["first"]
    step = asyncio.ensure_future(deadlines.step())
    await fake_clock.advance(1.0)
    assert step.done()
    assert expired == ["first", "second"]


async def test_what_ended_in_time_does_not_expire(fake_clock):
    deadlines, expired = Deadlines(fake_clock), []
    entry = deadlines.set(1.0, lambda: expired.append("never"))
    deadlines.clear(entry)
    await fake_clock.advance(2.0)
    deadlines.expire(fake_clock.monotonic())
    assert expired == []
    assert len(deadlines) == 0


async def test_an_answer_that_has_come_but_was_not_heard_yet_is_in_time(fake_clock):
    """The loop was busy over the deadline: what lies in the socket is read before anything is called a time-out."""
    deadlines, expired = Deadlines(fake_clock), []
    entry = deadlines.set(1.0, lambda: expired.append("answered"))
    deadlines.set(1.0, lambda: expired.append("silent"))
    await fake_clock.advance(2.0)

    async def hear() -> None:
        await asyncio.sleep(0)  # the socket is read, and who waits for it is told
        deadlines.clear(entry)

    await asyncio.gather(deadlines.step(), hear())
    assert expired == ["silent"]


async def test_a_new_earlier_deadline_wakes_it(fake_clock):
    deadlines, expired = Deadlines(fake_clock), []
    step = asyncio.ensure_future(deadlines.step())
    await fake_clock.advance(100)
    assert not step.done()  # nothing to wait for
    deadlines.set(100.5, lambda: expired.append("soon"))
    await fake_clock.settle()
    assert step.done()
    step = asyncio.ensure_future(deadlines.step())
    await fake_clock.advance(0.5)
    assert step.done()
    assert expired == ["soon"]


async def test_long_timeouts_of_short_runs_are_swept_out(fake_clock):
    deadlines = Deadlines(fake_clock)
    expired: list[object] = []
    kept = [deadlines.set(3600.0 + n, functools.partial(expired.append, n)) for n in range(10)]
    for _ in range(5000):
        deadlines.clear(deadlines.set(3600.0, lambda: expired.append("swept")))
    assert len(deadlines) < 2000
    deadlines.clear(kept[0])
    await fake_clock.advance(3700)
    deadlines.expire(fake_clock.monotonic())
    assert expired == list(range(1, 10))
