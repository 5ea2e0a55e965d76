"""The columns of `runs`, declared once: all of them, those of a new run, and those that a claim answers.

What a column is for stands beside it in `Run`. A column that every new run has goes into `NewRun`, one that a node must
know goes into `ClaimedRow`; the statements of both databases take their columns from here (see `shapes`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from onthedot.errors import NotFound
from onthedot.model.group import membership
from onthedot.model.instant import NEVER
from onthedot.model.job import JobSpec
from onthedot.model.level import CHAINS, OWN_PARAMS, level_of
from onthedot.model.run import Attempt, ClaimedRun, RunKind, run_id
from onthedot.plan import due_at, laned, ready_at
from onthedot.store.driver import Collision, Transaction
from onthedot.store.shapes import Rows, Shape

__all__ = [
    "CALLBACK",
    "OPEN",
    "ClaimedRow",
    "NewRun",
    "Run",
    "add_runs",
    "claimed_run",
    "decode_attempts",
    "is_run_id",
    "job_of",
    "lane_of",
    "new_run",
    "parse_run_id",
    "scheduled_run",
]


OPEN = "adopt"
"""In `runs.open`: another node may take it up."""
CALLBACK = "callback"
"""In `runs.open`: its receiver will tell how it ended."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """All columns of `runs`. Times are in ms since the epoch, on the database's clock."""

    id: str  # <job id>-<slot>, with -m<n>, -b<n>, -r<n>, -c<n>
    tenant: int
    job_id: int
    slot: int
    kind: RunKind
    cursor: bool  # it is its job's next slot
    recurring: bool  # False: of a one-off job
    state: str  # pending | running
    due_at: int
    ready_at: int  # from when on it may be claimed; NEVER while it is parked
    parked: str | None  # paused | lane | group | quarantined
    resume_at: int | None  # what ready_at was when a pause parked it
    requires: str  # what a node must offer to run it, with labels (see `model.labels`)
    backlog: bool
    level: int  # the lowest code level that understands its job
    lane: int | None  # runs of one lane never run at the same time; below zero: its group alone decides
    at_most_once: bool
    begun_at: int | None  # the send was recorded before it left
    node: str | None  # who has it
    token: int  # +1 at every claim: the fence
    tries: int
    losses: int
    orders: str | None  # what its node shall do with it (see `orders`)
    first_claimed_at: int | None
    claimed_at: int | None
    attempts: str | None  # JSON: those that ended
    parent: str | None  # the run that this one drives again, or whose end has started it
    n: int
    created_at: int
    work: str | None  # JSON: what goes on without a node (see `open`)
    open: str | None  # 'adopt', 'callback': its work goes on, and no node has it
    open_until: int | None  # then its time is up
    noted: bool | None  # its end causes something elsewhere
    depth: int | None  # how many runs stand above it in its chain
    progress: str | None  # JSON: what its work last said of itself
    waiting: str | None  # destination, group: what it waits for, beside its time
    waiting_since: int | None
    waiting_until: int | None  # then it expires while it waits
    group_key: str | None  # its concurrency group (see `model.group`); then it has a lane, too
    group_limit: int | None  # how many of them its job allows at once


class NewRun(Shape, frozen=True, kw_only=True):
    """What a run is when it is put into the queue: pending, no node, no token, no tries."""

    id: str
    tenant: int
    job_id: int
    slot: int
    kind: RunKind
    cursor: bool
    recurring: bool
    due_at: int
    ready_at: int
    parked: str | None
    resume_at: int | None
    requires: str
    backlog: bool
    level: int
    lane: int | None
    at_most_once: bool
    parent: str | None
    n: int
    created_at: int
    group_key: str | None
    group_limit: int | None


class ClaimedRow(Shape, frozen=True):
    """What a claim answers of each run. They come by the thousand, so each is made of a row as it comes."""

    id: str
    tenant: int
    job_id: int
    slot: int
    kind: RunKind
    recurring: bool
    cursor: bool
    due_at: int
    ready_at: int
    token: int
    tries: int
    losses: int
    first_claimed_at: int | None
    attempts: str | None
    lane: int | None
    now: int  # no column: when the claim looked


_attempts = msgspec.json.Decoder(tuple[Attempt, ...])


def decode_attempts(text: str | None) -> tuple[Attempt, ...]:
    return _attempts.decode(text) if text else ()


