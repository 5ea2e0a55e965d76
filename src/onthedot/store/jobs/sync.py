"""Make the jobs of one source (a jobs file) what it says: all of it, or nothing.

The same file again changes nothing, a changed job keeps its id and history. Syncs of one tenant take turns: nodes that
start together with the same file must not collide over its keys.

A key that another source, or a job made by hand, has already is refused, left alone or taken over, as the caller says.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Literal

import msgspec

from onthedot.errors import Conflict, FieldProblem, Invalid, OnTheDotError
from onthedot.model.actor import ChangeActor, file_actor
from onthedot.model.job import JobSpec
from onthedot.model.schedule import UNNAMED_ZONE
from onthedot.model.secrets import mask_problems
from onthedot.model.sync import SyncReport
from onthedot.model.unstorable import MOST_PROBLEMS
from onthedot.store.abandoned_requests import ASKER, acting
from onthedot.store.driver import Collision, Row, Transaction
from onthedot.store.jobs.apply_plan import groups_of, lock, remove
from onthedot.store.jobs.chains import check_chains, refuse_if_named
from onthedot.store.jobs.create import Fresh, NewJob, prepare
from onthedot.store.jobs.create_rows import insert_fresh
from onthedot.store.jobs.idempotency import Idempotency, once
from onthedot.store.jobs.rows import KeyOfJob, decode_spec, keep_owner, keep_secrets, keep_zone, owned
from onthedot.store.jobs.verbs import edit
from onthedot.store.runs.groups import call_next
from onthedot.store.shapes import Rows, Shape
from onthedot.store.topic import Topic
from onthedot.timing import check_schedule

__all__ = ["JobSync", "Others"]

Others = Literal["refuse", "leave", "adopt"]
"""What becomes of jobs that have one of our keys and are not ours."""


BREATH = 8  # jobs between two breaths
PORTION = 200  # jobs written by one statement


class SaidOfPause(Shape, frozen=True):
    """Whether the file says that the job is paused."""

    id: int
    paused: bool


class _Plan(msgspec.Struct, kw_only=True):
    created: list[JobSpec] = msgspec.field(default_factory=list)
    updated: list[tuple[int, JobSpec]] = msgspec.field(default_factory=list)
    unchanged: list[str] = msgspec.field(default_factory=list)
    removed: list[tuple[int, str]] = msgspec.field(default_factory=list)
    paused: list[SaidOfPause] = msgspec.field(default_factory=list)  # what the file says now
    adopted: list[tuple[int, str]] = msgspec.field(default_factory=list)
    kept: list[str] = msgspec.field(default_factory=list)
    held: dict[str, str] = msgspec.field(default_factory=dict)

    def report(self) -> SyncReport:
        return SyncReport(
            created=[str(spec.key) for spec in self.created],
            updated=[str(spec.key) for _, spec in self.updated],
            unchanged=self.unchanged,
            removed=[key for _, key in self.removed],
            adopted=[key for _, key in self.adopted],
            kept=self.kept,
            held=self.held,
        )


class JobSync(Topic):
    async def sync_jobs(
        self,
        tenant: int,
        source: str,
        specs: Sequence[JobSpec],
        *,
        prune: bool,
        dry_run: bool = False,
        others: Others = "refuse",
        former: str | None = None,
        file: str | None = None,
        run_now: frozenset[str] = frozenset(),
        owner: str | None = None,
        zone: str = UNNAMED_ZONE,
        idempotency: Idempotency | None = None,
    ) -> SyncReport:
        """Create, change and (with `prune`) remove jobs until those of `source` are `specs`. Jobs among them that were
        kept under the name `former` are taken over, whatever `others` says.

        `file`: which file it is, where the source is only its name. Then only jobs that were loaded from this very file
        are removed: another one of the same name may be loaded, too. `run_now`: keys of jobs that also run at once
        if they are new; `owner`: whose those are that don't say it. `zone`: of those that name none, when they are new
        or their schedule is; the others stay in the zone they have, so that the same file again changes nothing."""
        _check_keys(specs)
        actor = file_actor(source) if ASKER.get() is None else acting()

        async def apply(tx: Transaction) -> SyncReport:
            await tx.rows("lock_tenant", tenant)
            plan = await _compare(tx, tenant, source, specs, prune, others, former, file, zone)
            await _check_chains(tx, tenant, specs, plan)
            if not dry_run:
                groups = await _apply(tx, tenant, source, plan, run_now, owner, actor)
                mine = [spec.key for spec in specs if spec.key not in plan.held]
                await tx.execute("set_origin", tenant, source, mine, file)
                await call_next(tx, groups)
            return plan.report()

        try:
            return await self.as_asked(
                lambda tx: once(tx, tenant, idempotency, SyncReport, lambda: apply(tx)), long=True
            )
        except Collision:
            raise Conflict(f"a key of {source!r} was taken by another request during the update; retry") from None


def _check_keys(specs: Sequence[JobSpec]) -> None:
    """A job of a file is known by its key."""
    problems, seen = [], set()
    for place, spec in enumerate(specs):
        path = f"jobs[{place}].key"
        if spec.key is None:
            problems.append(FieldProblem(path=path, message="required in a jobs file", accepted="a unique key"))
        elif spec.key in seen:
            problems.append(FieldProblem(path=path, message="duplicate key", given=spec.key, accepted="a unique key"))
        seen.add(spec.key)
        if len(problems) == MOST_PROBLEMS:
            break
    if problems:
        raise Invalid(problems)


async def _compare(
    tx: Transaction,
    tenant: int,
    source: str,
    specs: Sequence[JobSpec],
    prune: bool,
    others: Others,
    former: str | None,
    file: str | None,
    zone: str,
) -> _Plan:
    ours = {row["key"]: row for row in await tx.rows("jobs_of_source", tenant, source)}
    plan, now = _Plan(), await tx.now()
    problems: list[FieldProblem] = []
    there = {**ours, **await _of_others(tx, tenant, specs, ours.keys(), plan, others, former)}
    for place, spec in enumerate(specs):
        if place % BREATH == 0:
            await tx.breathe()
        if len(problems) >= MOST_PROBLEMS:
            break
        if spec.key in plan.held:
            continue
        row = there.get(spec.key)
        before = None if row is None else decode_spec(row["spec"])
        spec = keep_zone(spec, before, zone)
        if before is None or before.schedule != spec.schedule:
            problems += _schedule_problems(place, spec, now)
        if row is None or before is None:
            problems += _placed(place, mask_problems(spec.target))
            plan.created.append(spec)
        else:
            try:
                _compare_one(plan, row, keep_secrets(spec, before), before)
            except Invalid as invalid:
                problems += _placed(place, invalid.problems)
    if problems:
        raise Invalid(problems[:MOST_PROBLEMS])
    wanted = {spec.key for spec in specs}
    for key, row in ours.items():
        if key in wanted:
            continue
        if prune and (file is None or row["origin"] == file):
            plan.removed.append((row["id"], key))
        else:
            plan.kept.append(key)
    return plan


async def _check_chains(tx: Transaction, tenant: int, specs: Sequence[JobSpec], plan: _Plan) -> None:
    """After all of it was read: jobs of a file name each other in any order. Also of a dry run, and of a file that
    changes nothing: it may leave out what its own jobs name."""
    ours = [place for place, spec in enumerate(specs) if spec.key not in plan.held]
    gone = [key for _, key in plan.removed]
    if any(specs[place].chained for place in ours):
        found = await check_chains(tx, tenant, [specs[place] for place in ours], gone=gone)
        problems = [
            problem for nth, refusal in sorted(found.items()) for problem in _placed(ours[nth], refusal.problems)
        ]
        if problems:
            raise Invalid(problems[:MOST_PROBLEMS])
    written = {job_id for job_id, _ in (*plan.updated, *plan.removed)}
    await refuse_if_named(tx, tenant, gone, "remove jobs that are no longer in the file", but=written)


async def _of_others(
    tx: Transaction,
    tenant: int,
    specs: Sequence[JobSpec],
    own: AbstractSet[str],
    plan: _Plan,
    others: Others,
    former: str | None,
) -> dict[str, Row]:
    """Those of others that are taken over, by key; the rest is noted in the plan, or refused."""
    keys = [spec.key for spec in specs if spec.key is not None and spec.key not in own]
    holders = await tx.rows("holders_of_keys", Rows([KeyOfJob(tenant, key) for key in keys])) if keys else []
    if not holders:
        return {}
    taken: list[Row] = []
    left: list[Row] = []
    for row in holders:
        ours = others == "adopt" or (former is not None and row["source"] == former)
        (taken if ours else left).append(row)
    if left and others == "refuse":
        _refuse(left, specs)
    plan.held = {row["key"]: _whose(row) for row in left}
    plan.adopted = [(row["id"], row["key"]) for row in taken]
    return {row["key"]: row for row in await tx.rows("jobs_by_ids", tenant, [row["id"] for row in taken])}


def _compare_one(plan: _Plan, row: Row, spec: JobSpec, before: JobSpec) -> None:
    """A pause or resume by hand holds until the file itself says something else than it did."""
    if spec.paused == bool(row["source_paused"]):
        wanted = msgspec.structs.replace(spec, paused=before.paused)
    else:
        wanted = spec
        plan.paused.append(SaidOfPause(row["id"], spec.paused))
    if keep_owner(wanted, before) == before:
        plan.unchanged.append(str(spec.key))
    else:
        plan.updated.append((row["id"], wanted))


def _schedule_problems(place: int, spec: JobSpec, now: int) -> list[FieldProblem]:
    """Only here it is known whether a schedule is new: a past `at` that was loaded before is no mistake."""
    try:
        check_schedule(spec.schedule, now=now, changed=True)
    except Invalid as invalid:
        return _placed(place, invalid.problems)
    return []


def _placed(place: int, problems: Sequence[FieldProblem]) -> list[FieldProblem]:
    return [msgspec.structs.replace(problem, path=f"jobs[{place}].{problem.path}") for problem in problems]


NAMED_MOST = 20


def _refuse(holders: Sequence[Row], specs: Sequence[JobSpec]) -> None:
    """What may be done about it depends on who asked: a request sets `adopt`, the command has an option."""
    named = "; ".join(f"{row['key']!r} belongs to {_whose(row)}" for row in holders[:NAMED_MOST])
    more = f"; and {len(holders) - NAMED_MOST} more" if len(holders) > NAMED_MOST else ""
    places = {spec.key: place for place, spec in enumerate(specs)}
    problems = [
        FieldProblem(
            path=f"jobs[{places[row['key']]}].key",
            message=f"belongs to {_whose(row)}",
            given=row["key"],
            accepted="a key that no other job has; or any, with `adopt` to take these jobs over",
        )
        for row in holders[:MOST_PROBLEMS]
    ]
    raise Conflict(f"nothing was applied: {named}{more}", problems)


def _whose(row: Row) -> str:
    owner = f"the file {row['source']!r}" if row["source"] else "a job that is not from a file"
    return f"{owner} (job {row['id']})"


async def _apply(
    tx: Transaction,
    tenant: int,
    source: str,
    plan: _Plan,
    run_now: frozenset[str],
    owner: str | None,
    actor: ChangeActor,
) -> set[str]:
    """The concurrency groups that this concerns."""
    if plan.adopted:
        await tx.execute("set_source", tenant, source, [job_id for job_id, _ in plan.adopted])
    groups = await _change(tx, tenant, plan, actor)
    if plan.paused:
        await tx.execute("set_source_paused", tenant, Rows(plan.paused))
    items = [
        NewJob(tenant=tenant, spec=owned(spec, owner), source=source, run_now=spec.key in run_now, by=actor)
        for spec in plan.created
    ]
    await _create(tx, items)
    return groups


async def _change(tx: Transaction, tenant: int, plan: _Plan, actor: ChangeActor) -> set[str]:
    """In the order of their ids, as whoever locks several does. One after the other: a source has 50,000 jobs at times,
    and as many locked records at once kept the collector busy for 50 ms at a time."""
    updated, groups = dict(plan.updated), set[str]()
    for job_id in sorted([*updated, *(job_id for job_id, _ in plan.removed)]):
        job = await lock(tx, tenant, job_id)
        if job is None:
            continue
        spec = updated.get(job_id)
        groups |= groups_of(job, spec)
        if spec is None:
            await remove(tx, job, actor=actor, settle=False)
        else:
            await edit(tx, job, spec, actor=actor, settle=False)
    return groups


async def _create(tx: Transaction, items: Sequence[NewJob]) -> None:
    now = await tx.now()
    for start in range(0, len(items), PORTION):
        fresh: list[Fresh] = []
        for planned in await prepare(tx, items[start : start + PORTION], now):
            if isinstance(planned, OnTheDotError):
                raise planned
            fresh.append(planned)
        for refusal in (await insert_fresh(tx, fresh, now)).values():
            raise refusal
        await tx.breathe()
