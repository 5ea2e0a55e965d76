"""The timeline as SVG, drawn by us: what arrived, how late it was, who lived, what went wrong, on one axis of time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape

from proof.chaos.harm import Harm
from proof.checker.events import Claimed
from proof.checker.story import Story

__all__ = ["timeline"]

WIDTH = 1180
LEFT = 170
PLOT = WIDTH - LEFT - 20
ROW = 15
COLOURS = {
    "kill": "#c0392b",
    "kill_at": "#c0392b",
    "kill_api": "#c0392b",
    "twin": "#c0392b",
    "freeze": "#2e6fb7",
    "sigterm": "#7a7a7a",
    "twin_stopped": "#7a7a7a",
    "outage": "#8e44ad",
    "short_outage": "#8e44ad",
    "db_restart": "#8e44ad",
    "disk_full": "#8e44ad",
    "db_clock": "#b8860b",
    "node_clock": "#b8860b",
    "receiver_down": "#3d8b5f",
    "receiver_slow": "#3d8b5f",
}
OTHER = "#d2691e"


class _Axis:
    def __init__(self, end_ms: int) -> None:
        self.end = max(1, end_ms)

    def x(self, at: float) -> float:
        return LEFT + PLOT * min(max(at, 0), self.end) / self.end


def timeline(story: Story, harms: Sequence[Harm]) -> str:
    """Four bands under each other: calls per second, lateness, nodes, faults."""
    axis = _Axis(story.ledger.at)
    parts: list[str] = []
    top = 24
    for title, drawn, height in (
        ("received per second", _received(story, axis), 90),
        ("lateness of first sends", _lateness(story, axis), 130),
        ("nodes", *_nodes(story, axis)),
        ("faults", *_faults(harms, axis)),
    ):
        parts.append(f'<text x="8" y="{top + 11}" class="title">{escape(title)}</text>')
        parts.append(f'<g transform="translate(0 {top})">{drawn}</g>')
        top += height + 26
    grid = "".join(_grid(axis, top))
    return (
        f'<svg viewBox="0 0 {WIDTH} {top + 4}" role="img" aria-label="timeline of the run"'
        f' xmlns="http://www.w3.org/2000/svg">{grid}{"".join(parts)}</svg>'
    )


def _grid(axis: _Axis, bottom: int) -> Iterator[str]:
    seconds = axis.end / 1000
    step = next(step for step in (5, 10, 30, 60, 120, 300, 600, 3600) if seconds / step <= 16)
    for second in range(0, int(seconds) + 1, step):
        x = axis.x(second * 1000)
        yield f'<line x1="{x:.1f}" y1="16" x2="{x:.1f}" y2="{bottom}" class="grid"/>'
        yield f'<text x="{x:.1f}" y="12" class="tick">{second} s</text>'


def _received(story: Story, axis: _Axis) -> str:
    first: dict[int, int] = defaultdict(int)
    again: dict[int, int] = defaultdict(int)
    for sends in story.sends.values():
        for place, send in enumerate(sends):
            (again if place else first)[send.at // 1000] += 1
    most = max([1, *(first[s] + again[s] for s in {*first, *again})])
    bars = []
    width = max(0.8, PLOT * 1000 / axis.end - 0.3)
    for second in sorted({*first, *again}):
        low = 90 * first[second] / most
        high = 90 * again[second] / most
        x = axis.x(second * 1000)
        bars.append(f'<rect x="{x:.1f}" y="{90 - low:.1f}" width="{width:.2f}" height="{low:.1f}" class="first"/>')
        if high:
            y = 90 - low - high
            bars.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.2f}" height="{high:.1f}" class="again"/>')
    return f'<text x="{LEFT - 6}" y="8" class="scale">{most}/s</text>' + "".join(bars)


def _lateness(story: Story, axis: _Axis) -> str:
    """Of each second the median, the 99th percentile and the worst, on a logarithmic scale from 1 ms to 100 s."""
    late: dict[int, list[int]] = defaultdict(list)
    for run, sends in story.sends.items():
        row = story.entries.get(run) or story.live.get(run)
        if sends and row is not None and row.kind == "scheduled":
            late[sends[0].at // 1000].append(max(1, sends[0].db - row.due_at))

    def y(ms: float) -> float:
        return 130 - 130 * min(math.log10(max(1.0, ms)), 5) / 5

    marks = []
    for power in range(6):
        text = f"{10**power} ms" if power < 3 else f"{10 ** (power - 3)} s"
        marks.append(
            f'<line x1="{LEFT}" y1="{y(10**power):.1f}" x2="{WIDTH - 20}" y2="{y(10**power):.1f}" class="grid"/>'
        )
        marks.append(f'<text x="{LEFT - 6}" y="{y(10**power) + 4:.1f}" class="scale">{text}</text>')
    for second, values in sorted(late.items()):
        values.sort()
        x = axis.x(second * 1000 + 500)
        for name, value in (
            ("worst", values[-1]),
            ("p99", values[min(len(values) - 1, int(0.99 * len(values)))]),
            ("p50", values[len(values) // 2]),
        ):
            marks.append(f'<circle cx="{x:.1f}" cy="{y(value):.1f}" r="1.4" class="{name}"/>')
    return "".join(marks)


def _nodes(story: Story, axis: _Axis) -> tuple[str, int]:
    """Each incarnation that claimed anything, from its first claim to its last; a cross where it was declared lost."""
    spans: dict[str, list[int]] = {}
    for claim in story.claims:
        _widen(spans, claim)
    rows: list[int] = []  # where each row is free again
    drawn = []
    for node, (begin, end) in sorted(spans.items(), key=lambda item: item[1]):
        row = next((row for row, free in enumerate(rows) if free + 1500 < begin), len(rows))
        rows[row : row + 1] = [end]
        y = row * ROW
        width = max(1.5, axis.x(end) - axis.x(begin))
        drawn.append(
            f'<rect x="{axis.x(begin):.1f}" y="{y + 3}" width="{width:.1f}" height="9" class="node">'
            f"<title>{escape(node)}: {begin / 1000:.1f} s to {end / 1000:.1f} s</title></rect>"
        )
        if (loss := story.losses.get(node)) is not None:
            x = axis.x(loss.at)
            drawn.append(
                f'<path d="M{x - 3:.1f} {y + 4} l6 7 m0 -7 l-6 7" class="lost">'
                f"<title>{escape(node)} declared lost at {loss.at / 1000:.1f} s</title></path>"
            )
    return "".join(drawn), max(1, len(rows)) * ROW


def _widen(spans: dict[str, list[int]], claim: Claimed) -> None:
    span = spans.setdefault(claim.node, [claim.at, claim.at])
    span[1] = max(span[1], claim.at)


def _faults(harms: Sequence[Harm], axis: _Axis) -> tuple[str, int]:
    kinds = sorted({harm.what for harm in harms})
    drawn = []
    for row, kind in enumerate(kinds):
        y = row * ROW
        drawn.append(f'<text x="{LEFT - 6}" y="{y + 11}" class="scale">{escape(kind)}</text>')
        for harm in harms:
            if harm.what != kind:
                continue
            width = max(3.0, axis.x(harm.until) - axis.x(harm.at))
            told = f"{kind} {harm.name} {harm.detail} {harm.at / 1000:.1f} s to {harm.until / 1000:.1f} s"
            drawn.append(
                f'<rect x="{axis.x(harm.at):.1f}" y="{y + 3}" width="{width:.1f}" height="9" rx="1.5"'
                f' fill="{COLOURS.get(kind, OTHER)}"><title>{escape(told)}</title></rect>'
            )
    return "".join(drawn), max(1, len(kinds)) * ROW
