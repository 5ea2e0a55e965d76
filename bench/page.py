"""The result as one HTML page with charts: no script, nothing loaded from anywhere."""

from __future__ import annotations

from html import escape
from typing import Any

from bench.running import Played, Report

__all__ = ["page"]

_STYLE = """
:root { color-scheme: light dark; --ours: #0a7d53; --theirs: #8a94a6; --line: #8884 }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h2 { margin: 2.2rem 0 .3rem; font-size: 1.05rem } .less { opacity: .7; font-size: .85rem }
.row { display: grid; grid-template-columns: 15rem 1fr 9rem; gap: .7rem; align-items: center; padding: .12rem 0 }
.bar { height: 1.05rem; background: var(--theirs); border-radius: 2px; min-width: 2px }
.ours .bar { background: var(--ours) }
.ours .name { font-weight: 600 } .figure { text-align: right; font-variant-numeric: tabular-nums }
.why { grid-column: 2 / 4; opacity: .7 } dt { font-weight: 600 } dd { margin: 0 0 .5rem }
"""


def page(reports: list[Report], about: dict[str, Any]) -> str:
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in about.items())
    settings = {seat.name: seat.settings for report in reports for seat in report.played if seat.settings}
    tuned = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in settings.items())
    charts = "".join(_chart(report) for report in reports)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>On the Dot: speed</title>"
        f"<meta name=viewport content='width=device-width'><style>{_STYLE}</style>"
        f"<h1>On the Dot and its peers, measured together</h1><dl>{facts}</dl>{charts}"
        f"<h2>Settings</h2><dl>{tuned}</dl></html>"
    )


def _chart(report: Report) -> str:
    path = report.scenario.figure
    most = max((seat.median(path) or 0 for seat in report.played), default=0) or 1
    less = "" if report.scenario.more_is_better else " <span class=less>less is better</span>"
    rows = "".join(_row(report, seat, most) for seat in report.played)
    return f"<h2>{escape(report.scenario.title)}{less}</h2>{rows}"


def _row(report: Report, seat: Played, most: float) -> str:
    value = seat.median(report.scenario.figure)
    kind = "row ours" if seat is report.ours else "row"
    name = f"<span class=name>{escape(seat.name)}</span>"
    if value is None:
        return f"<div class='{kind}'>{name}<span class=why>{escape(seat.failed or 'no figure')}</span></div>"
    unit = "/s" if report.scenario.more_is_better else " ms"
    ratio = report.ratio(seat)
    told = f"{value:,.0f}{unit}" if value >= 100 else f"{value:,.2f}{unit}"
    if seat is not report.ours and ratio is not None:
        told += f" · {ratio:.2f}×"
    bar = f"<div class=bar style='width:{100 * value / most:.1f}%'></div>"
    return f"<div class='{kind}'>{name}{bar}<span class=figure>{told}</span></div>"
