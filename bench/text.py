"""The result as text: for the terminal, and as the tables of docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterator

from bench.running import Played, Report

__all__ = ["markdown", "verdicts"]


def markdown(reports: list[Report]) -> str:
    return "\n".join(line for report in reports for line in _table(report))


def _table(report: Report) -> Iterator[str]:
    lateness = report.scenario.figure.startswith("late_ms")
    yield f"\n### {report.scenario.title}\n"
    heads = ["", "late p50 ms", "p99 ms", "max ms"] if lateness else ["", "per second", "spread"]
    heads += ["CPU µs a run", "and of the database"]
    yield "| " + " | ".join([*heads, "ours to theirs"]) + " |"
    yield "|" + "---|" * (len(heads) + 1)
    for seat in report.played:
        yield "| " + " | ".join([seat.name, *_cells(seat, lateness, len(heads) - 1), _ratio(report, seat)]) + " |"


def _cells(seat: Played, lateness: bool, width: int) -> list[str]:
    if not seat.rounds:
        return [seat.failed or "–", *["–"] * (width - 1)]
    if lateness:
        cells = [_number(seat.median(f"late_ms.{name}"), 1) for name in ("p50", "p99", "max")]
    else:
        rates = seat.figures("rate")
        cells = [_number(seat.median("rate")), f"{min(rates):,.0f}-{max(rates):,.0f}" if rates else "–"]
    return [*cells, _number(seat.median("cpu_us_per_run")), _number(seat.median("db_cpu_us_per_run"))]


def _number(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _ratio(report: Report, seat: Played) -> str:
    if seat is report.ours:
        return ""
    ratio = report.ratio(seat)
    return "–" if ratio is None else f"{ratio:.2f}"


def verdicts(reports: list[Report]) -> list[tuple[str, float | None, float]]:
    """What we want to be true: what it is about, the ratio we have, the ratio we want."""
    return [
        (f"{report.scenario.title}, to {seat.name}", report.ratio(seat), report.scenario.wanted[seat.name])
        for report in reports
        for seat in report.played
        if seat.name in report.scenario.wanted and seat.rounds
    ]
