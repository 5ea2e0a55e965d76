"""Durations: `90` (seconds), "200ms", "1.5s", "5m", "1h30m", "2d", "PT90S". Kept as whole milliseconds."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

__all__ = ["ACCEPTED_DURATIONS", "DAY", "HOUR", "MINUTE", "SECOND", "Duration"]

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
ACCEPTED_DURATIONS = 'seconds as a number, or text such as "200ms", "1.5s", "90s", "5m", "1h30m", "2d", "PT90S"'

_UNITS = {"d": DAY, "h": HOUR, "m": MINUTE, "s": SECOND, "ms": 1}
_PARTS = re.compile(r"(\d+(?:\.\d+)?)(ms|d|h|m|s)", re.ASCII)
_ISO = re.compile(
    r"P(?:(\d+(?:\.\d+)?)W)?(?:(\d+(?:\.\d+)?)D)?"
    r"(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?",
    re.ASCII,
)
_ISO_UNITS = (7 * DAY, DAY, HOUR, MINUTE, SECOND)
_LONGEST = 100 * 366 * DAY
_LONGEST_TEXT = 100  # digits without end would overflow Decimal


class Duration(int):
    """Whole milliseconds that print as "1h30m". Never negative; whether "0s" makes sense is the field's own rule."""

    __slots__ = ()

    @classmethod
    def parse(cls, given: object) -> Duration:
        """Read a duration as a person writes it. Raises ValueError that says what is accepted."""
        if isinstance(given, Duration):
            return given
        if isinstance(given, str):
            return cls(_read(given)) if len(given) <= _LONGEST_TEXT else cls(_whole(None))
        ms: Decimal | None = None
        if isinstance(given, (int, float)) and not isinstance(given, bool):
            ms = Decimal(str(given)) * SECOND
        return cls(_whole(ms))

    @property
    def seconds(self) -> float:
        return self / SECOND

    def in_words(self, *, exact: bool = False) -> str:
        """As a sentence has it: "38 s", "5 min 3 s". From ten seconds on without milliseconds, rounded up, so that what
        is over a limit is said to be over it. `exact`: as the limit itself is."""
        return _sentence(int(self) if exact or self < 10 * SECOND else -(-self // SECOND) * SECOND)

    def __str__(self) -> str:
        return _written(int(self))

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"


@lru_cache(maxsize=1024)
def _written(ms: int) -> str:
    """Cached: each job that is stored writes the same few durations of its policy."""
    rest, parts = ms, []
    for unit, size in _UNITS.items():
        amount, rest = divmod(rest, size)
        if amount:
            parts.append(f"{amount}{unit}")
    return "".join(parts) or "0s"


def _sentence(ms: int) -> str:
    if 0 < ms < SECOND:
        return f"{ms} ms"
    rest, parts = ms, []
    for unit, size in (("d", DAY), ("h", HOUR), ("min", MINUTE)):
        amount, rest = divmod(rest, size)
        if amount:
            parts.append(f"{amount} {unit}")
    if rest or not parts:
        parts.append(f"{rest / SECOND:g} s")
    return " ".join(parts)


@lru_cache(maxsize=1024)
def _read(given: str) -> int:
    """Cached: a node reads the same few durations with every job it claims."""
    text = given.strip()
    if text.startswith("-") and _parse_text(text[1:]) is not None:
        raise ValueError("a duration can't be negative")
    return _whole(_parse_text(text))


def _whole(ms: Decimal | None) -> int:
    if ms is None or not ms.is_finite():
        raise ValueError(f"not a duration: expected {ACCEPTED_DURATIONS}")
    if ms < 0:
        raise ValueError("a duration can't be negative")
    if ms > _LONGEST:
        raise ValueError("a duration can't be longer than 100 years")
    if ms != ms.to_integral_value():
        raise ValueError("a duration is a whole number of milliseconds")
    return int(ms)


@lru_cache(4096)
def _parse_text(text: str) -> Decimal | None:
    """Cached: a store reads the same few durations in every job, and they were a third of decoding one."""
    if re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII):
        return Decimal(text) * SECOND
    if text.startswith("P"):
        match = _ISO.fullmatch(text)
        if match is None or not any(match.groups()) or text.endswith("T"):
            return None
        return sum((Decimal(n) * unit for n, unit in zip(match.groups(), _ISO_UNITS, strict=True) if n), Decimal(0))
    total, end, left = Decimal(0), 0, list(_UNITS)
    for match in _PARTS.finditer(text):
        amount, unit = match.groups()
        if match.start() != end or unit not in left:  # "1m1h" and "1h1h" are slips of the pen
            return None
        left = left[left.index(unit) + 1 :]
        total, end = total + Decimal(amount) * _UNITS[unit], match.end()
    return total if end == len(text) and end else None
