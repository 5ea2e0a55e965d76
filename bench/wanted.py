"""What we want to be true, and whether it is: every figure of the goal gets one line that says reached or MISSED."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, Protocol

__all__ = ["Judged", "Seat", "Verdict", "Wanted", "judge"]


@dataclass(frozen=True)
class Wanted:
    """`figure` of ours must be at least or at most `reach`: by itself, or divided by that of the seat `to`; of several
    the best, round by round."""

    what: str
    figure: str
    sense: Literal["at least", "at most"]
    reach: float
    to: str | tuple[str, ...] | None = None
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

    def cells(self) -> list[str]:
        """As a row of a table."""
        found = "not measured" if self.value is None else f"{_number(self.value)}{self.unit}"
        return [
            "reached" if self.reached else "**missed**",
            self.what,
            found,
            f"{self.sense} {_number(self.reach)}{self.unit}",
        ]

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
        if peers or wanted.to is None or any(_seat(report, name) is not None for name in _names(wanted))
    ]


def _value(report: Judged, wanted: Wanted) -> float | None:
    own = report.seats[0] if wanted.of is None else _seat(report, wanted.of)
    if own is None:
        return None
    values = own.figures(wanted.figure)
    if wanted.to is not None:
        others = [seat.figures(wanted.figure) for name in _names(wanted) if (seat := _seat(report, name)) is not None]
        best = max if wanted.sense == "at least" else min
        # Round by round: a slow minute hits both, and ratios of medians would mix one's good with the other's bad.
        theirs = [best(played) for played in zip(*(figures for figures in others if figures), strict=False)]
        values = [ours / them for ours, them in zip(values, theirs, strict=False) if them]
    return median(values) if values else None


def _names(wanted: Wanted) -> tuple[str, ...]:
    return (wanted.to,) if isinstance(wanted.to, str) else wanted.to or ()


def _seat(report: Judged, name: str) -> Seat | None:
    return next((seat for seat in report.seats if seat.name == name), None)


def _number(value: float) -> str:
    if abs(value) >= 1000 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.01 else f"{value:.4f}"
