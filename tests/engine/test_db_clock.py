"""The database's time as this node reads it: late by the way back at most, early never."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onthedot import telemetry
from onthedot.clock import FakeClock
from onthedot.engine.membership.db_clock import DatabaseClock

EPOCH = 1_700_000_000_000


def seen(clock: FakeClock, *answers: tuple[int, float, float]) -> DatabaseClock:
    time = DatabaseClock(clock)
    for stamp, sent, arrived in answers:
        time.observe(stamp, sent, arrived)
    return time


async def at(clock: FakeClock, seconds: float) -> None:
    """That instant and a few microseconds: halves are rounded to the late side."""
    await clock.advance(seconds - clock.monotonic() + 3e-6)


async def test_unknown_until_the_first_answer(fake_clock):
    time = DatabaseClock(fake_clock)
    assert [time.known] == [False]
    time.observe(EPOCH, 0.0, 0.0)
    assert time.known
    assert time.now_ms() == EPOCH


async def test_moves_with_the_monotonic_clock_and_not_with_the_wall_clock(fake_clock):
    time = seen(fake_clock, (EPOCH, 0.0, 0.0))
    fake_clock.step_wall(3_600_000)
    await fake_clock.advance(1.5)
    assert time.now_ms() == EPOCH + 1500


async def test_errs_late_by_the_way_back(fake_clock):
    await at(fake_clock, 0.020)
    time = seen(fake_clock, (EPOCH, 0.0, 0.020))  # taken anywhere in these 20 ms
    assert time.now_ms() == EPOCH
    assert time.seconds_until(EPOCH + 5) == pytest.approx(0.005, abs=1e-5)


async def test_the_quickest_answer_of_the_last_seconds_counts(fake_clock):
    time = seen(fake_clock, (EPOCH, 0.0, 0.030), (EPOCH + 1000, 0.999, 1.001), (EPOCH + 2000, 2.0, 2.040))
    await at(fake_clock, 2.040)
    assert time.now_us() == pytest.approx((EPOCH + 1000) * 1000 + 1_039_000, abs=5)


async def test_old_answers_are_forgotten(fake_clock):
    time = seen(fake_clock, (EPOCH, 0.0, 0.001))
    for second in range(1, 8):
        time.observe(EPOCH + second * 1000, second - 0.001, second + 0.010)
    await at(fake_clock, 8.0)
    assert time.now_us() == pytest.approx((EPOCH + 8000) * 1000 - 10_000, abs=5)


@pytest.mark.parametrize("frozen", [4.0, 7.0, 25.0])
async def test_an_answer_that_lay_in_a_frozen_process_does_not_displace_what_was_known(fake_clock, frozen):
    time = seen(fake_clock, (EPOCH, 0.0, 0.001), (EPOCH + 1001, 1.0, 1.0 + frozen))  # stamped right before the freeze
    await at(fake_clock, 1.0 + frozen)
    assert time.now_us() == pytest.approx((EPOCH + 1000) * 1000 + frozen * 1e6 - 1000, abs=5)
    thawed = 1.0 + frozen
    time.observe(EPOCH + 1000 + int(frozen * 1000) + 5, thawed, thawed + 0.010)  # the first question after it
    await at(fake_clock, thawed + 0.010)
    assert time.now_us() == pytest.approx((EPOCH + 1000) * 1000 + frozen * 1e6 + (9000 if frozen < 5 else 5000), abs=5)


async def test_a_database_clock_set_back_is_believed_at_once(fake_clock):
    time = seen(fake_clock, (EPOCH, 0.0, 0.001), (EPOCH + 1000 - 200, 1.0, 1.001))
    await at(fake_clock, 1.001)
    assert time.now_ms() == EPOCH + 800


async def test_a_database_clock_set_ahead_is_believed_at_once(fake_clock):
    time = seen(fake_clock, (EPOCH, 0.0, 0.001), (EPOCH + 3_600_000, 1.0, 1.001))
    await at(fake_clock, 1.001)
    assert time.now_ms() == EPOCH + 3_600_000
    time.observe(EPOCH + 2000, 2.0, 2.001)  # and back again: the jump ahead must not linger in the window
    await at(fake_clock, 2.001)
    assert time.now_ms() == EPOCH + 2000


async def test_a_slow_answer_is_no_jump(fake_clock):
    time = seen(fake_clock, (EPOCH, 0.0, 0.001), (EPOCH + 1001, 1.0, 3.0))  # stamped in time, two seconds on its way
    await at(fake_clock, 3.0)
    assert time.now_ms() == EPOCH + 2999


@given(
    offset_us=st.integers(-10_000_000, 10_000_000),
    answers=st.lists(
        st.tuples(st.integers(1, 900_000), st.integers(0, 300_000), st.integers(0, 300_000)), min_size=1, max_size=30
    ),
)
def test_never_ahead_of_the_database(offset_us, answers):
    """Whatever the delays: what we take for the database's time is not later than it is."""
    time = DatabaseClock(FakeClock())
    monotonic = 20_000_000
    for gap, there, back in answers:
        sent = monotonic + gap
        stamped = sent + there
        arrived = stamped + back
        time.observe((stamped + offset_us) // 1000, sent / 1e6, arrived / 1e6)
        monotonic = arrived
        assert -time.offset_us <= offset_us + 1


@pytest.mark.parametrize(("by", "told", "back"), [(-3_600_000, True, 1), (3_600_000, True, 0), (-900, False, 0)])
async def test_a_clock_that_was_set_is_told(fake_clock, by, told, back):
    said: list[int] = []
    stop = telemetry.subscribe(lambda event: said.append(event.fields["by_ms"]) if event.name == "clock.set" else None)
    try:
        time = seen(fake_clock, (EPOCH, 0.0, 0.001), (EPOCH + 1000 + by, 1.0, 1.001), (EPOCH + 2000 + by, 2.0, 2.001))
    finally:
        stop()
    assert time.set_back == back
    assert [abs(ms - by) <= 5 for ms in said] == [True] * told
