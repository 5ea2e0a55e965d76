"""Small charts as SVG, drawn on the server: this module computes where things are, `ui.html` draws them.

Every chart has the same numbers as a table behind it, for those who hear the page.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

__all__ = ["BarChart", "LineChart", "StripBar", "bar_chart", "busiest_of", "line_chart", "result_chart", "strip_bars"]

STRIP_LENGTH = 20
FOOT = 3
"""A line of noughts runs so far above the axis, where it can be seen."""
FEWEST = 20
"""A bar is as wide as with so many, however few there are: one alone would be a wall."""
_HEIGHTS = {"DONE": 14, "FAILED": 14, "CANCELLED": 9, "SKIPPED": 4, "EXECUTING": 14, "PENDING": 4}


class StripBar(msgspec.Struct, frozen=True):
    x: int
    height: int
    status: str
    words: str


class Bar(msgspec.Struct, frozen=True):
    x: float
    y: float
    width: float
    height: float
    tone: str
    label: str
    value: str


class BarChart(msgspec.Struct, frozen=True):
    width: int
    height: int
    bars: list[Bar]
    top: str  # the highest value, as text
    rows: list[tuple[str, ...]]
    first: str
    last: str


class ChartLine(msgspec.Struct, frozen=True):
    name: str
    tone: str
    paths: list[str]  # one for each stretch without a gap
    dots: list[tuple[float, float]]  # values that have no neighbour


class LineChart(msgspec.Struct, frozen=True):
    width: int
    height: int
    lines: list[ChartLine]
    top: str
    labels: list[str]
    rows: list[list[str]]  # label, then one value for each line


def strip_bars(results: Sequence[tuple[str, str]]) -> list[StripBar]:
    """Of (status, words) of the last runs, oldest first: bars of 5 px from the right, so that rows of a list align."""
    shown = list(results)[-STRIP_LENGTH:]
    start = (STRIP_LENGTH - len(shown)) * 6
    return [
        StripBar(x=start + 6 * number, height=_HEIGHTS.get(status, 14), status=status, words=words)
        for number, (status, words) in enumerate(shown)
    ]


def bar_chart(
    points: Sequence[tuple[str, float, str]], *, width: int = 600, height: int = 120, unit: str = ""
) -> BarChart:
    """Of (label, value, tone), from left to right; tone "" or one of good, warn, bad."""
    highest = max((value for _, value, _ in points), default=0)
    most = highest or 1
    step = width / max(1, len(points))
    thick = min(step, width / FEWEST)
    gap = min(2.0, thick * 0.2)
    bars = [
        Bar(
            x=round(number * step + (step - thick + gap) / 2, 2),
            y=round(height - max(1.0 if value else 0.0, value / most * height), 2),
            width=round(thick - gap, 2),
            height=round(max(1.0 if value else 0.0, value / most * height), 2),
            tone=tone,
            label=label,
            value=f"{_figure(value)}{unit}",
        )
        for number, (label, value, tone) in enumerate(points)
    ]
    rows: list[tuple[str, ...]] = [(label, f"{_figure(value)}{unit}") for label, value, _ in points]
    return BarChart(
        width=width,
        height=height,
        bars=bars,
        top=f"{_figure(highest)}{unit}" if points else "",
        rows=rows,
        first=points[0][0] if points else "",
        last=points[-1][0] if points else "",
    )


def busiest_of(counts: Sequence[float]) -> int | None:
    """The one to mark: the first of the highest. None: all are equal, and none stands out."""
    most = max(counts, default=0)
    return None if not most or min(counts) == most else counts.index(most)


def result_chart(points: Sequence[tuple[str, int, int]], *, width: int = 600, height: int = 120) -> BarChart:
    """Of (label, firings, failed of them): bars whose foot is what failed. One failure among thousands is seen too."""
    most = max((firings for _, firings, _ in points), default=0) or 1
    whole = bar_chart([(label, firings, "") for label, firings, _ in points], width=width, height=height)
    bars = []
    for bar, (_, firings, failed) in zip(whole.bars, points, strict=True):
        words = f"{_figure(firings)} fired, {_figure(failed)} failed"
        bars.append(msgspec.structs.replace(bar, value=words))
        if failed:
            high = round(max(2.0, failed / most * height), 2)
            foot = msgspec.structs.replace(bar, y=round(height - high, 2), height=high, tone="bad", value=words)
            bars.append(foot)
    rows: list[tuple[str, ...]] = [(label, _figure(firings), _figure(failed)) for label, firings, failed in points]
    return msgspec.structs.replace(whole, bars=bars, rows=rows)


def line_chart(
    labels: Sequence[str],
    series: Sequence[tuple[str, str, Sequence[float | None]]],
    *,
    width: int = 600,
    height: int = 120,
    unit: str = "",
) -> LineChart:
    """Lines of (name, tone, values) over the same labels; None is a gap."""
    most = max((value for _, _, values in series for value in values if value is not None), default=0) or 1
    step = width / max(1, len(labels) - 1)
    lines = []
    for name, tone, values in series:
        paths, dots = _stretches(values, step, most, height)
        lines.append(ChartLine(name=name, tone=tone, paths=paths, dots=dots))
    rows = [
        [label, *("–" if values[at] is None else f"{_figure(values[at] or 0)}{unit}" for _, _, values in series)]
        for at, label in enumerate(labels)
    ]
    return LineChart(
        width=width, height=height, lines=lines, top=f"{_figure(most)}{unit}", labels=list(labels), rows=rows
    )


def _stretches(
    values: Sequence[float | None], step: float, most: float, height: int
) -> tuple[list[str], list[tuple[float, float]]]:
    found: list[list[tuple[float, float]]] = [[]]
    for number, value in enumerate(values):
        if value is None:
            found.append([])
        else:
            found[-1].append((round(number * step, 2), round(height - FOOT - value / most * (height - FOOT), 2)))
    paths = ["M" + " L".join(f"{x} {y}" for x, y in each) for each in found if len(each) > 1]
    return paths, [each[0] for each in found if len(each) == 1]


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:,.1f}"
