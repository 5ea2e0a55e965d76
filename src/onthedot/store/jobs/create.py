"""Jobs that are asked for, and what each will be: its id, its first slot, or why it can't be made."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.errors import Abandoned, Invalid, OnTheDotError
from onthedot.model.actor import ITSELF, ChangeActor
from onthedot.model.job import JobSpec, JobView
from onthedot.model.run import run_id
from onthedot.model.secrets import mask_problems
from onthedot.plan import Opening, due_at, opening
from onthedot.store.abandoned_requests import Asker, too_late
from onthedot.store.driver import Transaction
from onthedot.store.jobs.idempotency import Idempotency
from onthedot.store.jobs.sequences import take_job_ids
from onthedot.store.jobs.views import view_of
from onthedot.timing import check_schedule

__all__ = ["Fresh", "NewJob", "past", "plan_all", "plan_in_breaths", "prepare"]


BREATH = 16  # jobs between two breaths: a schedule may take a millisecond to compute


class NewJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    tenant: int
    spec: JobSpec
    idempotency: Idempotency | None = None
    source: str | None = None
    run_now: bool = False  # beside its schedule
    asker: Asker | None = None
    until: int | None = None  # by the database's clock: later it is not written
    by: ChangeActor | None = None  # who asked for the run at once, if not `asker`

    @property
    def runs_by(self) -> ChangeActor | None:
        """Who asked for its run at once; None: nobody asked for one."""
        if not self.run_now:
            return None
        return self.by or (None if self.asker is None else self.asker.actor) or ITSELF

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
    runs_by: ChangeActor | None = None  # it runs at once, beside its schedule, because that one asked for it

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
                id=job_id, tenant=item.tenant, spec=spec, opening=start, source=item.source, runs_by=item.runs_by
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
