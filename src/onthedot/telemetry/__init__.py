"""What happens, said once: `emit(event, **fields)`; log, metrics and server-sent events subscribe.

The emitter never knows who listens, and pays one `if` when nobody does. The events and their fields:

| event | fields |
|---|---|
| run.claimed | n |
| run.started | tenant, job_id, run_id, lateness_ms |
| run.finished | tenant, job_id, run_id, key, status, kind, duration_ms, lateness_ms, error |
| run.retried | tenant, job_id, run_id, key, tries, error |
| run.skipped | tenant, job_id, reason, n |
| run.refused | run_id: a finish whose fence no longer matched |
| run.lost | tenant, job_id, run_id, node |
| dead.letter | tenant, job_id, run_id, reason |
| ledger.conflict | run_id: a slot already in the ledger, the alarm of promise P1 |
| job.created, job.changed, job.deleted, job.quarantined | tenant, job_id, (reason) |
| job.silent | job_id: active and without a next run, which must never be |
| clock.set | by_ms: the database's clock was set, ahead or (negative) back |
| floor.repaired | n, jobs: they had gone on into a future that has not come, and were set back |
| log.unwritten | path, error |
| lookup.abandoned | tenant, host: its name servers did not answer in time |
| login.done, login.refused, logout | address, (key_id or the first characters of the key) |
| key.created, key.revoked | key_id, by_key (None: open server), address, (name, scope, of) |
| node.short | kind, what, capacity: this machine ran out of something and takes less for a while |
| node.registered, node.lost, node.left | node, (by) |
| store.unavailable, store.back, store.refused, store.moved | error |
| store.failover | before, now (system/timeline), gap: another history of the database; numbers go on after the gap |

Events about jobs and runs carry `tenant`: without it no server-sent event is delivered, so that none can reach
another tenant.
"""

from __future__ import annotations

from onthedot.telemetry.bus import Event, Subscriber, Telemetry

__all__ = ["Event", "Subscriber", "Telemetry", "emit", "subscribe", "telemetry"]

telemetry = Telemetry()
"""The process's own; tests that need quiet make another."""

emit = telemetry.emit
subscribe = telemetry.subscribe
