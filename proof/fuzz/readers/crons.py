"""Cron text: refused with Invalid or a timetable whose slots agree with each other, in a bounded time."""

from __future__ import annotations

import random

from onthedot.errors import Invalid
from onthedot.model.schedule import Schedule
from onthedot.timing.cron import CronTimetable
from onthedot.timing.describe import describe
from proof.fuzz.reader import Reader, Wrong

__all__ = ["CRONS"]

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca")
STARTS = (1_770_000_000_000, 1_774_746_000_000, 1_793_480_400_000)


def check(raw: bytes, rng: random.Random) -> bool:
    text, zone = raw.decode("latin-1"), ZONES[rng.randrange(len(ZONES))]
    try:
        table = CronTimetable(text, zone, "seed")
    except Invalid:
        return False
    at = STARTS[rng.randrange(len(STARTS))] + rng.randrange(86_400_000)
    for _ in range(2):
        slot = table.next_after(at)
        if slot is None:
            break
        if slot <= at or not table.is_slot(slot) or table.latest_until(slot) != slot:
            raise Wrong(f"{text!r} in {zone}: after {at} comes {slot}, slot {table.is_slot(slot)}")
        before = table.latest_until(slot - 1)
        if before is not None and before > at:
            raise Wrong(f"{text!r} in {zone}: after {at} comes {slot}, but {before} lies between")
        at = slot
    if not describe(Schedule(cron=text, tz=zone), "seed"):
        raise Wrong("no words for it")
    return True


CRONS = Reader(
    "crons",
    check,
    (
        b"0 3 * * *",
        b"*/5 * * * *",
        b"30 2 * * *",
        b"0 0 29 2 *",
        b"0 0 L * *",
        b"0 0 LW * ?",
        b"0 9 * * MON#2",
        b"0 9 * * 5L",
        b"H H(1-5) * * *",
        b"* * * * * *",
        b"0 0 1,15 JAN-MAR,DEC FRI-SUN",
        b"@daily",
        b"15 10 */2 * MON",
    ),
    (
        b"*", b"/", b"-", b",", b" ", b"?", b"L", b"LW", b"W", b"#", b"H", b"H(", b")", b"@", b"@hourly", b"@reboot",
        b"SUN", b"7", b"MON", b"JAN", b"DEC",
        b"29", b"30", b"31", b"*/7", b"0-59", b"1-5/2",
    ),
)  # fmt: skip
