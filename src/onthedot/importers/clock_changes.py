"""Chooses, among expressions that mean the same on ordinary days, the one that does as the source when clocks change.

The source's own firings are the measure: the next ones, and all around the clock changes of the next year.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from onthedot.errors import Invalid
from onthedot.importers.cron_sets import NotExpressible
from onthedot.model.duration import DAY, HOUR
from onthedot.model.instant import format_instant
from onthedot.model.schedule import Schedule
from onthedot.timing import check_schedule, compile_schedule
from onthedot.timing.zones import stretch_at

__all__ = ["FittedCron", "NextFiring", "fit_cron", "next_of"]

NextFiring = Callable[[int], int | None]
"""The first firing after an instant, both in ms."""

COMPARED = 20
AHEAD = 364 * DAY  # each change of a year once: what differs in one year is not outweighed by the next
AROUND = 4 * HOUR
MOST = 20_000
"""Firings that are compared around one change: an expression with seconds has an hour's worth of them."""
SHOWN = 3


class FittedCron(msgspec.Struct, frozen=True, kw_only=True):
    """An expression, and how its firings differ from those of the source when clocks change: empty if they do not."""

    cron: str
    differences: list[str]


def next_of(cron: str, tz: str) -> NextFiring:
    return compile_schedule(Schedule(cron=cron, tz=tz), anchor=0).next_after


def fit_cron(texts: Iterable[str], tz: str, expected: NextFiring | None, *, now: int) -> FittedCron:
    """The first text that fires as `expected`, else the one with the fewest differences when clocks change. Raises
    NotExpressible if no text fires as expected on ordinary days, or if none is valid."""
    best: FittedCron | None = None
    refused = ""
    for text in dict.fromkeys(texts):
        try:
            check_schedule(Schedule(cron=text, tz=tz), now=now)
            found = next_of(text, tz)
        except Invalid as invalid:
            refused = refused or str(invalid)
            continue
        if expected is None:
            return FittedCron(cron=text, differences=[])
        differing = _differing(expected, found, tz, now)
        if differing is None:
            refused = refused or f"{text!r} fires at other times"
            continue
        if best is None or _rank(text, differing) < _rank(best.cron, best.differences):
            best = FittedCron(cron=text, differences=differing)
        if not differing:
            break
    if best is None:
        raise NotExpressible(refused or "no cron expression means the same")
    return FittedCron(cron=best.cron, differences=_shortened(best.differences))


def _rank(text: str, differing: list[str]) -> tuple[int, bool]:
    """The fewest differences; of two with as many, the one that fires a repeated time once, unless it is each hour."""
    *time, hours = text.split()[:-3] or [""]
    return len(differing), hours != "*" and any(mark in " ".join((*time, hours)) for mark in "*-/")


def _differing(expected: NextFiring, found: NextFiring, tz: str, now: int) -> list[str] | None:
    """What differs when clocks change; None if the next firings differ for another reason."""
    changes = list(_changes(tz, now))
    windows = [(change - AROUND, change + AROUND) for change in changes]
    last, count = now, 0
    while count < COMPARED and (slot := expected(last)) is not None:
        last, count = slot, count + 1
    differing: dict[int, str] = {}
    for begin, end in ((now, max(last, now + 1)), *windows):
        theirs, ours = _slots(expected, begin, end), _slots(found, begin, end)
        for slot in sorted(theirs ^ ours):
            if not any(low <= slot <= high for low, high in windows):
                return None
            who = (
                "the source fires and this job does not" if slot in theirs else "this job fires and the source does not"
            )
            differing[slot] = f"at {format_instant(slot)} {who}"
    return [differing[slot] for slot in sorted(differing)]


def _slots(following: NextFiring, begin: int, end: int) -> set[int]:
    slots: set[int] = set()
    at = following(begin)
    while at is not None and at <= end and len(slots) < MOST:
        slots.add(at)
        at = following(at)
    return slots


def _changes(tz: str, now: int) -> Iterator[int]:
    """When clocks change in this zone, from a day ago on."""
    stretch = stretch_at(tz, now - DAY)
    while stretch.end < now + AHEAD:
        following = stretch_at(tz, stretch.end)
        if following.offset != following.before:
            yield following.start
        stretch = following


def _shortened(differences: list[str]) -> list[str]:
    more = len(differences) - SHOWN
    return differences if more <= 0 else [*differences[:SHOWN], f"and {more} more such times within a year"]
