"""What we want to be true, and whether it is: every figure of the goal gets one line that says reached or MISSED."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, Protocol

__all__ = ["Judged", "Seat", "Verdict", "Wanted", "judge"]


@dataclass(frozen=True)
class Wanted:
    """`figure` of ours must be at least or at most `reach`: by itself, or divided by that of the seat `to`."""

    what: str
    figure: str
    sense: Literal["at least", "at most"]
    reach: float
    to: str | None = None
    of: str | None = None  # the seat that is judged; None: ours
    unit: str = ""


@dataclass(frozen=True)
class Verdict:
    """`value` is None where a figure is missing: that is MISSED too, and says so."""

    scenario: str
    what: str
    value: float | None
    sense: str
    reach: float
    unit: str

    @property
    def reached(self) -> bool:
        if self.value is None:
            return False
        return self.value >= self.reach if self.sense == "at least" else self.value <= self.reach

    def line(self) -> str:
        found = "not measured" if self.value is None else f"{_number(self.value)}{self.unit}"
        word = "reached" if self.reached else "MISSED "
        return f"{word} {self.what}: {found} (wanted: {self.sense} {_number(self.reach)}{self.unit})"

    def json(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario,
            "what": self.what,
            "value": self.value,
            "wanted": f"{self.sense} {_number(self.reach)}{self.unit}",
            "reached": self.reached,
        }


class Seat(Protocol):
    name: str

    def figures(self, path: str) -> list[float]: ...


class Judged(Protocol):
    """A scenario that was played: ours is the first seat."""

    @property
    def key(self) -> str: ...

    @property
    def wanted(self) -> Sequence[Wanted]: ...

    @property
    def seats(self) -> Sequence[Seat]: ...


def judge(reports: Sequence[Judged], *, peers: bool = True) -> list[Verdict]:
    """Without peers, what is said about them is left out instead of being called missed."""
    return [
        Verdict(report.key, wanted.what, _value(report, wanted), wanted.sense, wanted.reach, wanted.unit)
        for report in reports
        for wanted in report.wanted
        if peers or wanted.to is None or _seat(report, wanted.to) is not None
    ]


def _value(report: Judged, wanted: Wanted) -> float | None:
    own = report.seats[0] if wanted.of is None else _seat(report, wanted.of)
    if own is None:
        return None
    values = own.figures(wanted.figure)
    if wanted.to is not None:
        other = _seat(report, wanted.to)
        # Round by round: a slow minute hits both, and ratios of medians would mix one's good with the other's bad.
        theirs = [] if other is None else other.figures(wanted.figure)
        values = [ours / them for ours, them in zip(values, theirs, strict=False) if them]
    return median(values) if values else None


def _seat(report: Judged, name: str) -> Seat | None:
    return next((seat for seat in report.seats if seat.name == name), None)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:,.2f}"
