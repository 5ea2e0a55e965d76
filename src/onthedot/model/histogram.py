"""Lateness in fixed buckets: histograms of minutes can be added up to hours and days, percentiles can't."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

__all__ = ["BOUNDS", "BUCKETS", "added", "percentile"]

BOUNDS = (
    *(0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700),
    *(1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000, 3_600_000),
)
"""The highest value of each bucket, in ms; one more bucket holds what is above."""
BUCKETS = len(BOUNDS) + 1


def added(histograms: Iterable[Sequence[int]]) -> list[int]:
    total = [0] * BUCKETS
    for one in histograms:
        for place, count in enumerate(one):
            total[place] += count
    return total


def percentile(histogram: Sequence[int], percent: float) -> int | None:
    """The value that so many percent do not exceed, in ms; None: nothing was counted. Exact up to 3 ms; above, values
    are taken to lie evenly in their bucket, which is at most 1.7 times as wide as its lower end up to 1 s."""
    wanted = sum(histogram) * percent / 100
    if not wanted:
        return None
    below = 0
    for (low, high), count in zip(pairwise((-1, *BOUNDS)), histogram, strict=False):
        if count and below + count >= wanted:
            return high if high - low == 1 else round(low + (high - low) * (wanted - below) / count)
        below += count
    return BOUNDS[-1]
