"""Whether something grows: a line through the second half of its samples, and a limit that is said beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

__all__ = ["SHARE", "Measure", "Trend", "per_minute", "slope", "trend"]

SHARE = 0.1
"""Over the second half, the line may rise by this share of the level: what a leak does is more, and goes on."""

Values = Sequence[float | None]


@dataclass(frozen=True)
class Measure:
    """`floor`: a rise that is noise whatever the level, for what goes up and down by itself."""

    name: str
    unit: str
    floor: float
    share: float = SHARE


@dataclass(frozen=True)
class Trend:
    """`slope` per hour; `rise`: what that is over the second half, of which at most `limit` counts as flat."""

    measure: Measure
    first: float
    last: float
    slope: float
    rise: float
    limit: float

    @property
    def flat(self) -> bool:
        """What falls does not leak."""
        return self.rise <= self.limit

    def row(self) -> list[object]:
        return [
            ", ".join(filter(None, (self.measure.name, self.measure.unit))),
            self.first,
            self.last,
            self.slope,
            self.rise,
            self.limit,
            "flat" if self.flat else "RISES",
        ]


def slope(seconds: Sequence[float], values: Sequence[float]) -> float:
    """Of the line of least squares, per second."""
    n = len(seconds)
    if n < 2:
        raise ValueError(f"a line needs two samples or more, not {n}")
    middle, level = sum(seconds) / n, sum(values) / n
    spread = sum((at - middle) ** 2 for at in seconds)
    if not spread:
        raise ValueError("all samples are of the same instant")
    return sum((at - middle) * (value - level) for at, value in zip(seconds, values, strict=True)) / spread


def trend(measure: Measure, seconds: Sequence[float], values: Values) -> Trend:
    """Samples that are None, because the database was away, are left out."""
    taken = [(at, value) for at, value in zip(seconds, values, strict=True) if value is not None]
    if not taken:
        raise ValueError(f"{measure.name}: nothing was sampled")
    half = (seconds[0] + seconds[-1]) / 2
    later = [(at, value) for at, value in taken if at >= half]
    rising = slope([at for at, _ in later], [value for _, value in later])
    level = median(value for _, value in later)
    return Trend(
        measure,
        first=taken[0][1],
        last=taken[-1][1],
        slope=rising * 3600,
        rise=rising * (later[-1][0] - later[0][0]),
        limit=max(measure.floor, measure.share * abs(level)),
    )


def per_minute(seconds: Sequence[float], totals: Values, window: float) -> list[float | None]:
    """How fast a total grows, at each sample over the `window` seconds before it; None where that is not known."""
    found: list[float | None] = []
    start = 0
    for at, total in zip(seconds, totals, strict=True):
        while start + 1 < len(seconds) and seconds[start + 1] <= at - window:
            start += 1
        before = totals[start]
        if total is None or before is None or seconds[start] > at - window:
            found.append(None)
        else:
            found.append((total - before) * 60 / (at - seconds[start]))
    return found
