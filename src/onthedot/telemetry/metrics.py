"""Prometheus metrics. No label has unbounded values: no job ID, no key, no address."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from onthedot.telemetry.bus import Event, Telemetry
from onthedot.telemetry.requests import RequestCounts
from onthedot.version import __version__

__all__ = ["CONTENT_TYPE", "Metrics"]

disable_created_metrics()  # type: ignore[no-untyped-call]  # a creation time for every counter doubles the output for no use

CONTENT_TYPE = CONTENT_TYPE_LATEST
_LATENESS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 3600)
_DURATION = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200)
_HELD = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_STATUSES = ("DONE", "FAILED", "CANCELLED")
_WAIT_REASONS = ("limit", "breaker")
_NOT_STARTED = ("chain_too_long", "deleted")
_SERVICES = ("aws", "containers", "kubernetes", "workflows")
_SKIP_REASONS = ("coalesced", "overlap", "late", "paused", "excluded", "deleted")


class Metrics:
    """The metrics of one node, in a separate registry so that two nodes in one process don't mix."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)  # memory, CPU time and open files, as they are named everywhere
        self.build = Gauge("onthedot_build_info", "Always 1; the version is a label", ["version"], registry=registry)
        self.build.labels(__version__).set(1)
        self.claimed = Counter("onthedot_runs_claimed", "Runs claimed by this node", registry=registry)
        self.fired = Counter("onthedot_runs_fired", "Runs started by this node", registry=registry)
        self.finished = Counter(
            "onthedot_runs_finished", "Finished runs by status and kind", ["status", "kind"], registry=registry
        )
        self.failed = Counter("onthedot_runs_failed", "Runs that failed permanently", registry=registry)
        self.retried = Counter("onthedot_runs_retried", "Failed attempts that will be retried", registry=registry)
        self.skipped = Counter("onthedot_runs_skipped", "Skipped slots by reason", ["reason"], registry=registry)
        self.refused = Counter(
            "onthedot_finishes_refused",
            "Results discarded because the fencing token no longer matched",
            registry=registry,
        )
        self.lost = Counter("onthedot_runs_lost", "Runs whose node was lost", registry=registry)
        self.detached = Counter(
            "onthedot_runs_detached",
            "Runs that this node let go of while their work goes on outside",
            registry=registry,
        )
        self.adopted = Counter(
            "onthedot_runs_adopted", "Runs whose work this node took over from another node", registry=registry
        )
        self.accepted = Counter(
            "onthedot_runs_accepted", "Runs whose receiver will tell by a callback how they ended", registry=registry
        )
        self.callbacks_refused = Counter(
            "onthedot_callbacks_refused", "Callbacks for a try that had ended otherwise", registry=registry
        )
        self.unwritten = Counter(
            "onthedot_run_logs_unwritten", "Log files of runs that could not be written", registry=registry
        )
        self.logins_refused = Counter(
            "onthedot_logins_refused", "Logins to the dashboard that were refused", registry=registry
        )
        self.outside_away = Counter(
            "onthedot_service_unavailable",
            "Times a service that targets need became unavailable to this node",
            ["service"],
            registry=registry,
        )
        self.failovers = Counter(
            "onthedot_store_failovers", "Times the database failed over or was restored", registry=registry
        )
        self.notes_failed = Counter(
            "onthedot_notes_failed", "Consequences of ended runs that could not be carried out", registry=registry
        )
        self.dead = Counter("onthedot_dead_letters", "Runs that became dead letters", registry=registry)
        self.conflicts = Counter(
            "onthedot_ledger_conflicts", "Slots found twice in the ledger; must stay 0", registry=registry
        )
        self.quarantined = Counter(
            "onthedot_jobs_quarantined", "Jobs whose schedule could not be computed", registry=registry
        )
        self.parked = Counter("onthedot_jobs_parked", "Jobs paused at the request of their receiver", registry=registry)
        self.chains_started = Counter(
            "onthedot_chains_started", "Runs started because another run ended", registry=registry
        )
        self.chains_not_started = Counter(
            "onthedot_chains_not_started",
            "Jobs named in a chain that were not started, by reason",
            ["reason"],
            registry=registry,
        )
        self.silent = Counter("onthedot_jobs_silent", "Active jobs without a next run; must stay 0", registry=registry)
        self.clock_set = Counter(
            "onthedot_clock_set", "Changes of the database clock by more than a second", ["way"], registry=registry
        )
        self.floors = Counter(
            "onthedot_floors_repaired",
            "Jobs that a clock running ahead had moved into the future, and that were repaired",
            registry=registry,
        )
        self.lookups_abandoned = Counter("onthedot_lookups_abandoned", "DNS lookups that timed out", registry=registry)
        self.broker_up = Gauge(
            "onthedot_broker_up",
            "1 if this node's last connection to the message broker works, else 0",
            ["broker"],
            registry=registry,
        )
        self.broker_errors = Counter(
            "onthedot_broker_unavailable",
            "Times a message broker became unavailable to this node",
            ["broker"],
            registry=registry,
        )
        self.intake_messages = Counter(
            "onthedot_intake_messages",
            "Messages that this node has handled: ok, repeated (changed nothing) or refused",
            ["intake", "result"],
            registry=registry,
        )
        self.intake_up = Gauge(
            "onthedot_intake_up",
            "1 if this node reads the messages of this intake and carries them out, else 0",
            ["intake"],
            registry=registry,
        )
        self.intake_lag = Gauge(
            "onthedot_intake_lag",
            "Messages that wait at the broker, where it tells; on Kafka those of this node's partitions",
            ["intake"],
            registry=registry,
        )
        self.nodes_lost = Counter("onthedot_nodes_lost", "Nodes declared lost", registry=registry)
        self.short = Counter(
            "onthedot_node_short",
            "Times this machine ran out of descriptors, memory, ports or processes and lowered its capacity",
            registry=registry,
        )
        self.incidents = Counter(
            "onthedot_incidents_opened",
            "Incidents that this node opened and that channels are told of",
            registry=registry,
        )
        self.alerts = Counter(
            "onthedot_alert_messages", "Messages to alert channels: sent or failed", ["result"], registry=registry
        )
        self.otel = Counter(
            "onthedot_otel_items",
            "Spans and log records that were exported to OpenTelemetry, or dropped",
            ["signal", "result"],
            registry=registry,
        )
        self.store_errors = Counter(
            "onthedot_store_unavailable", "Times the store became unavailable", registry=registry
        )
        self.lateness = Histogram(
            "onthedot_run_lateness_seconds", "Start time minus due time", buckets=_LATENESS, registry=registry
        )
        self.duration = Histogram(
            "onthedot_run_duration_seconds", "Duration of runs", buckets=_DURATION, registry=registry
        )
        self.loop_held = Histogram(
            "onthedot_loop_held_seconds",
            "Time the event loop was blocked, if more than a millisecond",
            buckets=_HELD,
            registry=registry,
        )
        self.destination_waits = Counter(
            "onthedot_destination_waits",
            "Runs that this node put back to wait for their destination: at its limit, or its breaker is open",
            ["reason"],
            registry=registry,
        )
        self.share_waits = Counter(
            "onthedot_share_waits",
            "Runs that this node put back because their job or tenant had its share of the workers",
            registry=registry,
        )
        self.breakers_opened = Counter(
            "onthedot_destination_breakers_opened", "Circuit breakers that this node opened", registry=registry
        )
        self.breakers_closed = Counter(
            "onthedot_destination_breakers_closed", "Circuit breakers that this node closed again", registry=registry
        )
        self.requests = RequestCounts()
        registry.register(self.requests)
        self.due = Gauge("onthedot_runs_due", "Runs that are due but not claimed", registry=registry)
        self.backlog = Gauge(
            "onthedot_backlog", "Due runs that no node has claimed yet, by type of target", ["kind"], registry=registry
        )
        self.mailbox_depth = Gauge(
            "onthedot_mailbox_depth",
            "Messages that wait for a part of this node's engine",
            ["mailbox"],
            registry=registry,
        )
        self.mailbox_size = Gauge(
            "onthedot_mailbox_size",
            "Messages that may wait for a part of this node's engine before whoever sends them waits",
            ["mailbox"],
            registry=registry,
        )
        self.load = Gauge(
            "onthedot_load",
            "Work divided by capacity: executing and due runs per slot, of the fullest kind of target",
            registry=registry,
        )
        self.slots = Gauge(
            "onthedot_slots", "Runs that this node may execute at once, by type of target", ["kind"], registry=registry
        )
        self.slots_used = Gauge(
            "onthedot_slots_used", "Runs that this node executes, by type of target", ["kind"], registry=registry
        )
        self.ready = Gauge(
            "onthedot_node_ready", "1 if this node is registered and its lease is valid, else 0", registry=registry
        )
        self.oldest = Gauge("onthedot_oldest_due_seconds", "Waiting time of the oldest due run", registry=registry)
        self.running = Gauge("onthedot_runs_running", "Runs claimed but not finished, on all nodes", registry=registry)
        self.unoffered = Gauge("onthedot_runs_unoffered", "Due runs that no live node can execute", registry=registry)
        self.unreached = Gauge(
            "onthedot_runs_unreached", "Runs whose work goes on where no live node reaches it", registry=registry
        )
        self.unlabelled = Gauge(
            "onthedot_label_runs_waiting",
            "Due runs that wait because no live node has the labels that their job requires",
            registry=registry,
        )
        self.waiting = Gauge(
            "onthedot_destination_runs_waiting",
            "Due runs that wait for their destination, or for their share of the workers",
            registry=registry,
        )
        self.notes = Gauge(
            "onthedot_notes_waiting",
            "Ended runs whose consequences (runs of chains, pauses) are not carried out after a minute",
            registry=registry,
        )
        self.note_wait = Gauge(
            "onthedot_note_wait_seconds", "How long the oldest of them has waited, in seconds", registry=registry
        )
        self.group_waiting = Gauge(
            "onthedot_group_runs_waiting", "Due runs that wait for their concurrency group", registry=registry
        )
        self.group_wait = Gauge(
            "onthedot_group_wait_seconds", "Longest time that a run has waited for its group", registry=registry
        )
        self.breakers = Gauge(
            "onthedot_destination_breakers",
            "Circuit breakers of all nodes that are not closed",
            ["state"],
            registry=registry,
        )
        self.nodes = Gauge("onthedot_nodes", "Nodes by state of their lease", ["state"], registry=registry)
        self.store_up = Gauge("onthedot_store_up", "1 if the store is reachable, else 0", registry=registry)
        self._by_end: dict[tuple[str, str], Counter] = {}
        for reason in _SKIP_REASONS:
            self.skipped.labels(reason)
        for reason in _NOT_STARTED:
            self.chains_not_started.labels(reason)
        for reason in _WAIT_REASONS:
            self.destination_waits.labels(reason)
        for way in ("ahead", "back"):
            self.clock_set.labels(way)
        for result in ("sent", "failed"):
            self.alerts.labels(result)
        for service in _SERVICES:
            self.outside_away.labels(service)
        self._on: dict[str, Callable[[dict[str, Any]], None]] = {
            "run.claimed": lambda f: self.claimed.inc(f.get("n", 1)),
            "run.started": self._started,
            "run.finished": self._finished,
            "run.retried": lambda f: self.retried.inc(f.get("n", 1)),
            "run.skipped": lambda f: self.skipped.labels(_known(f.get("reason"), _SKIP_REASONS)).inc(f.get("n") or 1),
            "chain.started": lambda f: self.chains_started.inc(),
            "chain.not_started": lambda f: self.chains_not_started.labels(_known(f.get("reason"), _NOT_STARTED)).inc(),
            "run.waiting": lambda f: self.destination_waits.labels(_known(f.get("reason"), _WAIT_REASONS)).inc(f["n"]),
            "run.over_share": lambda f: self.share_waits.inc(f["n"]),
            "destination.opened": lambda f: self.breakers_opened.inc(),
            "destination.closed": lambda f: self.breakers_closed.inc(),
            "run.refused": lambda f: self.refused.inc(f.get("n", 1)),
            "run.lost": lambda f: self.lost.inc(f.get("n", 1)),
            "incident.opened": lambda f: self.incidents.inc(),
            "alert.sent": lambda f: self.alerts.labels("sent").inc(),
            "alert.failed": lambda f: self.alerts.labels("failed").inc(),
            "run.detached": lambda f: self.detached.inc(),
            "run.adopted": lambda f: self.adopted.inc(),
            "run.accepted": lambda f: self.accepted.inc(),
            "callback.refused": lambda f: self.callbacks_refused.inc(),
            "log.unwritten": lambda f: self.unwritten.inc(),
            "login.refused": lambda f: self.logins_refused.inc(),
            "note.failed": lambda f: self.notes_failed.inc(),
            "store.failover": lambda f: self.failovers.inc(),
            "dead.letter": lambda f: self.dead.inc(f.get("n", 1)),
            "ledger.conflict": lambda f: self.conflicts.inc(f.get("n", 1)),
            "job.quarantined": lambda f: self.quarantined.inc(),
            "job.parked": lambda f: self.parked.inc(),
            "job.silent": lambda f: self.silent.inc(),
            "clock.set": lambda f: self.clock_set.labels("back" if f["by_ms"] < 0 else "ahead").inc(),
            "floor.repaired": lambda f: self.floors.inc(f["n"]),
            "lookup.abandoned": lambda f: self.lookups_abandoned.inc(),
            "broker.connected": lambda f: self.broker_up.labels(f["broker"]).set(1),
            "broker.back": lambda f: self.broker_up.labels(f["broker"]).set(1),
            "broker.unavailable": self._broker_away,
            "intake.handled": self._handled,
            "intake.reading": lambda f: self.intake_up.labels(f["intake"]).set(1),
            "intake.paused": lambda f: self.intake_up.labels(f["intake"]).set(0),
            "intake.lag": lambda f: self.intake_lag.labels(f["intake"]).set(f["n"]),
            "node.lost": lambda f: self.nodes_lost.inc(),
            "node.short": lambda f: self.short.inc(),
            "store.unavailable": lambda f: self.store_errors.inc(),
            **{f"{service}.unavailable": partial(self._away, service) for service in _SERVICES},
        }

    def count_otel(self, signal: str, result: str, n: int) -> None:
        """From any thread."""
        self.otel.labels(signal, result).inc(n)

    def listen(self, telemetry: Telemetry) -> Callable[[], None]:
        """Subscribe to events; returns a function that unsubscribes."""
        return telemetry.subscribe(self.count)

    def count(self, event: Event) -> None:
        on = self._on.get(event.name)
        if on is not None:
            on(event.fields)

    def text(self) -> bytes:
        """All metrics in the Prometheus text format."""
        return generate_latest(self.registry)

    def _away(self, service: str, fields: dict[str, Any]) -> None:
        self.outside_away.labels(service).inc()

    def _broker_away(self, fields: dict[str, Any]) -> None:
        """Brokers are those of the settings: few."""
        self.broker_up.labels(fields["broker"]).set(0)
        self.broker_errors.labels(fields["broker"]).inc()

    def _handled(self, fields: dict[str, Any]) -> None:
        """Intakes are those of the settings: few."""
        for result in ("ok", "repeated", "refused"):
            self.intake_messages.labels(fields["intake"], result).inc(fields[result])

    def _started(self, fields: dict[str, Any]) -> None:
        self.fired.inc()
        lateness = fields.get("lateness_ms")
        if lateness is not None:
            self.lateness.observe(lateness / 1000)

    def _finished(self, fields: dict[str, Any]) -> None:
        status = _known(fields.get("status"), _STATUSES)
        how = status, str(fields.get("kind", "scheduled"))
        if how not in self._by_end:  # cached: each lookup takes 2.0 µs
            self._by_end[how] = self.finished.labels(*how)
        self._by_end[how].inc()
        if status == "FAILED":
            self.failed.inc()
        duration = fields.get("duration_ms")
        if duration is not None:
            self.duration.observe(duration / 1000)


def _known(value: Any, known: tuple[str, ...]) -> str:
    """A label value from a closed set; anything else becomes "other"."""
    return value if value in known else "other"
