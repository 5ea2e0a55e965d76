"""What users do: make jobs of every kind, change them, run them, take them away; and ask again when no answer comes.

Some jobs have two users who know nothing of each other. What was in force when is told by the order of the commits.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec

from onthedot.errors import Invalid, OnTheDotError, StoreUnavailable
from onthedot.model.decoding import to_builtins
from onthedot.model.instant import parse_rfc3339
from onthedot.model.job import JobSpec, JobView
from onthedot.plan import coming
from onthedot.store import Idempotency, LetterFilter, NewJob
from proof.checker.events import Acted, Changed, Crashed, Made, Refused
from proof.sim.chains import a_chain, followers
from proof.sim.diary import Wish
from proof.sim.specs import a_one_off, a_recurring, a_target, another_policy, another_schedule, in_group
from proof.sim.world import World

__all__ = ["Workload"]

TENANT = 1
SHARED = 0.3
"""The share of recurring jobs that have a second user."""
VERBS = (
    *("edit", "target", "policy", "pause", "pause", "run", "run", "cancel", "cancel"),
    *("cancel_edit", "backfill", "redrive", "delete", "stale", "skip", "skip", "undelete"),
)
FREEZES = 0.3
"""The share of worlds in which everything is paused for a while."""


class Workload:
    def __init__(self, world: World, rng: random.Random, *, recurring: int, one_offs: int) -> None:
        self.world = world
        self.rng = rng
        self._recurring = recurring
        self._one_offs = one_offs
        self._marks = 0
        self._chained = False
        self.grouped = False  # most jobs have a concurrency group, or a limit of their own

    def chain(self) -> None:
        """Jobs are followed by others."""
        self._chained = True

    def crowd(self, times: int) -> None:
        self._recurring *= times
        self._one_offs *= times

    async def play(self, until: float) -> None:
        if self._chained:
            await self._make_followers()
        users = [self._keep(until) for _ in range(self._recurring)] + [self._once(until) for _ in range(self._one_offs)]
        users += [self._file(until), self._freeze(until)]
        tasks = [self.world.loop.create_task(user) for user in users]
        for task in tasks:
            await task

    # users

    async def _once(self, until: float) -> None:
        rng = self.rng
        await self._wait(rng.uniform(0.5, until - 20))
        many = rng.randint(2, 4) if rng.random() < 0.05 else 1
        jobs = await self._make(*(a_one_off(rng, self.world.time.now_ms()) for _ in range(many)))
        if not jobs or rng.random() < 0.6:
            return
        job = rng.choice(jobs)
        await self._wait(rng.uniform(0, 8))
        match rng.choice(("edit", "pause", "delete", "run", "cancel", "redrive")):
            case "edit":
                await self._update(job, Wish(schedule=a_one_off(rng, self.world.time.now_ms()).schedule))
            case "pause":
                await self._change(job, "pause")
                await self._wait(rng.uniform(0, 10))
                await self._change(job, "resume")
            case "delete":
                await self._change(job, "delete")
            case "run":
                await self._run(job)
            case "cancel":
                await self._cancel(job)
            case _:
                await self._wait(15)
                await self._redrive(job)

    async def _keep(self, until: float) -> None:
        rng = self.rng
        await self._wait(rng.uniform(0.5, 60))
        jobs = await self._make(a_recurring(rng))
        while jobs:
            if rng.random() < SHARED:
                self.world.loop.create_task(self._meddle(jobs[0], min(until, self.world.loop.time() + 120)))
            gone = False
            while not gone:
                await self._wait(rng.expovariate(1 / 45))
                if self.world.loop.time() > until:
                    return
                gone = await self._act(jobs[0])
            await self._wait(rng.uniform(1, 20))
            jobs = await self._make(a_recurring(rng))

    async def _meddle(self, job: JobView, until: float) -> None:
        """A second user, for a while."""
        while True:
            await self._wait(self.rng.expovariate(1 / 20))
            if self.world.loop.time() > until or await self._act(job):
                return

    async def _act(self, job: JobView) -> bool:
        """One of the things that users do to a recurring job. True: it is deleted."""
        rng = self.rng
        match rng.choice(VERBS):
            case "edit":
                await self._update(job, Wish(schedule=another_schedule(rng)))
            case "target":
                await self._update(job, Wish(target=a_target(rng)))
            case "policy":
                await self._update(job, Wish(policy=another_policy(rng, job)))
            case "pause":
                await self._change(job, "pause")
                await self._wait(rng.choice((rng.uniform(0, 3), rng.uniform(3, 30))))
                await self._change(job, "resume")
            case "run":
                await self._run(job)
            case "cancel":
                await self._cancel(job)
            case "cancel_edit":
                await self._cancel(job)
                await self._update(job, Wish(schedule=another_schedule(rng)))
            case "backfill":
                await self._backfill(job)
            case "redrive":
                await self._redrive(job)
            case "skip":
                await self._skip(job)
            case "undelete":
                await self._change(job, "delete")
                await self._wait(rng.choice((rng.uniform(0, 3), rng.uniform(3, 30))))
                await self._change(job, "undelete")
            case "freeze":
                await self._pause_all(rng.uniform(1, 20))
            case "stale":
                await self._update(job, Wish(target=a_target(rng)), if_match=rng.randint(1, 3))
            case _ if rng.random() < 0.4:
                await self._change(job, "delete")
                return True
        return False

    async def _file(self, until: float) -> None:
        """Somebody who keeps jobs in a file, loads it whenever it changes, and sometimes again."""
        rng, jobs = self.rng, dict[str, JobSpec]()
        while self.world.loop.time() < until - 60:
            await self._wait(rng.uniform(10, 60))
            for name in ("file-a", "file-b"):
                if name not in jobs:
                    self._marks += 1
                    spec = a_recurring(rng)
                    jobs[name] = msgspec.structs.replace(
                        spec, key=name, params={**spec.params, "mark": self._marks}, paused=False
                    )
                elif rng.random() < 0.3:
                    del jobs[name]
                elif rng.random() < 0.3:
                    jobs[name] = msgspec.structs.replace(jobs[name], schedule=another_schedule(rng))
            try:
                await self._ask("sync_jobs", TENANT, "jobs.json", list(jobs.values()), prune=True)
            except OnTheDotError:
                continue
            self._hint("due")
            self._hint("orders")

    async def _freeze(self, until: float) -> None:
        """Somebody who pauses everything for a while."""
        rng = self.rng
        begin, seconds = rng.uniform(20, max(until - 40, 25)), rng.uniform(1, 20)
        if rng.random() < FREEZES:
            await self._wait(begin)
            await self._pause_all(seconds)

    async def _pause_all(self, seconds: float) -> None:
        await self._ask("freeze", TENANT, None)
        self._hint("orders")
        await self._wait(seconds)
        await self._ask("unfreeze", TENANT)
        self._hint("due")

    # verbs

    async def _make_followers(self) -> None:
        await self._create(followers(self.world.time.now_ms()))

    async def _make(self, *specs: JobSpec) -> list[JobView]:
        chained = [a_chain(self.rng, spec) for spec in specs] if self._chained else specs
        return await self._create(chained)

    async def _create(self, specs: Sequence[JobSpec]) -> list[JobView]:
        began, new, marks = self.world.now, list[NewJob](), list[int]()
        for spec in specs:
            self._marks += 1
            marks.append(mark := self._marks)
            key = spec.key or (f"job-{mark}" if mark % 3 else None)
            named = msgspec.structs.replace(spec, params={**spec.params, "mark": mark}, key=key)
            if self.grouped:
                named = in_group(named, mark)
            new.append(NewJob(tenant=TENANT, spec=named, idempotency=Idempotency(f"make-{mark}", str(mark))))
        try:
            answers, sent = await self._ask("create_jobs", new)
            if self.rng.random() < 0.15:  # a user who presses the button twice
                answers, more = await self._ask("create_jobs", new)
                sent += more
        except OnTheDotError:
            return []
        self._hint("due")
        jobs = list[JobView]()
        for item, mark, job in zip(new, marks, answers, strict=True):
            if isinstance(job, JobView):  # else it was deleted between the two: the second is told so
                jobs.append(job)
                self.world.history.append(
                    Made(
                        at=began,
                        until=self.world.now,
                        mark=mark,
                        job=job.id,
                        spec=to_builtins(item.spec),
                        created_at=_ms(job.created_at),
                        sent=sent,
                    )
                )
            elif isinstance(job, Invalid):
                until, why = self.world.now, str(job)
                self.world.history.append(Refused(at=began, until=until, mark=mark, why=why))
        return jobs

    async def _update(self, job: JobView, change: Wish, if_match: int | None = None) -> None:
        began = self.world.now
        named = {} if if_match is None else {"if_match": if_match}
        try:
            view, sent = await self._ask("update_job", TENANT, job.id, change, **named)
        except OnTheDotError:
            return
        self._hint("orders")
        self._hint("due")
        self._changed(job, "edit", began, view, sent)

    async def _change(self, job: JobView, verb: Any) -> None:
        began = self.world.now
        try:
            view, sent = await self._ask(f"{verb}_job", TENANT, job.id)
        except OnTheDotError:
            if verb != "delete":
                return
            view, sent = None, 2  # not found: the first one did it, and its answer was lost
        self._hint("orders")
        self._changed(job, verb, began, view, sent)

    def _changed(self, job: JobView, verb: Any, began: int, view: JobView | None, sent: int) -> None:
        self.world.history.append(
            Changed(
                at=began,
                until=self.world.now,
                job=job.id,
                verb=verb,
                version=None if view is None else view.version,
                state=None if view is None else view.state,
                changed_at=None if view is None else _ms(view.updated_at),
                spec=None
                if view is None or verb != "edit"
                else {
                    "schedule": to_builtins(view.schedule),
                    "policy": to_builtins(view.policy),
                    "params": view.params,
                },
                sent=sent,
            )
        )

    async def _run(self, job: JobView) -> None:
        self._marks += 1
        began, key = self.world.now, f"run-{self._marks}"
        try:
            run, sent = await self._ask("run_job", TENANT, job.id, idempotency=Idempotency(key, key))
            if self.rng.random() < 0.2:
                again, more = await self._ask("run_job", TENANT, job.id, idempotency=Idempotency(key, key))
                self._acted(job, "run", began, [again.id], more)
        except OnTheDotError:
            return
        self._hint("due")
        self._acted(job, "run", began, [run.id], sent)

    async def _backfill(self, job: JobView) -> None:
        self._marks += 1
        began, now, key = self.world.now, self.world.time.now_ms(), f"fill-{self._marks}"
        try:
            runs, sent = await self._ask(
                "backfill_job",
                *(TENANT, job.id),
                start=now - 20_000,
                end=now,
                force=self.rng.random() < 0.3,
                limit=50,
                idempotency=Idempotency(key, key),
            )
        except OnTheDotError:
            return
        self._acted(job, "backfill", began, runs, sent)

    async def _redrive(self, job: JobView) -> None:
        self._marks += 1
        began, key = self.world.now, f"drive-{self._marks}"
        try:
            runs, sent = await self._ask(
                "redrive", TENANT, LetterFilter(job_id=job.id), idempotency=Idempotency(key, key)
            )
        except OnTheDotError:
            return
        if runs:
            self._acted(job, "redrive", began, list(runs), sent)

    async def _cancel(self, job: JobView) -> None:
        began = self.world.now
        rows = await self.world.live_runs(job.id)
        if not rows:
            return
        run = self.rng.choice(rows)
        try:
            _, sent = await self._ask("cancel_run", TENANT, run)
        except OnTheDotError:
            return
        self._hint("orders")
        self._acted(job, "cancel", began, [run], sent)

    async def _skip(self, job: JobView) -> None:
        """One of the next slots is left out, and at times taken back."""
        began = self.world.now
        try:
            ahead, _ = await self._ask("job_ahead", TENANT, job.id)
            slots = list(islice(coming(ahead.record, ahead.cursor_slot, ahead.now, ahead.taken), 6))
            if not slots:
                return
            slot = self.rng.choice(slots)
            _, sent = await self._ask("skip_slot", TENANT, job.id, slot)
            self._hint("orders")
            self._acted(job, "skip", began, [f"{job.id}-{slot}"], sent)
            if self.rng.random() < 0.4:
                await self._wait(self.rng.uniform(0, 4))
                began = self.world.now
                _, sent = await self._ask("unskip_slot", TENANT, job.id, slot)
                self._hint("due")
                self._acted(job, "unskip", began, [f"{job.id}-{slot}"], sent)
        except OnTheDotError:
            return

    def _acted(self, job: JobView, verb: Any, began: int, runs: list[str], sent: int) -> None:
        self.world.history.append(Acted(at=began, until=self.world.now, job=job.id, verb=verb, runs=runs, sent=sent))

    async def _ask(self, verb: str, *args: Any, **kwargs: Any) -> tuple[Any, int]:
        """Until there is an answer, at one door after another; and how often it took."""
        sent, front = 0, self.world.front
        while True:
            sent += 1
            client = front.client()
            if verb == "create_jobs":
                args = ([msgspec.structs.replace(item, asker=client) for item in args[0]],)
            try:
                return await front.ask(client, verb, args, kwargs), sent
            except StoreUnavailable:
                await self._wait(self.rng.uniform(0.05, 1.5))
            except OnTheDotError:
                raise
            except Exception as error:  # a 500: never an answer that a user may get
                problem = f"{verb}: {type(error).__name__}: {error}"
                self.world.history.append(Crashed(at=self.world.now, node="api", error=problem))
                raise OnTheDotError(problem) from error

    def _hint(self, topic: str) -> None:
        """As the API does after a commit; some are never given."""
        if self.rng.random() < 0.7:
            self.world.loop.call_later(self.rng.uniform(0, 0.05), self.world.hint, topic)

    async def _wait(self, seconds: float) -> None:
        await self.world.time.sleep(seconds)


def _ms(text: str) -> int:
    moment = parse_rfc3339(text)
    assert moment is not None
    return moment
