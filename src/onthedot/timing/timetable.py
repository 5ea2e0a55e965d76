"""Compiled schedules: what every kind can answer, and the kinds that are plain arithmetic."""

from __future__ import annotations

from typing import Protocol

__all__ = ["COUNT_LIMIT", "Bounded", "Every", "Once", "Timetable"]

COUNT_LIMIT = 10_000


class Timetable(Protocol):
    """A compiled schedule. Slots are instants in ms since the epoch; `count` is not its business (plan counts)."""

    @property
    def one_off(self) -> bool: ...

    def next_after(self, t: int) -> int | None:
        """The first slot strictly after `t`; None: there is none any more."""
        ...

    def latest_until(self, t: int) -> int | None:
        """The newest slot at or before `t`; None: there was none yet."""
        ...

    def is_slot(self, t: int) -> bool: ...

    def count_between(self, after: int, until: int, limit: int = COUNT_LIMIT) -> int | None:
        """How many slots lie in (after, until]; None if they are more than `limit`."""
        ...


class Once:
    """`at` and `in`: one slot."""

    __slots__ = ("slot",)
    one_off = True

    def __init__(self, slot: int) -> None:
        self.slot = slot

    def next_after(self, t: int) -> int | None:
        return self.slot if t < self.slot else None

    def latest_until(self, t: int) -> int | None:
        return self.slot if self.slot <= t else None

    def is_slot(self, t: int) -> bool:
        return t == self.slot

    def count_between(self, after: int, until: int, limit: int = COUNT_LIMIT) -> int | None:
        return within(limit, int(after < self.slot <= until))


class Every:
    """`every`: elapsed UTC time from a first slot on; no zone and no boot shifts it."""

    __slots__ = ("first", "last", "step")
    one_off = False

    def __init__(self, first: int, step: int, last: int) -> None:
        self.first, self.step, self.last = first, step, last

    def next_after(self, t: int) -> int | None:
        slot = self.first if t < self.first else t + self.step - (t - self.first) % self.step
        return slot if slot <= self.last else None

    def latest_until(self, t: int) -> int | None:
        t = min(t, self.last)
        return t - (t - self.first) % self.step if t >= self.first else None

    def is_slot(self, t: int) -> bool:
        return self.first <= t <= self.last and (t - self.first) % self.step == 0

    def count_between(self, after: int, until: int, limit: int = COUNT_LIMIT) -> int | None:
        return within(limit, max(0, self._rank(until) - self._rank(after)))

    def _rank(self, t: int) -> int:
        """How many slots are at or before `t`."""
        return max(0, (min(t, self.last) - self.first) // self.step + 1)


class Bounded:
    """Another timetable between `start` and `end`, both included."""

    __slots__ = ("end", "inner", "start")

    def __init__(self, inner: Timetable, start: int, end: int) -> None:
        self.inner, self.start, self.end = inner, start, end

    @property
    def one_off(self) -> bool:
        return self.inner.one_off

    def next_after(self, t: int) -> int | None:
        slot = self.inner.next_after(max(t, self.start - 1))
        return slot if slot is not None and slot <= self.end else None

    def latest_until(self, t: int) -> int | None:
        slot = self.inner.latest_until(min(t, self.end))
        return slot if slot is not None and slot >= self.start else None

    def is_slot(self, t: int) -> bool:
        return self.start <= t <= self.end and self.inner.is_slot(t)

    def count_between(self, after: int, until: int, limit: int = COUNT_LIMIT) -> int | None:
        after, until = max(after, self.start - 1), min(until, self.end)
        return self.inner.count_between(after, until, limit) if after < until else within(limit, 0)


def within(limit: int, count: int) -> int | None:
    return count if count <= limit else None
