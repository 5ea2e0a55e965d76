"""Charts as inline SVG: nothing to load, no script. Words beside a bar are HTML: a phone does not shrink them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["bar", "lines"]

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 320, 150, 42, 16, 6
COLOURS = ("var(--ours)", "var(--second)", "var(--theirs)")


def bar(value: float, low: float, high: float, most: float) -> str:
    """From nothing to the median, with a whisker from the worst to the best round."""

    def at(figure: float) -> float:
        return 100 * max(0.0, figure) / most

    whisker = ""
    if high > low:
        ends = f"x1='{at(low):.2f}' x2='{at(high):.2f}' y1='5' y2='5'"
        whisker = f"<line {ends} class=whisker vector-effect=non-scaling-stroke />"
    return (
        "<svg class=bar viewBox='0 0 100 10' preserveAspectRatio=none role=img aria-hidden=true>"
        f"<rect width='{max(at(value), 0.3):.2f}' height='10' />{whisker}</svg>"
    )


def lines(title: str, unit: str, across: Sequence[float], series: Mapping[str, Sequence[float]]) -> str:
    """Figures over time. At most three series share a chart; each has its name beside its colour."""
    most = _round_up(max((value for values in series.values() for value in values), default=0.0))
    last = max(across, default=0.0) or 1.0

    def x(second: float) -> float:
        return LEFT + (WIDTH - LEFT - 6) * second / last

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / most)

    grid = "".join(
        f"<line x1='{LEFT}' x2='{WIDTH - 6}' y1='{y(level):.1f}' y2='{y(level):.1f}' class=grid />"
        f"<text x='{LEFT - 4}' y='{y(level) + 3:.1f}' text-anchor=end>{_short(level)}</text>"
        for level in (0.0, most / 2, most)
    )
    ends = "".join(
        f"<text x='{x(second):.1f}' y='{HEIGHT - 4}' text-anchor={anchor}>{second:.0f} s</text>"
        for second, anchor in ((0.0, "start"), (last / 2, "middle"), (last, "end"))
    )
    drawn = "".join(
        f"<polyline fill=none stroke='{colour}' points='"
        + " ".join(f"{x(second):.1f},{y(value):.1f}" for second, value in zip(across, values, strict=True))
        + "' />"
        for colour, values in zip(COLOURS, series.values(), strict=False)
    )
    names = " ".join(
        f"<span><i style='background:{colour}'></i>{escape(name)}</span>"
        for colour, name in zip(COLOURS, series, strict=False)
    )
    return (
        f"<figure><figcaption>{escape(title)}, {escape(unit)} <small>{names}</small></figcaption>"
        f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' role=img aria-label='{escape(title)}'>{grid}{ends}{drawn}</svg></figure>"
    )


def _round_up(value: float) -> float:
    """To 1, 2 or 5 times a power of ten, so that the axis has round numbers."""
    if value <= 0:
        return 1.0
    power = 10.0 ** (len(f"{int(value)}") - 1) if value >= 1 else 0.1
    return next((step * power for step in (1, 2, 5, 10) if step * power >= value), value)


def _short(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:g} M"
    return f"{value / 1e3:g} k" if value >= 10_000 else f"{value:g}"
