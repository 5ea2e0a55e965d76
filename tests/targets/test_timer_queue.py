"""Calls that wait for their instant: none before it, each once, and what is taken back never."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from math import inf

from onthedot.clock import SystemClock
from onthedot.targets.inprocess.timer_queue import TimerQueue
from tests.services.waiting import until_blocking


class HandClock(SystemClock):
    """A clock that the test sets, of any thread, and an alarm that it lets expire."""

    def __init__(self) -> None:
        self.now = 100.0
        self.set_for = inf
        self.closed = False
        self.expire: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        return self.now

    def alarm(self, callback: Callable[[], None]) -> HandClock:
        self.expire = callback
        return self

    def set(self, seconds: float) -> None:
        self.set_for = self.now + seconds

    def close(self) -> None:
        self.closed = True


class WithoutAlarm(SystemClock):
    """The real time; nothing expires."""

    def alarm(self, callback: Callable[[], None]) -> HandClock:
        return HandClock()


def table(clock: HandClock) -> tuple[TimerQueue[str], list[list[str]]]:
    begun: list[list[str]] = []
    made: TimerQueue[str] = TimerQueue(clock, lambda: begun.append(made.due()))
    return made, begun


def test_each_begins_at_its_instant_and_in_their_order():
    clock = HandClock()
    timetable, begun = table(clock)
    for at, name in ((100.3, "c"), (100.1, "a"), (100.2, "b")):
        timetable.add(at, name)
    assert timetable.due() == []
    assert clock.set_for == 100.1
    clock.now = 100.0999
    clock.expire()  # a hair too early: nothing begins, and it is set again
    clock.set_for, before = inf, clock.set_for
    clock.expire()
    assert (begun, before, clock.set_for) == ([[], []], 100.1, 100.1)
    clock.now = 100.25
    clock.expire()
    assert begun[-1] == ["a", "b"]
    assert (clock.set_for, timetable.wakes_at) == (100.3, 100.3)
    clock.now = 101.0
    assert timetable.due() == ["c"]
    assert timetable.wakes_at == inf


def test_they_are_woken_only_for_what_they_would_sleep_beyond():
    clock = HandClock()
    timetable, _ = table(clock)
    assert timetable.add(105.0, "first")
    assert timetable.due() == []
    assert not timetable.add(106.0, "later")
    assert not timetable.add(105.0, "with it")
    assert timetable.add(104.0, "before")


def test_what_is_taken_back_never_begins_and_what_has_begun_is_not_taken_back():
    clock = HandClock()
    timetable, _ = table(clock)
    timetable.add(100.1, "wanted")
    timetable.add(100.1, "not wanted")
    assert timetable.take_back("not wanted")
    assert not timetable.take_back("not wanted")
    clock.now = 100.1
    assert timetable.due() == ["wanted"]
    assert not timetable.take_back("wanted")


def test_the_alarm_is_set_once_for_an_instant():
    clock = HandClock()
    timetable, _ = table(clock)
    timetable.add(101.0, "a")
    timetable.due()
    clock.set_for = inf
    timetable.add(102.0, "b")
    timetable.due()
    assert clock.set_for == inf
    timetable.close()
    assert clock.closed


def test_an_alarm_that_was_never_needed_is_not_closed():
    clock = HandClock()
    timetable, _ = table(clock)
    timetable.close()
    assert not clock.closed


def test_two_threads_never_both_have_one_and_none_is_forgotten():
    """One adds and takes back at random, the other begins what is due. Whoever is told to wake the other does so; the
    other sleeps as long as it said."""
    clock, rng, n = WithoutAlarm(), random.Random(7), 20_000
    timetable: TimerQueue[int] = TimerQueue(clock, lambda: None)
    wake, over, begun = threading.Event(), threading.Event(), Counter[int]()

    def over_there() -> None:
        while not over.is_set():
            begun.update(timetable.due())
            wake.wait(min(1.0, max(0.0, timetable.wakes_at - clock.monotonic())))
            wake.clear()

    thread = threading.Thread(target=over_there)
    thread.start()
    taken_back = Counter[int]()
    for number in range(n):
        if timetable.add(clock.monotonic() + rng.uniform(-0.001, 0.003), number):
            wake.set()
        if rng.random() < 0.5 and timetable.take_back(back := rng.randint(max(0, number - 20), number)):
            taken_back[back] += 1
    until_blocking(lambda: begun.total() + taken_back.total() >= n, "all of them")
    over.set()
    wake.set()
    thread.join()
    assert begun + taken_back == Counter(range(n))
    assert begun.total() > n / 10
    assert taken_back.total() > n / 10
