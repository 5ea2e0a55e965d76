"""A cron expression on one wall clock that never changes: which seconds of local time match.

cronsim parses and says which days match; the search is ours, because cronsim walks second by second where a bisection
will do and gives up after 50 years. Which days of a month match depends only on its length and first weekday, so 28
small tables cover all years, and 400 years without a match are searched in under a millisecond.

Times here are "walls": seconds since 1970-01-01 00:00 on that wall clock.
"""

from __future__ import annotations

import calendar
from bisect import bisect_left, bisect_right
from datetime import date

from cronsim import CronSim

__all__ = ["Walls"]

_DAY = 86_400
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


class Walls:
    """The matching walls of one expression, in order."""

    def __init__(self, cron: CronSim) -> None:
        self._cron = cron
        self._seconds, self._minutes, self._hours = sorted(cron.seconds), sorted(cron.minutes), sorted(cron.hours)
        self._days: dict[tuple[int, int], tuple[int, ...]] = {}
        self.a_day = len(self._seconds) * len(self._minutes) * len(self._hours)
        self._first = self._hours[0] * 3600 + self._minutes[0] * 60 + self._seconds[0]
        self._last = self._hours[-1] * 3600 + self._minutes[-1] * 60 + self._seconds[-1]

    def possible(self) -> bool:
        """Is there any day at all? Over 400 years each month begins on each weekday, leap Februaries included."""
        return any(self._days_in(year, month) for year in range(2000, 2028) for month in range(1, 13)) or any(
            self._days_in(year, month) for year in range(2028, 2400) for month in range(1, 13)
        )

    def at_or_after(self, wall: int, before: int) -> int | None:
        """The first match in [wall, before)."""
        day, second = divmod(wall, _DAY)
        if second > self._last:
            day, second = day + 1, 0
        found = self._day_from(day, before // _DAY)
        if found is None:
            return None
        result = found * _DAY + (self._first if found > day else self._second_from(second))
        return result if result < before else None

    def at_or_before(self, wall: int, since: int) -> int | None:
        """The last match in [since, wall]."""
        day, second = divmod(wall, _DAY)
        if second < self._first:
            day, second = day - 1, _DAY - 1
        found = self._day_until(day, since // _DAY)
        if found is None:
            return None
        result = found * _DAY + (self._last if found < day else self._second_until(second))
        return result if result >= since else None

    def count(self, since: int, before: int, limit: int) -> int:
        """How many matches are in [since, before); may stop counting past `limit`."""
        if since >= before:
            return 0
        (first, head), (last, tail) = divmod(since, _DAY), divmod(before, _DAY)
        total, day = 0, self._day_from(first, last)
        while day is not None and total <= limit:
            total += (self._rank(tail) if day == last else self.a_day) - (self._rank(head) if day == first else 0)
            day = self._day_from(day + 1, last) if day < last else None
        return total

    def _days_in(self, year: int, month: int) -> tuple[int, ...]:
        if month not in self._cron.months:
            return ()
        shape = calendar.monthrange(year, month)
        days = self._days.get(shape)
        if days is None:
            days = tuple(d for d in range(1, shape[1] + 1) if self._cron.match_day(date(year, month, d)))
            self._days[shape] = days
        return days

    def _day_from(self, day: int, until: int) -> int | None:
        """The first matching day (days since 1970) from `day` to `until`, both included."""
        begin = date.fromordinal(day + _EPOCH_ORDINAL)
        year, month, dom = begin.year, begin.month, begin.day
        first = day - dom  # day 0 of the month
        while first < until:
            days = self._days_in(year, month)
            at = bisect_left(days, dom)
            if at < len(days):
                return first + days[at] if first + days[at] <= until else None
            first += calendar.monthrange(year, month)[1]
            year, month, dom = (year, month + 1, 1) if month < 12 else (year + 1, 1, 1)
        return None

    def _day_until(self, day: int, since: int) -> int | None:
        """The last matching day from `since` to `day`, both included."""
        begin = date.fromordinal(day + _EPOCH_ORDINAL)
        year, month, dom = begin.year, begin.month, begin.day
        first = day - dom
        while True:
            days = self._days_in(year, month)
            at = bisect_right(days, dom)
            if at:
                return first + days[at - 1] if first + days[at - 1] >= since else None
            if first < since:
                return None
            year, month, dom = (year, month - 1, 31) if month > 1 else (year - 1, 12, 31)
            first -= calendar.monthrange(year, month)[1]

    def _second_from(self, second: int) -> int:
        """The first matching second of the day at or after `second`; the caller knows there is one."""
        hour, rest = divmod(second, 3600)
        minute, second = divmod(rest, 60)
        h = self._hours[bisect_left(self._hours, hour)]
        if h > hour or rest > self._minutes[-1] * 60 + self._seconds[-1]:
            h = h if h > hour else self._hours[bisect_right(self._hours, hour)]
            return h * 3600 + self._minutes[0] * 60 + self._seconds[0]
        m = self._minutes[bisect_left(self._minutes, minute)]
        if m > minute or second > self._seconds[-1]:
            m = m if m > minute else self._minutes[bisect_right(self._minutes, minute)]
            return h * 3600 + m * 60 + self._seconds[0]
        return h * 3600 + m * 60 + self._seconds[bisect_left(self._seconds, second)]

    def _second_until(self, second: int) -> int:
        """The last matching second of the day at or before `second`; the caller knows there is one."""
        hour, rest = divmod(second, 3600)
        minute, second = divmod(rest, 60)
        h = self._hours[bisect_right(self._hours, hour) - 1]
        if h < hour or rest < self._minutes[0] * 60 + self._seconds[0]:
            h = h if h < hour else self._hours[bisect_left(self._hours, hour) - 1]
            return h * 3600 + self._minutes[-1] * 60 + self._seconds[-1]
        m = self._minutes[bisect_right(self._minutes, minute) - 1]
        if m < minute or second < self._seconds[0]:
            m = m if m < minute else self._minutes[bisect_left(self._minutes, minute) - 1]
            return h * 3600 + m * 60 + self._seconds[-1]
        return h * 3600 + m * 60 + self._seconds[bisect_right(self._seconds, second) - 1]

    def _rank(self, second: int) -> int:
        """How many matching seconds of a day are before `second`."""
        hour, rest = divmod(second, 3600)
        minute, second = divmod(rest, 60)
        h, m, s = (
            bisect_left(*pair) for pair in ((self._hours, hour), (self._minutes, minute), (self._seconds, second))
        )
        count = h * len(self._minutes) * len(self._seconds)
        if h < len(self._hours) and self._hours[h] == hour:
            count += m * len(self._seconds)
            if m < len(self._minutes) and self._minutes[m] == minute:
                count += s
        return count
