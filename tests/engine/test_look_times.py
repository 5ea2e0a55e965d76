"""When to look into the store: what many write down and the Timer reads."""

from __future__ import annotations

import pytest

from onthedot.clock import FakeClock
from onthedot.engine.look_times import LookTimes, NextLook
from onthedot.engine.tuning import LOOK_GAP


@pytest.fixture
async def times(fake_clock: FakeClock) -> LookTimes:
    """Somebody has just looked, and the next poll is far away."""
    times = LookTimes(fake_clock)
    assert times.due(fake_clock.monotonic(), None), "the first look is at once"
    times.looked(fake_clock.monotonic(), None, gap=100.0)
    await fake_clock.advance(LOOK_GAP)
    return times


async def test_each_reason_to_look_earlier_wakes_and_no_later_one(times, fake_clock):
    for tell, wakes in (
        (lambda: times.look_within(5.0), True),
        (lambda: times.look_within(6.0), False),
        (lambda: times.retry_at(900), True),
        (lambda: times.retry_at(950), False),
        (lambda: times.after_claim("webhook", NextLook(at_ms=800)), True),
        (lambda: times.after_claim("webhook", NextLook(at_ms=850)), False),
        (lambda: times.after_claim("webhook", NextLook()), False),
        (times.ask, True),
    ):
        tell()
        assert times.wake.is_set() is wakes
        if wakes:
            await times.wake.wait()


async def test_a_pause_forbids_claims_and_ends_with_a_look(times, fake_clock):
    now = fake_clock.monotonic()
    times.pause(2.0)
    times.pause(0.5)
    assert times.no_claim_before == now + 2.0
    assert times.seconds_left(now, None) == pytest.approx(0.5)


async def test_before_the_time_is_known_nothing_is_expected(times, fake_clock):
    times.retry_at(5)
    now = fake_clock.monotonic()
    assert times.seconds_left(now, None) > 50
    assert not times.due(now, None)
    assert times.due(now, 5000)


async def test_what_was_looked_for_is_done_and_the_rest_is_not(times, fake_clock):
    times.retry_at(5)
    times.after_claim("webhook", NextLook(at_ms=9))
    now = fake_clock.monotonic()
    times.looked(now, 5000, gap=100.0)
    assert not times.due(now + 1, 8999)
    assert times.due(now + 1, 9000)
