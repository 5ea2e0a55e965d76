"""Small groups of simple jobs in one statement: ids, time, idempotency keys, jobs and first runs, in one round trip.

A transaction of five round trips costs the node and the database about a millisecond each, whatever it writes: for a
thousand jobs that is nothing, for a lonely one nearly all (ADR 0007 has the figures). Simple is a job that only waits:
no key that could be taken, nothing beside its own two rows, and a slot that is the database's time plus a delay.
SQLite has no statement that writes into two tables, and no round trips to save.
"""

from __future__ import annotations

from collections.abc import Sequence

from onthedot.errors import OnTheDotError
from onthedot.model.decoding import encode_json
from onthedot.model.instant import NEVER
from onthedot.model.job import JobSpec, JobView
from onthedot.model.level import level_of
from onthedot.model.secrets import mask_problems
from onthedot.plan import Opening, laned
from onthedot.store.abandoned_requests import too_late
from onthedot.store.driver import Driver
from onthedot.store.jobs.create import Fresh, NewJob
from onthedot.store.jobs.idempotency import KEPT, Idempotency
from onthedot.store.jobs.rows import search_text
from onthedot.store.shapes import Rows, Shape
from onthedot.timing import plain_delay

__all__ = ["MOST", "add_simple", "all_simple"]

MOST = 64
"""Above it the rows count, not the round trips, and COPY takes a fifth of what arrays take for each."""

_FAR = 4_102_444_800_000
"""2100: a delay that ends within the calendar counted from here does so counted from today."""


class SimpleJob(Shape, frozen=True, kw_only=True):
    """What the statement can't know by itself. Few columns: each element of an array costs half a microsecond."""

    tenant: int
    name: str | None
    name_search: str | None
    spec: str
    level: int
    requires: str
    target_type: str
    delay: int
    laned: bool
    at_most_once: bool
    owner: str | None
    idempotency_key: str | None
    fingerprint: str | None


def all_simple(items: Sequence[NewJob]) -> bool:
    if len(items) > MOST or not all(_simple(item) for item in items):
        return False
    keys = [(item.tenant, item.idempotency.key) for item in items if item.idempotency is not None]
    return len(set(keys)) == len(keys)  # one statement can't claim a key twice


def _simple(item: NewJob) -> bool:
    spec = item.spec
    return (
        spec.key is None
        and not spec.tags
        and item.source is None
        and not item.run_now
        and not spec.paused
        and not spec.chained
        and not spec.policy.jitter  # it hashes the run's id, which the statement gives
        and (not laned(spec.policy) or spec.policy.overlap != "allow")  # a group is written with the run
        and plain_delay(spec.schedule, _FAR) is not None
        and not mask_problems(spec.target)
    )


async def add_simple(driver: Driver, items: Sequence[NewJob]) -> list[JobView | OnTheDotError | None]:
    """One answer per item, in order; None: its idempotency key is taken, nothing was written of it."""
    gone = [item.abandoned() for item in items]
    if any(gone):
        made = iter(await _add([item for item, why in zip(items, gone, strict=True) if why is None], driver))
        return [next(made) if why is None else why for why in gone]
    return await _add(items, driver)


async def _add(items: Sequence[NewJob], driver: Driver) -> list[JobView | OnTheDotError | None]:
    """Nothing can end a statement that is on its way when its node freezes or loses the network, so it carries its own
    deadline, on the clock of who carries it out."""
    if not items:
        return []
    rows = [_row(item.tenant, item.spec, item.idempotency) for item in items]
    lookahead = driver.queries.lookahead
    until = min([item.until for item in items if item.until is not None], default=NEVER)
    if len(rows) == 1:
        found = await driver.statement("add_job", lookahead, until, KEPT, *rows)
    else:
        found = await driver.statement("add_jobs", lookahead, until, KEPT, Rows(rows))
    if not found:
        return [too_late()] * len(items)
    (made,) = found
    return [
        None if job_id is None else _view(item, job_id, made["now"])
        for item, job_id in zip(items, made["ids"], strict=True)
    ]


def _row(tenant: int, spec: JobSpec, repeat: Idempotency | None) -> SimpleJob:
    return SimpleJob(
        tenant=tenant,
        name=spec.name,
        name_search=search_text(spec.name),
        spec=encode_json(spec).decode(),
        level=level_of(spec),
        requires=spec.requirement(),
        target_type=spec.target.type,
        delay=int(spec.schedule.in_ or 0),
        laned=laned(spec.policy),
        at_most_once=spec.policy.delivery == "at_most_once",
        owner=spec.owner or None,
        idempotency_key=None if repeat is None else repeat.key,
        fingerprint=None if repeat is None else repeat.fingerprint,
    )


def _view(item: NewJob, job_id: int, now: int) -> JobView:
    opening = Opening(state="active", anchor_at=now, cursor_slot=now + int(item.spec.schedule.in_ or 0))
    return Fresh(id=job_id, tenant=item.tenant, spec=item.spec, opening=opening, source=None).view(now)
