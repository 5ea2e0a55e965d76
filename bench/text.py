"""The result as text: for the terminal, and as the tables of docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bench.figures import cell, tables
from bench.running import Played, Report
from bench.wanted import Verdict

__all__ = ["document", "markdown", "said_once", "settings", "summary"]


def document(reports: Sequence[Report], about: Mapping[str, str], verdicts: Sequence[Verdict]) -> str:
    """Everything, as a part of docs/performance.md."""
    facts = "\n".join(f"- {name}: {value}" for name, value in about.items())
    judged = ["| | Figure | Measured | Target |", "|---|---|---|---|"]
    judged += ["| " + " | ".join(verdict.cells()) + " |" for verdict in verdicts]
    wanted = "\n".join(judged) if verdicts else "These scenarios have no targets."
    tables, tuned = markdown(reports), settings(reports)
    return f"{facts}\n\n### Targets\n\n{wanted}\n{tables}\n\n### Settings\n\n{tuned}\n"


def markdown(reports: Sequence[Report]) -> str:
    return "\n".join(line for report in reports for line in (*_table(report), *_details(report)))


def settings(reports: Sequence[Report]) -> str:
    """Once per contestant: whoever doubts a figure starts here."""
    return "\n".join(f"- {name}: {text}" for name, text in said_once(reports).items())


def said_once(reports: Sequence[Report]) -> dict[str, str]:
    """Settings by name; who plays twice says it once."""
    told: dict[str, str] = {}
    for seat in (seat for report in reports for seat in report.played):
        if seat.settings and seat.settings not in told.values():
            told[seat.name] = seat.settings
    return told


def summary(verdicts: Sequence[Verdict]) -> str:
    lines = [verdict.line() for verdict in verdicts]
    reached = sum(verdict.reached for verdict in verdicts)
    return "\n".join([*lines, f"\n{reached} of {len(verdicts)} figures reached"]) if lines else ""


def _table(report: Report) -> Iterator[str]:
    lateness = report.scenario.figure.startswith("late_ms")
    yield f"\n### {report.scenario.title}\n"
    if len(report.played) == 1 and not lateness and report.ours.rounds and "table" in report.ours.rounds[-1]:
        return
    heads = ["", "late p50 ms", "p99 ms", "max ms", "p99 spread"] if lateness else ["", "per second", "spread"]
    more = [(head, path) for head, path in _MORE if any(seat.figures(path) for seat in report.played)]
    heads += [head for head, _ in more]
    yield "| " + " | ".join([*heads, "ratio"]) + " |"
    yield "|" + "---|" * (len(heads) + 1)
    for seat in report.played:
        cells = _cells(seat, lateness, [path for _, path in more], len(heads) - 1)
        yield "| " + " | ".join([seat.name, *cells, _ratio(report, seat)]) + " |"


_MORE = (
    ("CPU µs per run", "cpu_us_per_run"),
    ("database CPU µs per run", "db_cpu_us_per_run"),
    ("claim p50 ms", "claim_ms.p50"),
    ("p99 ms", "claim_ms.p99"),
    ("memory MB", "rss_mb"),
    ("receiver CPU, cores", "receiver_busy"),
)


def _cells(seat: Played, lateness: bool, more: list[str], width: int) -> list[str]:
    if not seat.rounds:
        return [seat.failed or "–", *["–"] * (width - 1)]
    if lateness:
        cells = [_number(seat.median(f"late_ms.{name}"), 1) for name in ("p50", "p99", "max")]
        cells.append(_spread(seat.figures("late_ms.p99"), 1))
    else:
        cells = [_number(seat.median("rate")), _spread(seat.figures("rate"), 0)]
    return [*cells, *(cell(seat.median(path)) for path in more)]


def _details(report: Report) -> Iterator[str]:
    for table in (table for figures in report.ours.rounds[-1:] for table in tables(figures)):
        yield ""
        yield "| " + " | ".join(table["head"]) + " |"
        yield "|" + "---|" * len(table["head"])
        for row in table["rows"]:
            yield "| " + " | ".join(cell(value) for value in row) + " |"


def _spread(values: list[float], digits: int) -> str:
    return f"{min(values):,.{digits}f}-{max(values):,.{digits}f}" if values else "–"


def _number(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _ratio(report: Report, seat: Played) -> str:
    if seat is report.ours:
        return ""
    ratio = report.ratio(seat)
    return "–" if ratio is None else f"{ratio:.2f}"
