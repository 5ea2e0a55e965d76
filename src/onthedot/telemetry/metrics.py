"""Events as Prometheus metrics. No label grows with the data: no job id, no key, no address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from onthedot.telemetry.bus import Event, Telemetry
from onthedot.telemetry.requests import RequestCounts

__all__ = ["CONTENT_TYPE", "Metrics"]

disable_created_metrics()  # type: ignore[no-untyped-call]  # a time of birth beside every counter doubles the text and tells nothing

CONTENT_TYPE = CONTENT_TYPE_LATEST
_LATENESS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 3600)
_DURATION = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200)
_HELD = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_STATUSES = ("DONE", "FAILED", "CANCELLED")
_SKIP_REASONS = ("coalesced", "overlap", "late", "paused", "excluded", "deleted")


class Metrics:
    """Counters of one node, in a registry of its own so that two nodes in one process don't mix."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.claimed = Counter("onthedot_runs_claimed", "Runs this node claimed", registry=registry)
        self.fired = Counter("onthedot_runs_fired", "Runs this node started", registry=registry)
        self.finished = Counter(
            "onthedot_runs_finished", "Runs that ended, by how", ["status", "kind"], registry=registry
        )
        self.failed = Counter("onthedot_runs_failed", "Runs that failed for good", registry=registry)
        self.retried = Counter("onthedot_runs_retried", "Attempts that will be made again", registry=registry)
        self.skipped = Counter("onthedot_runs_skipped", "Slots not fired, by reason", ["reason"], registry=registry)
        self.refused = Counter("onthedot_finishes_refused", "Finishes whose fence no longer matched", registry=registry)
        self.lost = Counter("onthedot_runs_lost", "Runs whose node was lost", registry=registry)
        self.dead = Counter("onthedot_dead_letters", "Runs that became dead letters", registry=registry)
        self.conflicts = Counter(
            "onthedot_ledger_conflicts", "Slots found twice in the ledger: must stay 0", registry=registry
        )
        self.quarantined = Counter(
            "onthedot_jobs_quarantined", "Jobs whose schedule could not be computed", registry=registry
        )
        self.silent = Counter(
            "onthedot_jobs_silent", "Active jobs found without a next run: must stay 0", registry=registry
        )
        self.clock_set = Counter(
            "onthedot_clock_set", "Times the database's clock was set by more than a second", ["way"], registry=registry
        )
        self.floors = Counter(
            "onthedot_floors_repaired",
            "Jobs that a clock which was ahead had carried into the future",
            registry=registry,
        )
        self.lookups_abandoned = Counter(
            "onthedot_lookups_abandoned", "Look-ups of names that were not answered in time", registry=registry
        )
        self.nodes_lost = Counter("onthedot_nodes_lost", "Nodes declared lost", registry=registry)
        self.short = Counter(
            "onthedot_node_short",
            "Times this machine ran out of descriptors, memory, ports or processes, and took less for a while",
            registry=registry,
        )
        self.store_errors = Counter("onthedot_store_unavailable", "Times the store was found away", registry=registry)
        self.lateness = Histogram(
            "onthedot_run_lateness_seconds", "Start minus due time", buckets=_LATENESS, registry=registry
        )
        self.duration = Histogram(
            "onthedot_run_duration_seconds", "How long runs took", buckets=_DURATION, registry=registry
        )
        self.loop_held = Histogram(
            "onthedot_loop_held_seconds",
            "How long something held the loop, where that was more than a millisecond",
            buckets=_HELD,
            registry=registry,
        )
        self.requests = RequestCounts()
        registry.register(self.requests)
        self.due = Gauge("onthedot_runs_due", "Runs that are due and not claimed", registry=registry)
        self.oldest = Gauge("onthedot_oldest_due_seconds", "How long the oldest due run has waited", registry=registry)
        self.running = Gauge("onthedot_runs_running", "Runs claimed and not finished, all nodes", registry=registry)
        self.unoffered = Gauge("onthedot_runs_unoffered", "Due runs that no live node offers to run", registry=registry)
        self.nodes = Gauge("onthedot_nodes", "Nodes by state (their leases)", ["state"], registry=registry)
        self.store_up = Gauge("onthedot_store_up", "1 while the store answers", registry=registry)
        self._by_end: dict[tuple[str, str], Counter] = {}
        for reason in _SKIP_REASONS:
            self.skipped.labels(reason)
        for way in ("ahead", "back"):
            self.clock_set.labels(way)
        self._on: dict[str, Callable[[dict[str, Any]], None]] = {
            "run.claimed": lambda f: self.claimed.inc(f.get("n", 1)),
            "run.started": self._started,
            "run.finished": self._finished,
            "run.retried": lambda f: self.retried.inc(f.get("n", 1)),
            "run.skipped": lambda f: self.skipped.labels(_known(f.get("reason"), _SKIP_REASONS)).inc(f.get("n") or 1),
            "run.refused": lambda f: self.refused.inc(f.get("n", 1)),
            "run.lost": lambda f: self.lost.inc(f.get("n", 1)),
            "dead.letter": lambda f: self.dead.inc(f.get("n", 1)),
            "ledger.conflict": lambda f: self.conflicts.inc(f.get("n", 1)),
            "job.quarantined": lambda f: self.quarantined.inc(),
            "job.silent": lambda f: self.silent.inc(),
            "clock.set": lambda f: self.clock_set.labels("back" if f["by_ms"] < 0 else "ahead").inc(),
            "floor.repaired": lambda f: self.floors.inc(f["n"]),
            "lookup.abandoned": lambda f: self.lookups_abandoned.inc(),
            "node.lost": lambda f: self.nodes_lost.inc(),
            "node.short": lambda f: self.short.inc(),
            "store.unavailable": lambda f: self.store_errors.inc(),
        }

    def listen(self, telemetry: Telemetry) -> Callable[[], None]:
        """Count what happens from now on; call what is returned to stop."""
        return telemetry.subscribe(self.count)

    def count(self, event: Event) -> None:
        on = self._on.get(event.name)
        if on is not None:
            on(event.fields)

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)

    def _started(self, fields: dict[str, Any]) -> None:
        self.fired.inc()
        lateness = fields.get("lateness_ms")
        if lateness is not None:
            self.lateness.observe(lateness / 1000)

    def _finished(self, fields: dict[str, Any]) -> None:
        status = _known(fields.get("status"), _STATUSES)
        how = status, str(fields.get("kind", "scheduled"))
        if how not in self._by_end:  # looked up once: 2.0 µs each time
            self._by_end[how] = self.finished.labels(*how)
        self._by_end[how].inc()
        if status == "FAILED":
            self.failed.inc()
        duration = fields.get("duration_ms")
        if duration is not None:
            self.duration.observe(duration / 1000)


def _known(value: Any, known: tuple[str, ...]) -> str:
    """A label from a closed set: what is not in it is "other", whatever an emitter says."""
    return value if value in known else "other"
