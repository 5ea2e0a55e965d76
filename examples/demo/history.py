"""Two weeks that did not happen: the ledger, its dead letters and logs, and the numbers made of them.

Every slot that a job would have had since it was made has exactly one row, so that the proof holds for the past, too.
"""

from __future__ import annotations

import random
from urllib.parse import urlsplit

import msgspec

from examples.demo.company import DemoJob
from examples.demo.story import PastRun, past_runs
from examples.demo.tables import Tables
from onthedot.model.duration import DAY, HOUR, MINUTE
from onthedot.model.instant import NEVER
from onthedot.model.run import Outcome
from onthedot.model.targets import WebhookTarget
from onthedot.plan import cause_of, due_at, timetable_of
from onthedot.store import Store

__all__ = ["write_history"]

TENANT = 1
LATE_MS = 1000
LOGS_OF_A_JOB = 40
HISTORY = (
    *("tenant", "job_id", "kind", "due_at", "losses"),
    *("id", "slot", "status", "reason", "token", "tries", "node", "started_at", "finished_at", "lateness_ms"),
    *("duration_ms", "outcome", "error", "attempts"),
)


async def write_history(tables: Tables, store: Store, jobs: dict[int, DemoJob], now: int, days: int) -> int:
    """How many runs it has."""
    next_slots = dict(await tables.rows("SELECT job_id, slot FROM runs WHERE cursor"))
    total = 0
    for job_id, job in jobs.items():
        made_at = now - min(job.story.since, days * DAY) - random.Random(job_id).randint(1, 50) * MINUTE
        runs = []
        if not job.spec.schedule.one_off:
            until = next_slots.get(job_id, now)  # not `now`: a slot may have come while the jobs were made
            runs = past_runs(job.story, job_id, _slots(job, made_at, until), now, _port(job))
        await tables.change("UPDATE jobs SET created_at = $1, updated_at = $1 WHERE id = $2", [(made_at, job_id)])
        await tables.change("UPDATE job_versions SET at = $1 WHERE job_id = $2", [(made_at, job_id)])
        if runs:
            await _write(tables, job_id, job, runs)
        total += len(runs)
    await _count(tables, store, now, days)
    return total


def _port(job: DemoJob) -> int:
    target = job.spec.target
    return (urlsplit(target.url).port or 80) if isinstance(target, WebhookTarget) else 0


def _slots(job: DemoJob, after: int, until: int) -> list[int]:
    timetable, slots = timetable_of(job.spec, after), []
    slot = timetable.next_after(after)
    while slot is not None and slot < until:
        slots.append(slot)
        slot = timetable.next_after(slot)
    return slots


def _cause(run: PastRun, job: DemoJob) -> str:
    """As a node would have stored it."""
    said = msgspec.json.decode(run.outcome or "{}")
    outcome = Outcome(kind="error", error=run.error, detail={"status_code": said.get("status_code")})
    return cause_of(outcome, job.spec.target)


async def _write(tables: Tables, job_id: int, job: DemoJob, runs: list[PastRun]) -> None:
    jitter = job.spec.policy.jitter
    await tables.insert(
        "history",
        HISTORY,
        [
            (
                *(TENANT, job_id, "scheduled", due_at(run.slot, run.id, jitter) if jitter else run.slot, 0),
                *(run.id, run.slot, run.status, run.reason, run.token, run.tries, run.node, run.started_at),
                *(run.finished_at, run.lateness_ms, run.duration_ms, run.outcome, run.error, run.attempts),
            )
            for run in runs
        ],
    )
    failed = [run for run in runs if run.status == "failed"]
    if failed:
        await tables.insert(
            "dead_letters",
            ("run_id", "tenant", "job_id", "slot", "failed_at", "cause"),
            [(run.id, TENANT, job_id, run.slot, run.finished_at, _cause(run, job)) for run in failed],
        )
    logs = [(run.id, TENANT, run.log, run.finished_at) for run in runs[-LOGS_OF_A_JOB:] if run.log]
    if logs:
        await tables.insert("run_logs", ("run_id", "tenant", "log", "updated_at"), logs)
    last = runs[-1]
    await tables.insert(
        "job_stats",
        (
            *("job_id", "tenant", "runs", "failures", "timed", "duration_ms", "last_duration_ms", "last_lateness_ms"),
            *("last_status", "last_run_id", "last_finished_at"),
        ),
        [
            (
                *(job_id, TENANT, len(runs), len(failed), len(runs), sum(run.duration_ms for run in runs)),
                *(last.duration_ms, last.lateness_ms, last.status, last.id, last.finished_at),
            )
        ],
    )
    noticed = [("failing", last.status == "failed"), ("late", last.lateness_ms > LATE_MS)]
    await tables.insert(
        "noticed_jobs",
        ("tenant", "what", "job_id", "noticed_at"),
        [(TENANT, what, job_id, last.finished_at) for what, is_so in noticed if is_so],
    )
    await tables.change("UPDATE jobs SET claimed_slot = $1 WHERE id = $2", [(last.slot, job_id)])
    if job.quarantined:
        await tables.change(
            "UPDATE jobs SET state = 'quarantined', reason = $1 WHERE id = $2", [(job.quarantined, job_id)]
        )
        await tables.change(
            "UPDATE runs SET parked = 'quarantined', ready_at = $1 WHERE job_id = $2 AND cursor", [(NEVER, job_id)]
        )


async def _count(tables: Tables, store: Store, now: int, days: int) -> None:
    """The numbers of the past as the duty would have counted them, day by day, by the same code."""
    begin = now - now % DAY - (days + 1) * DAY
    await tables.change("DELETE FROM duty_marks WHERE name = $1", [("rollup.closed",), ("rollup.settled",)])
    marks = [("rollup.closed", now - now % HOUR - HOUR), ("rollup.settled", begin)]
    await tables.insert("duty_marks", ("name", "at"), marks)
    while await store.roll_up():
        pass
