"""The event bus: code calls `emit(event, **fields)`; the log, the metrics and server-sent events subscribe.

Emitters do not know the subscribers, and an event without subscribers costs one `if`. The events and their fields:

| event | fields |
|---|---|
| run.claimed | n |
| run.started | tenant, job_id, run_id, key, lateness_ms |
| run.detached | run_id: its work continues without this node |
| run.adopted | tenant, job_id, run_id, key, lateness_ms: this node continues it |
| installation.frozen, installation.unfrozen | (note, by): all is paused, or goes on |
| ping.received | tenant, job_id, key, signal, run_id, late_for: a job that runs elsewhere has reported |
| run.accepted | tenant, job_id, run_id, key, within_ms: its receiver will tell by a callback how it ended |
| run.finished | tenant, job_id, run_id, key, status, kind, duration_ms, lateness_ms, error |
| run.retried | tenant, job_id, run_id, key, tries, error |
| run.skipped | tenant, job_id, reason, n |
| run.waiting | n, reason (limit, breaker): runs that wait for their destination |
| run.over_share | n: runs that wait because their job or tenant has its share of the workers |
| run.unroutable, run.routable | requires, (n, labels): due runs that no live node can take, or that one can again |
| destination.opened, destination.closed | tenant, destination, failures, (error): a circuit breaker of this node |
| run.refused | run_id: a result was discarded because the fencing token no longer matched |
| callback.refused | tenant, job_id, run_id, try_number: it came for a try that had ended otherwise |
| run.lost | tenant, job_id, run_id, node |
| dead.letter | tenant, job_id, run_id, reason |
| ledger.conflict | run_id: the slot already has an entry in the ledger; violates guarantee P1 |
| job.created, job.changed, job.deleted, job.quarantined | tenant, job_id, (reason) |
| job.silent | job_id: an active job has no next run; must never happen |
| clock.set | by_ms: the database clock was set forward, or back (negative) |
| floor.repaired | n, jobs: a clock that was ahead had moved them into the future; they were set back |
| leftover.removed, leftover.kept | kind, name or error: of what a try that is over had started outside |
| leftover.ended | kind, name: it ran past the deadline that it carries, and nobody else had ended it |
| log.unwritten | path, error |
| lookup.abandoned | tenant, host: the DNS lookup timed out |
| broker.connected, broker.unavailable, broker.back | broker, (error): a message broker that jobs publish to |
| aws.unavailable | service, error: it was not reached, or refused the login of this node |
| workflows.unavailable | engine, error: a workflow engine whose executions are followed does not answer |
| containers.engine, containers.unavailable | address, engine or error: the container engine of this node |
| kubernetes.cluster, kubernetes.unavailable | address, version or error: the cluster of this node |
| intake.reading, intake.paused | intake, (error): messages of it are carried out, or not at present |
| intake.handled, intake.lag | intake, ok, repeated, refused; n |
| intake.refused | intake, message, status, error: it goes to the dead-letter topic |
| login.done, login.refused, logout | address, (key_id or the first characters of the key) |
| key.created, key.revoked | key_id, by_key (None: open server), address, (name, scope, of) |
| incident.opened | tenant, job_id, condition, subject, reason: channels are told |
| incident.closed | incident: what it was about is over |
| alert.sent, alert.failed | channel, n, (error): a message about n incidents |
| alert.watch_failed | error: the look for late, lost and unroutable failed; it is repeated |
| otel.unavailable, otel.back | error: the collector that traces and logs are sent to |
| node.short | kind, what, capacity: out of a resource; takes fewer runs for a while |
| commands.guard_ended | code: the process that ends the commands of a killed node; the next one is started |
| commands.unguarded | error: that process can't be started; commands go on if this node is killed |
| plugin.broken | plugin, error: the server goes on without it |
| script.uploaded, script.deleted | tenant, script, (size) |
| scripts.sandbox | sandbox, broken: what scripts run in, and interpreters that do not |
| scripts.no_sandbox | reason, remedy: this node runs no scripts |
| scripts.left_behind | removed: cgroups of scripts whose node was killed |
| cluster.changed | something happened on another node |
| node.registered, node.draining, node.lost, node.left | node, (by) |
| store.unavailable, store.back, store.refused, store.moved | error |
| store.failover | before, now (system/timeline), gap: failed over or restored; IDs continue after the gap |

Events about jobs and runs have a `tenant`. Events without one are never sent as server-sent events, so that no event
can reach another tenant.
"""

from __future__ import annotations

from onthedot.telemetry.bus import Event, Subscriber, Telemetry

__all__ = ["Event", "Subscriber", "Telemetry", "emit", "subscribe", "telemetry"]

telemetry = Telemetry()
"""The bus of this process; tests can create their own."""

emit = telemetry.emit
subscribe = telemetry.subscribe
