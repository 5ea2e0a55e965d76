"""Creating jobs: one, many, or one that is answered by a callback. All of them go through the batcher."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence

from onthedot.clock import Clock
from onthedot.errors import Invalid, OnTheDotError, StoreUnavailable, TooLarge
from onthedot.model.job import JobSpec, JobView
from onthedot.service.aside import FEW_JOBS
from onthedot.service.checking import check_job, check_new
from onthedot.service.create_batcher import GROUP_LIMIT, unexpected
from onthedot.service.created import tell_created
from onthedot.service.repeats import IdempotencyKey, Repeat, idempotency
from onthedot.service.scripts import ScriptVerbs, missing_script
from onthedot.service.stored_spec import as_stored, who_asks
from onthedot.store import Idempotency, NewJob
from onthedot.store.abandoned_requests import ASKER, PATIENCE, Asker
from onthedot.timing import plain_delay

__all__ = ["BATCH_LIMIT", "Answered", "CreateVerbs"]

BATCH_LIMIT = 5000
Answered = Callable[[JobView | OnTheDotError], None]
_log = logging.getLogger("onthedot.service")


class CreateVerbs(ScriptVerbs):
    async def create_job(self, tenant: int, spec: JobSpec, idempotency_key: IdempotencyKey | None = None) -> JobView:
        repeat = idempotency("jobs", idempotency_key, body=spec)
        spec = spec.in_default_zone(self.settings.default_tz)
        try:
            check_new(
                spec,
                self.targets,
                tenant=tenant,
                now=await self.time.now(),
                calls_back=self.calls_back,
                channels=self.settings.channels,
            )
            await self.check_scripts(tenant, spec.target)
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
        spec = spec.in_default_zone(self.settings.default_tz)
        slot = plain_delay(spec.schedule, now)
        if slot is None or slot - now <= self.unhinted or _asks_more(spec):
            return False
        try:
            check_job(
                spec, self.targets, tenant=tenant, now=now, calls_back=self.calls_back, channels=self.settings.channels
            )
        except Invalid:
            return False
        stored = as_stored(spec, self.settings, None if asker is None else asker.name)
        once = idempotency(verb, repeat)
        new = NewJob(tenant=tenant, spec=stored, idempotency=once, asker=asker, until=now + PATIENCE)
        self.creates.add(new, _Taken(tenant, answered, self.clock))
        return True

    async def _earlier(self, tenant: int, repeats: Sequence[Idempotency | None]) -> list[JobView | None]:
        """What a repeat of a request that was fine then is answered, though it would not be fine now (an address that
        may not be called any more): the answer to the first one may have been lost on its way, and there is a job."""
        known = await self.store.earlier_jobs(tenant, [repeat for repeat in repeats if repeat is not None])
        return [None if repeat is None else known.get(repeat.key) for repeat in repeats]

    async def create_checked(self, tenant: int, spec: JobSpec, repeat: Idempotency | None) -> JobView:
        """Into the group, and a hint if it is due soon."""
        stored = as_stored(spec, self.settings, who_asks())
        new = self._new(tenant, stored, repeat, run_now=bool(spec.run_now))
        (answer,) = await (self._create_chained([new]) if stored.chained else self.creates.create([new]))
        if isinstance(answer, OnTheDotError):
            raise answer
        tell_created(tenant, answer, self.clock)
        if new.run_now:
            await self.hint_now()
        elif spec.schedule.in_ is None or spec.schedule.in_ <= self.unhinted:
            await self.hint(answer)
        return answer

    async def _create_chained(self, items: Sequence[NewJob]) -> Sequence[JobView | OnTheDotError]:
        """Jobs that name others to follow them, and perhaps each other: in one transaction of their own, because it may
        have to wait for a sync, and others must not wait with it."""
        try:
            return await self.store.create_jobs(items)
        except StoreUnavailable as error:
            return [error] * len(items)
        except Exception as error:
            return [unexpected(error)] * len(items)

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
        return await self.create_each(tenant, specs, repeats)

    async def create_each(
        self, tenant: int, specs: Sequence[JobSpec | OnTheDotError], repeats: Sequence[Idempotency | None]
    ) -> list[JobView | OnTheDotError]:
        """The same, each recognised by a key of its own."""
        parts = [slice(start, start + GROUP_LIMIT) for start in range(0, len(specs), GROUP_LIMIT)]
        written = await asyncio.gather(*(self._create_part(tenant, specs[part], repeats[part]) for part in parts))
        made = await self._create_last(tenant, [answer for part in written for answer in part])
        if any(isinstance(spec, JobSpec) and spec.run_now for spec in specs):
            await self.hint_now()
        else:
            await self.hint(*(answer for answer in made if isinstance(answer, JobView)))
        return made

    async def known_repeats(self, tenant: int, repeats: Sequence[Idempotency]) -> dict[str, bool]:
        """Which keys were used in the last 24 hours: True for the same request, False for another one."""
        return await self.store.known_repeats(tenant, repeats)

    async def _create_last(
        self, tenant: int, answers: Sequence[JobView | OnTheDotError | NewJob]
    ) -> list[JobView | OnTheDotError]:
        """Those that name others, when all others of the batch are there."""
        chained = [answer for answer in answers if isinstance(answer, NewJob)]
        written = iter(await self._create_chained(chained) if chained else ())
        made = [next(written) if isinstance(answer, NewJob) else answer for answer in answers]
        for before, answer in zip(answers, made, strict=True):
            if isinstance(before, NewJob) and isinstance(answer, JobView):
                tell_created(tenant, answer, self.clock)
        return made

    async def _create_part(
        self, tenant: int, specs: Sequence[JobSpec | OnTheDotError], repeats: Sequence[Idempotency | None]
    ) -> list[JobView | OnTheDotError | NewJob]:
        """While one part is written, the next is checked. One that names others to follow it is not written yet."""
        answers, good = await self._check_all(tenant, specs)
        bad = [place for place in range(len(specs)) if place not in good and repeats[place] is not None]
        for place, earlier in zip(bad, await self._earlier(tenant, [repeats[place] for place in bad]), strict=True):
            answers[place] = earlier or answers[place]
        new = {
            place: self._new(tenant, spec, repeats[place], run_now=bool(getattr(specs[place], "run_now", False)))
            for place, spec in good.items()
        }
        now = [place for place, job in new.items() if not job.spec.chained]
        written = dict(zip(now, await self.creates.create([new[place] for place in now]), strict=True))
        for answer in written.values():
            if isinstance(answer, JobView):
                tell_created(tenant, answer, self.clock)
        made: dict[int, JobView | OnTheDotError | NewJob] = {**new, **written}
        return [made[place] if answer is None else answer for place, answer in enumerate(answers)]

    async def _check_all(
        self, tenant: int, specs: Sequence[JobSpec | OnTheDotError]
    ) -> tuple[list[JobView | OnTheDotError | None], dict[int, JobSpec]]:
        """Objections by place, and the others as they are stored. The same object again is not checked again."""
        now = await self.time.now()
        missing = await self.missing_scripts(tenant, (spec.target for spec in specs if isinstance(spec, JobSpec)))
        checks = self._checks(tenant, specs, now, who_asks(), missing)
        checked = list(checks) if len(specs) <= FEW_JOBS else await self.aside.collect(checks)
        answers: list[JobView | OnTheDotError | None] = [objection for objection, _ in checked]
        return answers, {place: stored for place, (_, stored) in enumerate(checked) if stored is not None}

    def _checks(
        self,
        tenant: int,
        specs: Sequence[JobSpec | OnTheDotError],
        now: int,
        owner: str | None,
        missing: frozenset[str],
    ) -> Iterator[tuple[OnTheDotError | None, JobSpec | None]]:
        before: object = None
        objection, stored = None, None
        for given in specs:
            if given is not before:
                before, zone = given, self.settings.default_tz
                spec = given.in_default_zone(zone) if isinstance(given, JobSpec) else given
                objection = self._objection(tenant, spec, now, missing)
                stored = (
                    as_stored(spec, self.settings, owner) if objection is None and isinstance(spec, JobSpec) else None
                )
            yield objection, stored

    def _objection(
        self, tenant: int, spec: JobSpec | OnTheDotError, now: int, missing: frozenset[str]
    ) -> OnTheDotError | None:
        if isinstance(spec, OnTheDotError):
            return spec
        try:
            check_new(
                spec, self.targets, tenant=tenant, now=now, calls_back=self.calls_back, channels=self.settings.channels
            )
        except Invalid as invalid:
            return invalid
        unknown = missing.intersection(spec.target.scripts()) if missing else ()
        return Invalid([missing_script(script) for script in unknown]) if unknown else None


class _Taken:
    """A caller that is called back. What it makes of the answer is its own affair: the others get theirs."""

    __slots__ = ("_answered", "_clock", "_tenant")

    def __init__(self, tenant: int, answered: Answered, clock: Clock) -> None:
        self._tenant = tenant
        self._answered = answered
        self._clock = clock

    def answer(self, _place: int, answers: Sequence[JobView | OnTheDotError]) -> None:
        (answer,) = answers
        if isinstance(answer, JobView):
            tell_created(self._tenant, answer, self._clock)
        try:
            self._answered(answer)
        except Exception:
            _log.exception("could not send the response to a create request")


def _asks_more(spec: JobSpec) -> bool:
    """It takes more than one statement, or its answer says more than the job does."""
    return bool(spec.run_now or spec.chained or spec.target.scripts()) or spec.target.report_within is not None


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
