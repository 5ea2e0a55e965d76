"""The result as one HTML page with charts: no script, nothing loaded from anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from bench.charts import bar, lines
from bench.figures import NAMES, cell, shown, tables
from bench.running import Played, Report
from bench.scenarios import better
from bench.text import said_once
from bench.wanted import Verdict

__all__ = ["page"]

_STYLE = Path(__file__).with_name("page.css").read_text()

_OVER_TIME = (
    ("Memory of the node", "MB", {"rss_mb": "resident"}),
    ("Tables with their indexes", "MB", {"runs_mb": "runs", "jobs_mb": "jobs", "history_mb": "history"}),
    ("Dead rows", "rows", {"dead_runs": "runs", "dead_jobs": "jobs"}),
    ("Write-ahead log", "MB", {"wal_mb": "written", "wal_files_mb": "its files"}),
    ("Lateness", "ms", {"late_p99_ms": "p99", "late_p50_ms": "p50"}),
    ("Firings", "a second", {"firings_per_second": "recorded"}),
)


def page(reports: Sequence[Report], about: dict[str, Any], verdicts: Sequence[Verdict] = ()) -> str:
    doubts = "".join(f"<p class=warning>{escape(line)}</p>" for report in reports for line in report.warnings())
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>On the Dot: speed</title>"
        f"<meta name=viewport content='width=device-width,initial-scale=1'><style>{_STYLE}</style>"
        f"<h1>On the Dot and its peers, measured together</h1><dl>{_facts(about)}</dl>{_verdicts(verdicts)}{doubts}"
        f"{''.join(_report(report) for report in reports)}<h2>Settings</h2><dl>{_facts(said_once(reports))}</dl></html>"
    )


def _facts(facts: Mapping[str, Any]) -> str:
    return "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in facts.items())


def _verdicts(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return ""
    reached = sum(verdict.reached for verdict in verdicts)
    items = "".join(
        f"<li{'' if verdict.reached else ' class=missed'}><b>{word}</b><span>{escape(rest)}</span></li>"
        for verdict in verdicts
        for word, _, rest in [verdict.line().partition(" ")]
    )
    return f"<h2>Targets: {reached} of {len(verdicts)} reached</h2><ul class=verdicts>{items}</ul>"


def _report(report: Report) -> str:
    scenario = report.scenario
    charts = _bars(report, scenario.figure) if len(report.played) > 1 or not report.ours.rounds else ""
    for figure in scenario.also:
        if any(seat.figures(figure) for seat in report.played):
            charts += f"<h3>{escape(NAMES.get(figure, figure))}{_less(figure)}</h3>{_bars(report, figure)}"
    less = _less(scenario.figure) if charts else ""
    return f"<h2>{escape(scenario.title)}{less}</h2>{charts}{''.join(_details(report.played))}"


def _less(figure: str) -> str:
    return "" if better(figure) else " <span class=less>less is better</span>"


def _bars(report: Report, figure: str) -> str:
    most = max((value for seat in report.played for value in seat.figures(figure)), default=0) or 1
    return "".join(_row(report, seat, figure, most) for seat in report.played)


def _row(report: Report, seat: Played, figure: str, most: float) -> str:
    value, all_of_them = seat.median(figure), seat.figures(figure)
    kind = "row ours" if seat.name.startswith("On the Dot") else "row"
    name = f"<span class=name>{escape(seat.name)}</span>"
    if value is None:
        return f"<div class='{kind}'>{name}<span class=why>{escape(seat.failed or 'no figure')}</span></div>"
    ratio = report.ratio(seat, figure)
    told = shown(figure, value)
    if seat is not report.ours and ratio is not None:
        told += f" · {ratio:,.0f}×" if ratio >= 100 else f" · {ratio:.2f}×"
    drawn = bar(value, min(all_of_them), max(all_of_them), most)
    return f"<div class='{kind}'>{name}{drawn}<span class=figure>{told}</span></div>"


def _details(seats: Iterable[Played]) -> Iterable[str]:
    """Tables and courses over time that a scenario brings along."""
    for seat in seats:
        for figures in seat.rounds[-1:]:
            yield from map(_table, tables(figures))
            if "series" in figures:
                yield _courses(figures["series"])


def _table(table: Mapping[str, Any]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table["head"])
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell(value))}</td>" for value in row) + "</tr>" for row in table["rows"]
    )
    return f"<div class=wide><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"


def _courses(series: dict[str, list[float]]) -> str:
    return (
        "<div class=charts>"
        + "".join(
            lines(title, unit, series["second"], {name: series[key] for key, name in drawn.items()})
            for title, unit, drawn in _OVER_TIME
            if all(key in series for key in drawn)
        )
        + "</div>"
    )
