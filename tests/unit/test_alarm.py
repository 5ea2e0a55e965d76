"""Alarms: once for each setting, the last setting counts, precise where the kernel helps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from onthedot.clock import Alarm, FakeClock, SystemClock, _LoopAlarm
from onthedot.timerfd import KernelTimer

FILES = Path("/proc/self/fd")


class Calls:
    def __init__(self) -> None:
        self.count = 0
        self.heard = asyncio.Event()

    def note(self) -> None:
        self.count += 1
        self.heard.set()


async def heard(calls: Calls) -> None:
    async with asyncio.timeout(10):
        await calls.heard.wait()
    calls.heard.clear()


@pytest.mark.parametrize("make", [SystemClock().alarm, KernelTimer, _LoopAlarm])
async def test_it_calls_once_for_each_setting_and_not_before(make: Callable[[Callable[[], None]], Alarm]):
    calls, clock = Calls(), SystemClock()
    alarm = make(calls.note)
    for _ in range(3):
        began = clock.monotonic()
        alarm.set(0.0037)
        await heard(calls)
        assert clock.monotonic() - began >= 0.0030
    assert calls.count == 3
    alarm.close()


@pytest.mark.parametrize("make", [KernelTimer, _LoopAlarm])
async def test_the_last_setting_counts(make: Callable[[Callable[[], None]], Alarm]):
    first, last = Calls(), Calls()
    alarm, other = make(first.note), make(last.note)
    alarm.set(0.001)
    alarm.set(100)
    other.set(0.05)
    await heard(last)
    assert first.count == 0
    alarm.set(0.001)
    alarm.close()
    other.set(0.05)
    await heard(last)
    assert first.count == 0
    other.close()
    other.close()


async def test_a_timer_of_the_kernel_is_not_early_and_leaves_no_file_behind():
    before = len(list(FILES.iterdir()))
    calls, clock = Calls(), SystemClock()
    alarm = KernelTimer(calls.note)
    began = clock.monotonic()
    alarm.set(0.0123)
    await heard(calls)
    assert clock.monotonic() - began >= 0.0123 - 1e-6
    alarm.close()
    assert len(list(FILES.iterdir())) == before


async def test_a_fake_clock_calls_when_it_is_turned(fake_clock: FakeClock):
    calls = Calls()
    alarm = fake_clock.alarm(calls.note)
    alarm.set(5)
    await fake_clock.advance(4.9)
    alarm.set(5)
    await fake_clock.advance(4.9)
    assert calls.count == 0
    await fake_clock.advance(0.1)
    assert calls.count == 1
    alarm.set(1)
    alarm.close()
    await fake_clock.advance(2)
    assert calls.count == 1
