"""How a figure is written: with its unit, and no more digits than it can carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.scenarios import better

__all__ = ["NAMES", "cell", "shown", "tables"]

NAMES = {
    "cpu_us_all": "CPU a run, of the worker and of the database",
    "claim_ms.p99": "A claim of up to a hundred, p99",
    "late_ms.p50": "Lateness p50",
    "rss_mb": "Memory of the process",
}


def shown(figure: str, value: float) -> str:
    unit = "/s" if better(figure) else " µs" if figure.startswith("cpu") else " MB" if figure.endswith("_mb") else " ms"
    return f"{value:,.0f}{unit}" if abs(value) >= 100 else f"{value:,.2f}{unit}"


def cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def tables(figures: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Those that a scenario makes by itself: `table`, or several as `tables`."""
    return [*([figures["table"]] if "table" in figures else ()), *figures.get("tables", ())]
