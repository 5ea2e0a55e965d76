"""Jobs come into being in groups: one transaction and a handful of statements, however many they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeVar

import msgspec

from onthedot.errors import Conflict
from onthedot.model.actor import ITSELF, ChangeActor
from onthedot.model.job import JobView
from onthedot.model.run import run_id
from onthedot.plan import laned
from onthedot.store.driver import Transaction
from onthedot.store.jobs.chains import ChainedJob, chain_rows
from onthedot.store.jobs.create import Fresh
from onthedot.store.jobs.rows import KeyOfJob, NewJobRow, TagOfJob, spec_columns, tags_of
from onthedot.store.jobs.sequences import take_run_numbers
from onthedot.store.runs.actors import note_actors
from onthedot.store.runs.row import NewRun, add_runs, new_run, scheduled_run
from onthedot.store.shapes import Rows

__all__ = ["insert_fresh", "key_taken", "views_of"]

T = TypeVar("T")

ROWS = 100  # written out between two breaths


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
    tags: list[TagOfJob] = [tag for job in done if job.spec.tags for tag in tags_of(job.tenant, job.id, job.spec)]
    if tags:
        await tx.execute("insert_tags", Rows(tags))
    chains: list[ChainedJob] = [
        row for job in done if job.spec.chained for row in chain_rows(job.tenant, job.id, job.spec)
    ]
    if chains:
        await tx.execute("insert_chains", Rows(chains))
    begun = [job for job in done if job.opening.cursor_slot is not None]
    cursors = await _breathing(tx, _first_runs(begun, tx.lookahead, now))
    if cursors:
        await tx.copy("copy_runs", cursors)
    if immediate := [job for job in done if job.runs_by is not None]:
        await _run_now(tx, immediate, now)
    return taken


async def _run_now(tx: Transaction, jobs: Sequence[Fresh], now: int) -> None:
    numbers = await take_run_numbers(tx, len(jobs))
    runs = [
        new_run(job.tenant, job.id, job.spec, now, "manual", now=now, due=now, ready=now, n=n)
        for job, n in zip(jobs, numbers, strict=True)
    ]
    await add_runs(tx, runs)
    asked: dict[ChangeActor, list[NewRun]] = {}
    for job, run in zip(jobs, runs, strict=True):
        asked.setdefault(job.runs_by or ITSELF, []).append(run)
    for actor, theirs in asked.items():
        await note_actors(tx, theirs, actor)


async def _breathing(tx: Transaction, rows: Iterator[T]) -> list[T]:
    """All of them: to write out a thousand large jobs takes long enough for others to be late."""
    made: list[T] = []
    while part := list(islice(rows, ROWS)):
        made += part
        if len(part) < ROWS:
            break
        await tx.breathe()
    return made


async def _insert_keyed(tx: Transaction, jobs: Sequence[Fresh], now: int) -> list[Fresh]:
    """Those whose key somebody else has. All who write keys do it in one order: no deadlock."""
    rows = await _breathing(tx, (_job_row(job, now) for job in jobs))
    rows.sort(key=lambda row: (row.tenant, row.key))
    written = {row["id"] for row in await tx.rows("insert_jobs", Rows(rows))}
    return [job for job in jobs if job.id not in written]


def _plain_rows(jobs: Sequence[Fresh], now: int) -> Iterator[NewJobRow]:
    before: Fresh | None = None
    row: NewJobRow | None = None
    for job in jobs:
        if row is None or before is None or not _alike(job, before):
            before, row = job, _job_row(job, now)
            yield row
        else:
            yield msgspec.structs.replace(row, id=job.id)


def _job_row(job: Fresh, now: int) -> NewJobRow:
    state = job.opening.state
    return NewJobRow(
        id=job.id,
        tenant=job.tenant,
        **spec_columns(job.spec),
        state=state,
        paused_at=now if state == "paused" else None,
        ended_at=now if state == "ended" else None,
        source=job.source,
        source_paused=job.spec.paused if job.source is not None else None,
        version=1,
        anchor_at=now,
        slots_used=0,
        created_at=now,
        updated_at=now,
    )


def _first_runs(jobs: Sequence[Fresh], lookahead: int, now: int) -> Iterator[NewRun]:
    before: Fresh | None = None
    run: NewRun | None = None
    for job in jobs:
        if run is None or before is None or not _alike(job, before):
            before, run = _pattern(job), _first_run(job, lookahead, now)
            yield run
        else:
            yield msgspec.structs.replace(run, id=run_id(job.id, run.slot), job_id=job.id)


def _first_run(job: Fresh, lookahead: int, now: int) -> NewRun:
    slot, parked = job.opening.cursor_slot, job.opening.state == "paused"
    assert slot is not None
    return scheduled_run(job.tenant, job.id, job.spec, slot, now=now, lookahead=lookahead, parked=parked)


async def _taken(tx: Transaction, refused: Sequence[Fresh]) -> dict[int, Conflict]:
    wanted = [KeyOfJob(job.tenant, job.spec.key or "") for job in refused]
    rows = await tx.rows("holders_of_keys", Rows(wanted))
    holders = {(row["tenant"], row["key"]): row["id"] for row in rows}
    return {job.id: key_taken(job.spec.key, holders.get((job.tenant, job.spec.key))) for job in refused}


def key_taken(key: str | None, holder: int | None) -> Conflict:
    return Conflict(f"the key {key!r} is already used" + (f" by job {holder}" if holder is not None else ""))
