"""Cron text, as people write it → six plain fields that cronsim reads.

Five fields (minute first) or six (second first); `*`, lists, ranges, steps, names; `L` and `LW` as the day of the
month, `5L` and `MON#2` as the day of the week; `?` as either day; `@daily` and its kin; and `H`, a value that is the
same for a job for ever but differs between jobs, so that a thousand "every night" jobs do not start in the same second.

Day-of-month and day-of-week together mean either, as in every cron since the seventies: `0 0 13 * FRI` is each 13th and
each Friday. If one of them begins with `*`, both must match (`0 0 */2 * MON`: Mondays that are odd days).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from onthedot.errors import FieldProblem, Invalid

__all__ = ["ACCEPTED_CRON", "FIELD_NAMES", "MAX_LENGTH", "long_steps", "parse_cron", "spread", "uses_hash"]

ACCEPTED_CRON = (
    '5 fields "minute hour day-of-month month day-of-week", 6 with seconds first, '
    "or @hourly, @daily, @weekly, @monthly, @yearly"
)
FIELD_NAMES = ("second", "minute", "hour", "day-of-month", "month", "day-of-week")
MAX_LENGTH = 1000
_LOW_HIGH = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_HASH_HIGH = (59, 59, 23, 28, 12, 6)  # day 28 exists in every month; 7 would be a second Sunday
_ACCEPTED_FIELD = (
    "0-59, *, lists, ranges, steps, H",
    "0-59, *, lists, ranges, steps, H",
    "0-23, *, lists, ranges, steps, H",
    "1-31, *, L, LW, lists, ranges, steps, H",
    "1-12 or JAN-DEC, *, lists, ranges, steps, H",
    "0-7 or SUN-SAT (0 and 7 are Sunday), *, 5L (last Friday), MON#2 (second Monday), lists, ranges, steps, H",
)
_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = {name: str(n) for n, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))}
_MONTHS = {name: str(n + 1) for n, name in enumerate(_MONTH_NAMES)}
_HASH = re.compile(r"H(?:\((\d{1,2})-(\d{1,2})\))?(?:/(\d{1,2}))?")
_NAME = re.compile(r"(?<![A-Z0-9/#])[A-Z]{3}(?=L?(?:$|[-/#]))")
_RANGE = re.compile(r"(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/(\d{1,4}))?")
_ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)  # cronsim wants to start somewhere; only what it parsed is used here
_LAST = {3: re.compile(r"L|LW"), 5: re.compile(r"[0-7]L|[0-7]#[1-5]")}


def parse_cron(text: str, seed: str = "") -> CronSim:
    """The parsed expression; its `parts` are six plain fields, no names, no `H`. Raises Invalid at `schedule.cron`."""
    raw = _fields(text)
    problems: list[FieldProblem] = []
    plain = []
    for index, field in enumerate(raw):
        try:
            plain.append(",".join(_plain_term(term, index, seed) for term in field.split(",")))
        except ValueError:
            problems.append(_field_problem(index, field))
    if problems:
        raise Invalid(problems)
    try:
        return CronSim(" ".join(plain), _ANY_DAY)
    except CronSimError:  # each field is fine by itself: what is left is a day that no named month has
        raise _bad(text, "never fires: none of the given months has this day", accepted="a date that exists") from None


def _fields(text: str) -> list[str]:
    if not text.isascii() or len(text) > MAX_LENGTH or not text.strip() or "\x00" in text:
        raise _bad(text, f"not a cron expression of 1 to {MAX_LENGTH} ASCII characters")
    if text.strip().startswith("@"):
        macro = text.strip().lower()
        if macro == "@reboot":
            raise _bad(text, "@reboot is not supported: jobs belong to the cluster, not to one machine")
        if macro not in _MACROS:
            raise _bad(text, "unknown macro", accepted=", ".join(_MACROS))
        text = _MACROS[macro]
    fields = text.upper().split()
    if len(fields) not in (5, 6):
        raise _bad(text, f"has {len(fields)} field{'s' if len(fields) != 1 else ''}, expected 5 or 6")
    return fields if len(fields) == 6 else ["0", *fields]


def _plain_term(term: str, index: int, seed: str) -> str:
    if term == "?" and index in (3, 5):
        return "*"
    if index >= 4:
        names = _MONTHS if index == 4 else _DAYS
        term = re.sub(r"-SUN\b", "-7", term) if index == 5 else term  # FRI-SUN: here Sunday ends the week
        term = _NAME.sub(lambda match: names.get(match[0], match[0]), term)
    if (match := _HASH.fullmatch(term)) is not None:
        return _plain_hash(match, index, seed)
    if (last := _LAST.get(index)) is not None and last.fullmatch(term):
        return term
    match = _RANGE.fullmatch(term)
    if match is None:
        raise ValueError(term)
    low, high = _LOW_HIGH[index]
    first, final = int(match[1] or low), int(match[2] or match[1] or high)
    if not low <= first <= final <= high or (match[3] is not None and int(match[3]) == 0):
        raise ValueError(term)
    return _closed(term)


def _closed(term: str) -> str:
    """ "5-5/2" → "5-5": cronsim takes a range of one value with a step for the open "5/2"."""
    span, _, _ = term.partition("/")
    low, dash, high = span.partition("-")
    return span if dash and int(low) == int(high) else term


def _plain_hash(match: re.Match[str], index: int, seed: str) -> str:
    low, high = _LOW_HIGH[index][0], _HASH_HIGH[index]
    if match[1] is not None:
        given_low, given_high = int(match[1]), int(match[2])
        if not _LOW_HIGH[index][0] <= given_low <= given_high <= _LOW_HIGH[index][1]:
            raise ValueError(match[0])
        low, high = given_low, given_high
    if match[3] is None:
        return str(low + spread(seed, index, high - low + 1))
    step = int(match[3])
    if step == 0:
        raise ValueError(match[0])
    return _closed(f"{low + spread(seed, index, min(step, high - low + 1))}-{high}/{step}")


def spread(seed: str, index: int, size: int) -> int:
    """0 … size-1, by seed and field. SHA-256, because Python's own `hash` differs from process to process."""
    digest = hashlib.sha256(f"{index}:{seed}".encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % size


def uses_hash(text: str) -> bool:
    return not text.lstrip().startswith("@") and any(
        term.startswith("H") for field in text.upper().split() for term in field.split(",")
    )


def long_steps(parts: Sequence[str]) -> list[FieldProblem]:
    """Fields with a step that leads out of the field: `*/90` minutes is not every 90 minutes, but once an hour. Jobs
    that were made with one go on; nobody makes a new one."""
    found = []
    for index, part in enumerate(parts):
        low, high = _LOW_HIGH[index]
        for term in part.split(","):
            step = term.partition("/")[2]
            if step.isdecimal() and int(step) > high - low + 1:
                name = FIELD_NAMES[index]
                found.append(
                    FieldProblem(
                        path="schedule.cron",
                        message=f"a step of {step} is longer than the {name} field",
                        given=term,
                        accepted=f'a step up to {high - low + 1} in the {name} field; "every" for longer intervals',
                    )
                )
    return found


def _field_problem(index: int, field: str) -> FieldProblem:
    return FieldProblem(
        path="schedule.cron",
        message=f"the {FIELD_NAMES[index]} field is not valid",
        given=field[:200],
        accepted=_ACCEPTED_FIELD[index],
    )


def _bad(text: str, message: str, accepted: str = ACCEPTED_CRON) -> Invalid:
    return Invalid.one("schedule.cron", message, given=text[:200], accepted=accepted)
