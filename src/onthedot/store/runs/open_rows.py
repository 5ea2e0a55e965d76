"""Rows of runs whose work goes on without a node: what they are, and how one of them ends."""

from __future__ import annotations

import msgspec

from onthedot.model.decoding import encode_json
from onthedot.model.instant import format_instant
from onthedot.model.job import JobSpec
from onthedot.model.policy import Policy, Retry
from onthedot.model.run import NO_JOB, ClaimedRun, Outcome
from onthedot.model.schedule import Schedule
from onthedot.model.work import Work
from onthedot.plan import Decision
from onthedot.store.driver import Row
from onthedot.store.jobs.rows import decode_spec
from onthedot.store.runs.finish_rows import EndOfTry, Item
from onthedot.store.runs.retry_limits import limit_of
from onthedot.store.runs.row import CALLBACK, decode_attempts

__all__ = ["ended_item", "run_of", "spec_of", "work_of"]

_decode = msgspec.json.Decoder(Work).decode
_GONE = {"type": "deleted"}  # no kind: the target of a job that is gone is nobody's business any more


def work_of(row: Row) -> Work | None:
    return None if row["work"] is None else _decode(row["work"])


def spec_of(row: Row, work: Work | None, job: JobSpec | None) -> JobSpec:
    """What was started, under the policy that its job has now; what began as at most once stays that. Of a job that is
    gone nothing is tried again: what would be is not the last try of all, and ends as cancelled in its finish."""
    target = None if job is None else job.target
    if target is None or (work is not None and work.target):
        started = (work.target if work is not None else None) or _GONE
        text = encode_json({"schedule": {"at": format_instant(row["slot"])}, "target": started}).decode()
        target = decode_spec(text, row["requires"], row["level"]).target
    if job is None:
        schedule = Schedule(at=format_instant(row["slot"]))
        job = JobSpec(schedule=schedule, target=target, policy=Policy(retry=Retry(attempts=row["tries"] + 2)))
    policy = msgspec.structs.replace(job.policy, delivery="at_most_once") if row["at_most_once"] else job.policy
    return msgspec.structs.replace(job, target=target, policy=policy)


def run_of(row: Row, work: Work | None) -> ClaimedRun:
    """As if a node had it. `row`: all of its columns, with `spec`, `version` and `anchor_at` of its job, if there is
    one."""
    job = None if row["spec"] is None else decode_spec(row["spec"], row["requires"], row["level"])
    spec = spec_of(row, work, job)
    return ClaimedRun(
        id=row["id"],
        tenant=row["tenant"],
        job_id=row["job_id"],
        version=NO_JOB if row["version"] is None else row["version"],
        spec=spec,
        kind=row["kind"],
        slot=row["slot"],
        due_at=row["due_at"],
        token=row["token"],
        tries=row["tries"],
        losses=row["losses"],
        first_claimed_at=row["first_claimed_at"] or row["now"],
        recurring=bool(row["recurring"]),
        attempts=decode_attempts(row["attempts"]),
        retry_until=None if row["anchor_at"] is None else limit_of(spec, row["anchor_at"], row["slot"]),
    )


def ended_item(
    row: Row, run: ClaimedRun, work: Work | None, outcome: Outcome, decision: Decision, end: EndOfTry | None = None
) -> Item:
    """How it ended, now. `end`: of a try that was to be completed by a callback."""
    started_at = _started_at(row, run, work)
    return Item(
        id=run.id,
        token=run.token,
        node=CALLBACK if end is not None else row["open"],
        tenant=run.tenant,
        job_id=run.job_id,
        version=run.version,
        slot=run.slot,
        kind=run.kind,
        recurring=run.recurring,
        attempts=run.attempts,
        outcome=outcome,
        decision=decision,
        started_at=started_at,
        finished_at=row["now"],
        lateness_ms=_lateness(run, work, started_at),
        duration_ms=None if started_at is None else max(0, row["now"] - started_at),
        log=None,
        end=end,
        chained=run.spec if run.spec.chained else None,
        target=run.spec.target,
        job=run.spec,
    )


def _started_at(row: Row, run: ClaimedRun, work: Work | None) -> int | None:
    """Of what a callback ended before we recorded that it was accepted it is not known; when it was claimed is."""
    if work is not None and work.started_at is not None:
        return work.started_at
    known: int | None = row["begun_at"]
    if known is None and row["claimed_at"] is not None:
        known = max(row["claimed_at"], run.due_at)
    if known is None:
        known = next((each.started_at for each in reversed(run.attempts) if each.started_at is not None), None)
    return known


def _lateness(run: ClaimedRun, work: Work | None, started_at: int | None) -> int | None:
    """That of the first start."""
    if work is not None and work.lateness_ms is not None:
        return work.lateness_ms
    first = next((each.started_at for each in run.attempts if each.started_at is not None), started_at)
    return None if first is None else max(0, first - run.due_at)
