"""Jobs come into being in groups: one transaction and a handful of statements, however many they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from onthedot.errors import Abandoned, Conflict, Invalid, OnTheDotError
from onthedot.model.job import JobSpec, JobView
from onthedot.model.run import run_id
from onthedot.model.secrets import mask_problems
from onthedot.plan import Opening, due_at, laned, opening
from onthedot.store.abandoned_requests import Asker, too_late
from onthedot.store.driver import Rows, Transaction
from onthedot.store.jobs.idempotency import Idempotency
from onthedot.store.jobs.rows import spec_columns, view_of
from onthedot.store.jobs.sequences import take_job_ids, take_run_numbers
from onthedot.store.runs.runs_of_verbs import JOB_ID, cursor_row, run_row
from onthedot.timing import check_schedule

__all__ = ["Fresh", "NewJob", "insert_fresh", "key_taken", "past", "plan_all", "plan_in_breaths", "prepare", "views_of"]


ROWS = 100  # written out between two breaths
BREATH = 16  # jobs between two breaths: a schedule may take a millisecond to compute


class NewJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    tenant: int
    spec: JobSpec
    idempotency: Idempotency | None = None
    source: str | None = None
    run_now: bool = False  # beside its schedule
    asker: Asker | None = None
    until: int | None = None  # by the database's clock: later it is not written

    def abandoned(self, now: int | None = None) -> Abandoned | None:
        """Why it is not to be written any more."""
        if self.asker is None:
            return None
        if now is not None and self.until is not None and now > self.until:
            return too_late()
        try:
            self.asker.check()
        except Abandoned as gone:
            return gone
        return None


class Fresh(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job that is planned but not yet written."""

    id: int
    tenant: int
    spec: JobSpec
    opening: Opening
    source: str | None
    run_now: bool = False

    def view(self, now: int) -> JobView:
        """What reading it back would give, without reading it back."""
        slot = self.opening.cursor_slot if self.opening.state == "active" else None
        jitter = self.spec.policy.jitter
        due = slot if slot is None or not jitter else due_at(slot, run_id(self.id, slot), jitter)
        return view_of(
            self.spec,
            job_id=self.id,
            version=1,
            state=self.opening.state,
            next_run=due,
            created_at=now,
            updated_at=now,
            paused_at=now,
        )


def past(job: Fresh, now: int) -> Invalid | None:
    """Why its time has gone by. Whether a job can still be made is judged where it is written, by the clock that its
    runs go by: judged before, it was refused at one node and made at another, both asked under one Idempotency-Key."""
    slot, schedule = job.opening.cursor_slot, job.spec.schedule
    if slot is not None and (schedule.at is None or slot > now):
        return None
    try:
        check_schedule(schedule, now=now)
    except Invalid as invalid:
        return invalid
    return None


async def prepare(tx: Transaction, items: Sequence[NewJob], now: int) -> list[Fresh | OnTheDotError]:
    """Ids and first slots. An item whose schedule can't be computed gets its error, the others go on."""
    return await plan_in_breaths(tx, items, await take_job_ids(tx, len(items)), now)


async def plan_in_breaths(
    tx: Transaction, items: Sequence[NewJob], ids: Sequence[int], now: int
) -> list[Fresh | OnTheDotError]:
    planned: list[Fresh | OnTheDotError] = []
    for start in range(0, len(items), BREATH):
        if start:
            await tx.breathe()
        part = slice(start, start + BREATH)
        planned += plan_all(items[part], ids[part], now)
    return planned


def plan_all(items: Sequence[NewJob], ids: Sequence[int], now: int) -> list[Fresh | OnTheDotError]:
    """A spec that is the very object of the job before opens as that one did: a bulk often repeats one."""
    spec: JobSpec | None = None
    start: Opening | OnTheDotError | None = None
    planned: list[Fresh | OnTheDotError] = []
    for item, job_id in zip(items, ids, strict=True):
        if item.spec is not spec or start is None:
            spec, start = item.spec, _opened(item.spec, now)
        if isinstance(start, Opening):
            fresh = Fresh(
                id=job_id, tenant=item.tenant, spec=spec, opening=start, source=item.source, run_now=item.run_now
            )
            planned.append(fresh)
        else:
            planned.append(start)
    return planned


def _opened(spec: JobSpec, now: int) -> Opening | OnTheDotError:
    if problems := mask_problems(spec.target):
        return Invalid(problems)
    try:
        return opening(spec, now)
    except OnTheDotError as error:
        return error


def views_of(jobs: Sequence[Fresh], now: int) -> list[JobView]:
    """What reading them back would give, without reading them back."""
    views: list[JobView] = []
    before: Fresh | None = None
    for job in jobs:
        if before is not None and _alike(job, before):
            views.append(msgspec.structs.replace(views[-1], id=job.id))
        else:
            before = _pattern(job)
            views.append(job.view(now))
    return views


