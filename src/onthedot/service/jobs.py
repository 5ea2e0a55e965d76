"""Verbs on jobs: create, read, list, change, remove, and sync with a file."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

import msgspec

from onthedot.errors import FieldProblem, Invalid, OnTheDotError, TooLarge
from onthedot.model.decoding import convert, to_builtins
from onthedot.model.duration import SECOND, Duration
from onthedot.model.job import JobSpec, JobView
from onthedot.model.policy import Policy
from onthedot.model.unstorable import MOST_PROBLEMS
from onthedot.service.base import ServiceBase
from onthedot.service.checking import check_job, check_new, gather
from onthedot.service.create_batcher import GROUP_LIMIT
from onthedot.service.merge_patch import patched
from onthedot.service.repeats import IdempotencyKey, Repeat, idempotency
from onthedot.store import Idempotency, JobFilter, NewJob, Page, SyncReport
from onthedot.store.abandoned_requests import ASKER, PATIENCE, Asker
from onthedot.store.jobs.rows import keep_secrets, owned
from onthedot.store.jobs.sync import Others
from onthedot.telemetry import emit
from onthedot.timing import plain_delay

__all__ = ["BATCH_LIMIT", "Answered", "JobVerbs"]

BATCH_LIMIT = 5000
FEW = 20  # jobs that are checked right away
"""Checks between two breaths: one or two milliseconds, in which nothing fires. (200 were 6 ms.)"""
Answered = Callable[[JobView | OnTheDotError], None]
_log = logging.getLogger("onthedot.service")


class JobVerbs(ServiceBase):
    async def create_job(self, tenant: int, spec: JobSpec, idempotency_key: IdempotencyKey | None = None) -> JobView:
        repeat = idempotency("jobs", idempotency_key, body=spec)
        try:
            check_new(spec, self.targets, tenant=tenant, now=await self.time.now())
        except Invalid:
            (earlier,) = await self._earlier(tenant, [repeat])
            if earlier is None:
                raise
            return earlier
        return await self.create_checked(tenant, spec, repeat)

    def take_job(
        self,
        tenant: int,
        spec: JobSpec,
        answered: Answered,
        asker: Asker | None = None,
        repeat: Repeat | None = None,
        verb: str = "jobs",
    ) -> bool:
        """`create_job` for a job that nothing need be asked about and no node hinted at: it is answered from the step
        of the loop that knows, without a task. False: nothing was done, and `create_job` has the answer."""
        now = self.time.known()
        if now is None:
            return False
        slot = plain_delay(spec.schedule, now)
        if slot is None or slot - now <= self.unhinted or spec.run_now:
            return False
        try:
            check_job(spec, self.targets, tenant=tenant, now=now)
        except Invalid:
            return False
        stored = self._as_stored(spec, None if asker is None else asker.name)
        once = idempotency(verb, repeat)
        new = NewJob(tenant=tenant, spec=stored, idempotency=once, asker=asker, until=now + PATIENCE)
        self.creates.add(new, _Taken(tenant, answered))
        return True

    async def _earlier(self, tenant: int, repeats: Sequence[Idempotency | None]) -> list[JobView | None]:
        """What a repeat of a request that was fine then is answered, though it would not be fine now (an address that
        may not be called any more): the answer to the first one may have been lost on its way, and there is a job."""
        known = await self.store.earlier_jobs(tenant, [repeat for repeat in repeats if repeat is not None])
        return [None if repeat is None else known.get(repeat.key) for repeat in repeats]

    async def create_checked(self, tenant: int, spec: JobSpec, repeat: Idempotency | None) -> JobView:
        """Into the group, and a hint if it is due soon."""
        new = self._new(tenant, self._as_stored(spec, _who_asks()), repeat, run_now=bool(spec.run_now))
        (answer,) = await self.creates.create([new])
        if isinstance(answer, OnTheDotError):
            raise answer
        emit("job.created", tenant=tenant, job_id=answer.id)
        if new.run_now:
            await self.hint_now()
        elif spec.schedule.in_ is None or spec.schedule.in_ <= self.unhinted:
            await self.hint(answer)
        return answer

    def _new(self, tenant: int, spec: JobSpec, repeat: Idempotency | None, *, run_now: bool) -> NewJob:
        """Asked for by whoever this request is from."""
        asker = ASKER.get()
        until = None if asker is None else self.time.carried() + PATIENCE
        return NewJob(tenant=tenant, spec=spec, idempotency=repeat, run_now=run_now, asker=asker, until=until)

    async def create_many(
        self, tenant: int, specs: Sequence[JobSpec | OnTheDotError], idempotency_key: IdempotencyKey | None = None
    ) -> list[JobView | OnTheDotError]:
        """One durable answer per item, in order; a wrong item does not stop the others.

        An item that could not even be decoded may be given as its error, so that it keeps its place. Under an
        idempotency key each item has one of its own, by its place: a repeat after half an answer fills in the rest. The
        fingerprint is that of all: another body under the same key is refused whole, before anything is written.
        """
        if len(specs) > BATCH_LIMIT:
            raise TooLarge(f"a batch can have at most {BATCH_LIMIT} jobs, this one has {len(specs)}")
        repeats = _placed(idempotency_key, specs)
        await self.store.refuse_other_bodies(tenant, [repeat for repeat in repeats if repeat is not None])
        parts = [slice(start, start + GROUP_LIMIT) for start in range(0, len(specs), GROUP_LIMIT)]
        written = await asyncio.gather(*(self._create_part(tenant, specs[part], repeats[part]) for part in parts))
        made = [answer for part in written for answer in part]
        if any(isinstance(spec, JobSpec) and spec.run_now for spec in specs):
            await self.hint_now()
        else:
            await self.hint(*(answer for answer in made if isinstance(answer, JobView)))
        return made

    async def _create_part(
        self, tenant: int, specs: Sequence[JobSpec | OnTheDotError], repeats: Sequence[Idempotency | None]
    ) -> list[JobView | OnTheDotError]:
        """While one part is written, the next is checked."""
        answers, good = await self._check_all(tenant, specs)
        bad = [place for place in range(len(specs)) if place not in good and repeats[place] is not None]
        for place, earlier in zip(bad, await self._earlier(tenant, [repeats[place] for place in bad]), strict=True):
            answers[place] = earlier or answers[place]
        new = [
            self._new(tenant, spec, repeats[place], run_now=bool(getattr(specs[place], "run_now", False)))
            for place, spec in good.items()
        ]
        written = await self.creates.create(new)
        for place, answer in zip(good, written, strict=True):
            answers[place] = answer
            if isinstance(answer, JobView):
                emit("job.created", tenant=tenant, job_id=answer.id)
        return [answer for answer in answers if answer is not None]

    async def _check_all(
        self, tenant: int, specs: Sequence[JobSpec | OnTheDotError]
    ) -> tuple[list[JobView | OnTheDotError | None], dict[int, JobSpec]]:
        """Objections by place, and the specs that have none, stored. The same object again is not checked again."""
        now = await self.time.now()
        checks = self._checks(tenant, specs, now, _who_asks())
        checked = list(checks) if len(specs) <= FEW else await self.aside.collect(checks)
        answers: list[JobView | OnTheDotError | None] = [objection for objection, _ in checked]
        return answers, {place: stored for place, (_, stored) in enumerate(checked) if stored is not None}

    def _checks(
        self, tenant: int, specs: Sequence[JobSpec | OnTheDotError], now: int, owner: str | None
    ) -> Iterator[tuple[OnTheDotError | None, JobSpec | None]]:
        before: object = None
        objection, stored = None, None
        for spec in specs:
            if spec is not before:
                objection, before = self._objection(tenant, spec, now), spec
                stored = self._as_stored(spec, owner) if objection is None and isinstance(spec, JobSpec) else None
            yield objection, stored

    def _objection(self, tenant: int, spec: JobSpec | OnTheDotError, now: int) -> OnTheDotError | None:
        if isinstance(spec, OnTheDotError):
            return spec
        try:
            check_new(spec, self.targets, tenant=tenant, now=now)
        except Invalid as invalid:
            return invalid
        return None

    async def get_job(self, tenant: int, job_id: int) -> JobView:
        return await self.store.get_job(tenant, job_id)

    async def get_job_by_key(self, tenant: int, key: str) -> JobView:
        return await self.store.get_job_by_key(tenant, key)

    async def list_jobs(self, tenant: int, wanted: JobFilter) -> Page[JobView]:
        return await self.store.list_jobs(tenant, wanted)

    async def replace_job(self, tenant: int, job_id: int, spec: JobSpec, if_match: int | None = None) -> JobView:
        """PUT: the whole spec anew. Equal to what there is: nothing changes, not even the version."""
        now = await self.time.now()

        def change(old: JobSpec) -> JobSpec:
            return self._checked(tenant, keep_secrets(spec, old), old, now)

        return await self._update(tenant, job_id, change, if_match)

    async def patch_job(self, tenant: int, job_id: int, patch: dict[str, Any], if_match: int | None = None) -> JobView:
        """A JSON merge patch (RFC 7396) on the spec as written."""
        now = await self.time.now()

        if "run_now" in patch:
            accepted = "a new job; to run an existing one: POST /v1/jobs/{id}/run"
            raise Invalid.one(
                "run_now", "allowed only when a job is created", given=patch["run_now"], accepted=accepted
            )

        def change(old: JobSpec) -> JobSpec:
            merged = patched(to_builtins(old), patch)
            if "owner" in patch:
                merged["owner"] = patch["owner"]  # null: nobody's, and not: whoever owns it already
            return self._checked(tenant, keep_secrets(convert(merged, JobSpec), old), old, now)

        return await self._update(tenant, job_id, change, if_match)

    async def put_job_by_key(
        self, tenant: int, key: str, spec: JobSpec, if_match: int | None = None
    ) -> tuple[JobView, bool]:
        """Creates or replaces the job of that key; True if it is new. `run_now` is for a new one."""
        if spec.key is None:
            spec = msgspec.structs.replace(spec, key=key)
        if spec.key != key:
            raise Invalid.one("key", "differs from the key in the URL", given=spec.key, accepted=key)
        now, owner = await self.time.now(), _who_asks()

        def change(old: JobSpec | None) -> JobSpec:
            if old is None:
                return owned(self._checked(tenant, spec, None, now), owner)
            return self._checked(tenant, keep_secrets(spec, old), old, now)

        run_now = bool(spec.run_now)
        job, created = await self.store.put_job(tenant, key, change, if_match=if_match, run_now=run_now)
        emit("job.created" if created else "job.changed", tenant=tenant, job_id=job.id)
        await (self.hint_now() if created and run_now else self.hint(job))
        await self.hint_orders()
        return job, created

    async def delete_job(self, tenant: int, job_id: int, if_match: int | None = None) -> None:
        await self.store.delete_job(tenant, job_id, if_match=if_match)
        emit("job.deleted", tenant=tenant, job_id=job_id)
        await self.hint_orders()

    async def sync(
        self,
        tenant: int,
        source: str,
        specs: Sequence[JobSpec],
        prune: bool = False,
        dry_run: bool = False,
        idempotency_key: IdempotencyKey | None = None,
        *,
        file: str | None = None,
        others: Others = "refuse",
        former: str | None = None,
    ) -> SyncReport:
        """Make the jobs of `source` what the file says. One wrong job and nothing is applied.

        `file`: which one it is, where the source is only its name. From a database that several may share, only what
        was loaded from this very file is removed then; `kept` in the report says what was not."""
        file = None if self.settings.is_sqlite else file
        now = await self.time.now()
        checks = self._file_checks(tenant, specs, now)
        stored = list(checks) if len(specs) <= FEW else await self.aside.collect(checks)
        more = () if others == "refuse" and former is None and file is None else (others, former, file)
        repeat = idempotency("sync", idempotency_key, source, body=(specs, prune, dry_run, *more))
        report = await self.store.sync_jobs(
            tenant,
            source,
            stored,
            prune=prune,
            dry_run=dry_run,
            others=others,
            former=former,
            file=file,
            run_now=frozenset(str(spec.key) for spec in specs if spec.run_now),
            owner=_who_asks(),
            idempotency=repeat,
        )
        if not dry_run and (report.created or report.updated or report.removed or report.adopted):
            emit("job.changed", tenant=tenant, source=source)
            await self.hint_now()
            await self.hint_orders()
        return report

    def _file_checks(self, tenant: int, specs: Sequence[JobSpec], now: int) -> Iterator[JobSpec]:
        """As they are stored; Invalid with the first hundred problems if there are any."""
        problems: list[FieldProblem] = []
        for place, spec in enumerate(specs):
            try:
                # whether an `at` is past is judged by the store's sync, which alone knows if the schedule is new
                check = partial(check_job, spec, self.targets, tenant=tenant, now=now, before=spec)
                gather(check, path=f"jobs[{place}]")
            except Invalid as invalid:
                problems.extend(invalid.problems)
                if len(problems) >= MOST_PROBLEMS:
                    break
            yield self._as_stored(spec)
        if problems:
            raise Invalid(problems[:MOST_PROBLEMS])

    async def _update(
        self, tenant: int, job_id: int, change: Callable[[JobSpec], JobSpec], if_match: int | None
    ) -> JobView:
        job = await self.store.update_job(tenant, job_id, change, if_match=if_match)
        emit("job.changed", tenant=tenant, job_id=job_id)
        await self.hint(job)
        await self.hint_orders()
        return job

    def _checked(self, tenant: int, spec: JobSpec, old: JobSpec | None, now: int) -> JobSpec:
        check_new(spec, self.targets, tenant=tenant, now=now, before=old)
        return self._as_stored(spec)

    def _as_stored(self, spec: JobSpec, owner: str | None = None) -> JobSpec:
        """As it is stored. Where its kind of target has a time-out by default, that is written in the job, and reads
        back. `owner`: whose it is if it does not say so."""
        said: dict[str, Any] = {}
        if spec.policy.timeout is None and (seconds := spec.target.timeout_by(self.settings)) is not None:
            said["policy"] = _with_timeout(spec.policy, seconds)
        if owner is not None and spec.owner is msgspec.UNSET:
            said["owner"] = owner
        if spec.run_now is not msgspec.UNSET:
            said["run_now"] = msgspec.UNSET
        return msgspec.structs.replace(spec, **said) if said else spec


class _Taken:
    """A caller that is called back. What it makes of the answer is its own affair: the others get theirs."""

    __slots__ = ("_answered", "_tenant")

    def __init__(self, tenant: int, answered: Answered) -> None:
        self._tenant = tenant
        self._answered = answered

    def answer(self, _place: int, answers: Sequence[JobView | OnTheDotError]) -> None:
        (answer,) = answers
        if isinstance(answer, JobView):
            emit("job.created", tenant=self._tenant, job_id=answer.id)
        try:
            self._answered(answer)
        except Exception:
            _log.exception("could not send the response to a create request")


def _who_asks() -> str | None:
    """The name of the key that this request came with."""
    asker = ASKER.get()
    return None if asker is None else asker.name


@lru_cache(maxsize=256)
def _with_timeout(policy: Policy, seconds: float) -> Policy:
    return msgspec.structs.replace(policy, timeout=Duration(round(seconds * SECOND)))


def _placed(key: IdempotencyKey | None, specs: Sequence[JobSpec | OnTheDotError]) -> list[Idempotency | None]:
    """What each item of a batch is recognised by: its place, and what the whole batch said."""
    said = [spec if isinstance(spec, JobSpec) else str(spec) for spec in specs] if isinstance(key, str) else None
    whole = idempotency("batch", key, body=said)
    if whole is None:
        return [None] * len(specs)
    return [
        Idempotency(f"{whole.key}#{place}", whole.fingerprint) if isinstance(spec, JobSpec) else None
        for place, spec in enumerate(specs)
    ]
