"""The figures as lines for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from proof.chaos.nodes import lookahead_of
from proof.chaos.run import Result
from proof.report.aims import aims_of

__all__ = ["rows_of", "told"]

MOST = 40


def rows_of(result: Result) -> list[tuple[str, str]]:
    figures = result.figures
    late, takeover = figures.lateness_ms, figures.takeover_ms
    kinds = ", ".join(f"{what} {count}" for what, count in sorted(figures.kinds.items()))
    rows = [
        ("scheduled / received", f"{figures.scheduled} / {figures.received} ({figures.firings_per_second}/s)"),
        ("faults / kinds", f"{figures.faults} / {len(figures.kinds)}" + (f" ({kinds})" if kinds else "")),
        ("lost", str(figures.lost)),
        ("phantom", str(figures.phantom)),
        ("early", str(figures.early)),
        ("unexplained repeats", str(figures.unexplained_repeats)),
        ("at-most-once violations", str(figures.at_most_once)),
        ("other violations", str(figures.other_violations)),
        ("explained repeats", _counts(figures.repeats.by_kind)),
        ("… whose first had its answer", _counts(figures.repeats.answered)),
        ("repeats per fault", _counts(figures.repeats.each)),
        ("nodes declared lost", str(figures.nodes_lost)),
        ("a killed node's runs taken over", _spread(takeover)),
    ]
    rows += [(f"lateness, {name}", _spread(spread)) for name, spread in late.items()]
    requests = ", ".join(f"{name} {count}" for name, count in figures.requests.items())
    rows += [("requests", requests), ("seconds", f"{result.seconds:.0f}")]
    rows += [("let pass", f"{why}: {times}") for why, times in result.excuses.items()]
    rows += [("not run", f"{kind}: {why}") for kind, why in result.not_run.items()]
    return rows


def _spread(spread: dict[str, int]) -> str:
    return f"p50 {spread['p50']} ms, p99 {spread['p99']} ms, max {spread['max']} ms (n = {spread['n']})"


def _counts(counts: Mapping[str, float]) -> str:
    return ", ".join(f"{what} {count}" for what, count in sorted(counts.items()) if count) or "0"


def told(result: Result, *, full: bool = False, aims: bool = True) -> str:
    """aims: whether it is a run that the figures to be reached are of."""
    lines = [f"chaos: seed {result.seed}, profile {result.profile}, nodes with LOOKAHEAD={lookahead_of(result.seed)}"]
    lines += [f"  {name:<34} {value}" for name, value in rows_of(result)]
    if aims:
        lines.append("what was to be reached:")
    for aim in aims_of(result, full=full) if aims else []:
        verdict = "–" if aim.reached is None else "reached" if aim.reached else "MISSED"
        lines.append(f"  {verdict:<8} {aim.name:<66} {aim.wanted:<24} {aim.got}")
    if result.violations:
        counts = Counter(violation.kind for violation in result.violations)
        lines.append(f"{len(result.violations)} violations: {dict(counts)}")
        lines += [f"  {violation.kind}: {violation.text}" for violation in result.violations[:MOST]]
    else:
        lines.append("no violation")
    return "\n".join(lines)