def _alike(job: Fresh, before: Fresh) -> bool:
    """Whether nothing but the id tells them apart."""
    return (
        job.spec is before.spec
        and job.opening is before.opening
        and job.tenant == before.tenant
        and job.source == before.source
    )


def _pattern(job: Fresh) -> Fresh | None:
    """The job, if what comes after it may be written by its example: an instant or a lane of its own goes by the id."""
    policy = job.spec.policy
    return None if policy.jitter or laned(policy) else job


async def insert_fresh(tx: Transaction, jobs: Sequence[Fresh], now: int) -> dict[int, Conflict]:
    """Write jobs, tags and first runs. Answers why not, by id, for those whose key was taken."""
    keyed = [job for job in jobs if job.spec.key is not None]
    refused = await _insert_keyed(tx, keyed, now) if keyed else []
    taken = await _taken(tx, refused) if refused else {}
    done = [job for job in jobs if job.id not in taken] if taken else jobs
    plain = await _breathing(tx, _plain_rows([job for job in jobs if job.spec.key is None], now))
    if plain:
        await tx.copy("copy_jobs", plain)
    tags = [(job.tenant, tag, job.id) for job in done if job.spec.tags for tag in dict.fromkeys(job.spec.tags)]
    if tags:
        await tx.execute("insert_tags", Rows(tags))
    begun = [job for job in done if job.opening.cursor_slot is not None]
    cursors = await _breathing(tx, _first_runs(begun, tx.lookahead, now))
    if cursors:
        await tx.copy("copy_runs", cursors)
    if by_hand := [job for job in done if job.run_now]:
        await _run_now(tx, by_hand, now)
    return taken


async def _run_now(tx: Transaction, jobs: Sequence[Fresh], now: int) -> None:
    numbers = await take_run_numbers(tx, len(jobs))
    rows = [
        run_row(job.tenant, job.id, job.spec, now, "manual", due=now, ready=now, n=n)
        for job, n in zip(jobs, numbers, strict=True)
    ]
    await tx.execute("add_runs", now, Rows(rows))


async def _breathing(tx: Transaction, rows: Iterator[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """All of them: to write out a thousand large jobs takes long enough for others to be late."""
    made: list[tuple[Any, ...]] = []
    while part := list(islice(rows, ROWS)):
        made += part
        if len(part) < ROWS:
            break
        await tx.breathe()
    return made


async def _insert_keyed(tx: Transaction, jobs: Sequence[Fresh], now: int) -> list[Fresh]:
    """Those whose key somebody else has. All who write keys do it in one order: no deadlock."""
    rows = await _breathing(tx, (_job_row(job, now) for job in jobs))
    rows.sort(key=lambda row: (row[1], row[2]))
    written = {row["id"] for row in await tx.rows("insert_jobs", now, Rows(rows))}
    return [job for job in jobs if job.id not in written]


def _plain_rows(jobs: Sequence[Fresh], now: int) -> Iterator[tuple[Any, ...]]:
    before: Fresh | None = None
    columns: tuple[Any, ...] = ()
    for job in jobs:
        if before is None or not _alike(job, before):
            before, columns = job, (*_job_row(job, now)[1:], 1, now, 0, now, now)
        yield (job.id, *columns)


def _job_row(job: Fresh, now: int) -> tuple[Any, ...]:
    state = job.opening.state
    return (
        job.id,
        job.tenant,
        *spec_columns(job.spec),
        state,
        now if state == "paused" else None,
        now if state == "ended" else None,
        job.source,
        job.spec.paused if job.source is not None else None,
    )


def _first_runs(jobs: Sequence[Fresh], lookahead: int, now: int) -> Iterator[tuple[Any, ...]]:
    before: Fresh | None = None
    row: tuple[Any, ...] = ()
    front = back = row
    for job in jobs:
        if before is not None and _alike(job, before):
            yield (run_id(job.id, row[1]), *front, job.id, *back)
        else:
            before, row = _pattern(job), (*_first_run(job, lookahead), now)
            front, back = row[1:JOB_ID], row[JOB_ID + 1 :]
            yield row


def _first_run(job: Fresh, lookahead: int) -> tuple[Any, ...]:
    assert job.opening.cursor_slot is not None
    parked = job.opening.state == "paused"
    return cursor_row(job.tenant, job.id, job.spec, job.opening.cursor_slot, lookahead=lookahead, parked=parked)


async def _taken(tx: Transaction, refused: Sequence[Fresh]) -> dict[int, Conflict]:
    rows = await tx.rows("holders_of_keys", Rows([(job.tenant, job.spec.key) for job in refused]))
    holders = {(row["tenant"], row["key"]): row["id"] for row in rows}
    return {job.id: key_taken(job.spec.key, holders.get((job.tenant, job.spec.key))) for job in refused}


def key_taken(key: str | None, holder: int | None) -> Conflict:
    return Conflict(f"the key {key!r} is taken" + (f" by job {holder}" if holder is not None else ""))