def claimed_run(row: ClaimedRow, version: int, spec: JobSpec) -> ClaimedRun:
    """For the node that has it now, with its job as it is now."""
    return ClaimedRun(
        id=row.id,
        tenant=row.tenant,
        job_id=row.job_id,
        version=version,
        spec=spec,
        kind=row.kind,
        slot=row.slot,
        due_at=row.due_at,
        token=row.token,
        tries=row.tries,
        losses=row.losses,
        first_claimed_at=row.first_claimed_at or row.now,
        recurring=bool(row.recurring),  # 0 or 1 on SQLite
        attempts=decode_attempts(row.attempts) if row.attempts else (),
    )


def lane_of(job_id: int, spec: JobSpec) -> int | None:
    """Below zero, several of them may run at once: they are claimed like those of a lane, and their group decides."""
    if spec.policy.overlap != "allow":
        return job_id
    return -job_id if laned(spec.policy) else None


def new_run(
    tenant: int,
    job_id: int,
    spec: JobSpec,
    slot: int,
    kind: RunKind,
    *,
    now: int,
    due: int,
    ready: int,
    n: int = 0,
    cursor: bool = False,
    parked: bool = False,
    backlog: bool = False,
    parent: str | None = None,
    own_params: bool = False,
) -> NewRun:
    """A run of that job as its spec is now. parked: its job is paused, and the run waits for the resume."""
    lane = lane_of(job_id, spec)
    group = None if lane is None else membership(tenant, job_id, spec.policy)
    return NewRun(
        id=run_id(job_id, slot, kind, n),
        tenant=tenant,
        job_id=job_id,
        slot=slot,
        kind=kind,
        cursor=cursor,
        recurring=not spec.schedule.one_off,
        due_at=due,
        ready_at=NEVER if parked else ready,
        parked="paused" if parked else None,
        resume_at=ready if parked else None,
        requires=spec.requirement(),
        backlog=backlog,
        level=max(level_of(spec), CHAINS if kind == "chain" else OWN_PARAMS) if own_params else level_of(spec),
        lane=lane,
        at_most_once=spec.policy.delivery == "at_most_once",
        parent=parent,
        n=n,
        created_at=now,
        group_key=None if group is None else group.key,
        group_limit=None if group is None else group.limit,
    )


def scheduled_run(
    tenant: int,
    job_id: int,
    spec: JobSpec,
    slot: int,
    *,
    now: int,
    lookahead: int,
    parked: bool,
    cursor: bool = True,
    backlog: bool = False,
    not_before: int | None = None,
) -> NewRun:
    """The firing of a slot, nearly always its job's next one.

    not_before: ready at the earliest then, for what is put into the queue late: a claim looks no further back than it
    has to.
    """
    jitter = spec.policy.jitter
    due = due_at(slot, run_id(job_id, slot), jitter) if jitter else slot
    ready = ready_at(due, lane=laned(spec.policy), lookahead=lookahead)
    if not_before is not None and not_before > ready:
        ready = not_before
    return new_run(
        tenant,
        job_id,
        spec,
        slot,
        "scheduled",
        now=now,
        due=due,
        ready=ready,
        cursor=cursor,
        parked=parked,
        backlog=backlog,
    )


async def add_runs(tx: Transaction, runs: Sequence[NewRun]) -> None:
    """Into the queue, under their jobs' locks: nobody else can have made them, so one that is there is a Collision."""
    there = await tx.rows("insert_runs", Rows(runs))
    if len(there) < len(runs):
        raise Collision(f"{len(runs) - len(there)} of {len(runs)} new runs already exist")


_SHAPE = re.compile(r"([1-9]\d{0,18})-(-?\d{1,19})(?:-[mbrc]\d{1,19})?", re.ASCII)


def parse_run_id(run_id: str) -> tuple[int, int]:
    """(job id, slot), or NotFound: what has another form is no run of ours."""
    match = _SHAPE.fullmatch(run_id)
    if match is None or int(match[1]) >= 2**63 or abs(int(match[2])) >= 2**63:
        raise NotFound(f"run {run_id[:100]!r} not found")
    return int(match[1]), int(match[2])


def is_run_id(text: object) -> bool:
    """Whether a run could be called so."""
    return isinstance(text, str) and (match := _SHAPE.fullmatch(text)) is not None and int(match[1]) < 2**63


def job_of(run_id: str) -> int:
    job_id, _ = parse_run_id(run_id)
    return job_id
