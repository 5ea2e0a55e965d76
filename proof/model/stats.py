"""What the statistics of a job must read, from the rows of its ledger."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from proof.checker.ledger import Entry

__all__ = ["Totals", "totals_of"]


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    runs: int
    failures: int
    timed: int
    duration_ms: int


def totals_of(entries: Iterable[Entry]) -> Totals:
    """Of runs that were done or failed."""
    counted = [entry for entry in entries if entry.status in ("done", "failed")]
    timed = [entry.duration_ms for entry in counted if entry.duration_ms is not None]
    return Totals(
        runs=len(counted),
        failures=sum(entry.status == "failed" for entry in counted),
        timed=len(timed),
        duration_ms=sum(timed),
    )
