"""What users do: make jobs of every kind, change them, run them, take them away; and ask again when no answer comes."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from onthedot.errors import OnTheDotError, StoreUnavailable
from onthedot.model.decoding import to_builtins
from onthedot.model.instant import parse_rfc3339
from onthedot.model.job import JobSpec, JobView
from onthedot.model.target import WebhookTarget
from onthedot.store import Idempotency, NewJob
from proof.checker.events import Acted, Changed, Crashed, Made
from proof.sim.diary import Wish
from proof.sim.specs import a_one_off, a_recurring, another_schedule
from proof.sim.world import World

__all__ = ["Workload"]

TENANT = 1


class Workload:
    """Each job has one user, who does one thing at a time: so what was in force when can be told from the answers."""

    def __init__(self, world: World, rng: random.Random, *, recurring: int, one_offs: int) -> None:
        self.world = world
        self.rng = rng
        self._recurring = recurring
        self._one_offs = one_offs
        self._marks = 0

    async def play(self, until: float) -> None:
        users = [self._keep(until) for _ in range(self._recurring)] + [self._once(until) for _ in range(self._one_offs)]
        tasks = [self.world.loop.create_task(user) for user in users]
        for task in tasks:
            await task

    # users

    async def _once(self, until: float) -> None:
        rng = self.rng
        await self._wait(rng.uniform(0.5, until - 20))
        job = await self._make(a_one_off(rng, self.world.time.now_ms()))
        if job is None or rng.random() < 0.6:
            return
        await self._wait(rng.uniform(0, 8))
        match rng.choice(("edit", "pause", "delete", "run", "cancel", "redrive")):
            case "edit":
                await self._edit(job, a_one_off(rng, self.world.time.now_ms()).schedule)
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
        job = await self._make(a_recurring(rng))
        while job is not None:
            await self._wait(rng.expovariate(1 / 45))
            if self.world.loop.time() > until:
                return
            match rng.choice(
                ("edit", "target", "pause", "pause", "run", "run", "cancel", "backfill", "redrive", "delete")
            ):
                case "edit":
                    await self._edit(job, another_schedule(rng, job))
                case "target":
                    await self._retarget(job)
                case "pause":
                    await self._change(job, "pause")
                    await self._wait(rng.choice((rng.uniform(0, 3), rng.uniform(3, 30))))
                    await self._change(job, "resume")
                case "run":
                    await self._run(job)
                case "cancel":
                    await self._cancel(job)
                case "backfill":
                    await self._backfill(job)
                case "redrive":
                    await self._redrive(job)
                case _ if rng.random() < 0.4:
                    await self._change(job, "delete")
                    await self._wait(rng.uniform(1, 20))
                    job = await self._make(a_recurring(rng))

    # verbs

    async def _make(self, spec: JobSpec) -> JobView | None:
        self._marks += 1
        mark, began = self._marks, self.world.now
        spec = msgspec.structs.replace(
            spec, params={**spec.params, "mark": mark}, key=f"job-{mark}" if mark % 3 else None
        )
        new = NewJob(tenant=TENANT, spec=spec, idempotency=Idempotency(f"make-{mark}", str(mark)))
        try:
            answers, sent = await self._ask("create_jobs", [new])
            if self.rng.random() < 0.15:  # a user who presses the button twice
                answers, more = await self._ask("create_jobs", [new])
                sent += more
        except OnTheDotError:
            return None
        if not isinstance(job := answers[0], JobView):
            return None  # deleted between the two: the second is told so
        self._hint("due")
        self.world.history.append(
            Made(
                at=began,
                until=self.world.now,
                mark=mark,
                job=job.id,
                spec=to_builtins(spec),
                created_at=_ms(job.created_at),
                sent=sent,
            )
        )
        return job

    async def _edit(self, job: JobView, schedule: Any) -> None:
        await self._update(job, Wish(schedule=schedule))

    async def _retarget(self, job: JobView) -> None:
        target = WebhookTarget(url=f"http://receiver/{self.rng.randint(1, 5)}")
        await self._update(job, Wish(target=target))

    async def _update(self, job: JobView, change: Wish) -> None:
        began, before = self.world.now, self.world.time.now_ms()
        try:
            view, sent = await self._ask("update_job", TENANT, job.id, change)
        except OnTheDotError:
            return
        self._hint("orders")
        self._hint("due")
        self._changed(job, "edit", began, before, view, sent)

    async def _change(self, job: JobView, verb: Any) -> None:
        began, before = self.world.now, self.world.time.now_ms()
        try:
            view, sent = await self._ask(f"{verb}_job", TENANT, job.id)
        except OnTheDotError:
            if verb != "delete":
                return
            view, sent = None, 2  # not found: the first one did it, and its answer was lost
        self._hint("orders")
        self._changed(job, verb, began, before, view, sent)

    def _changed(self, job: JobView, verb: Any, began: int, before: int, view: JobView | None, sent: int) -> None:
        self.world.history.append(
            Changed(
                at=began,
                until=self.world.now,
                job=job.id,
                verb=verb,
                version=None if view is None else view.version,
                state=None if view is None else view.state,
                changed_at=None if view is None else _ms(view.updated_at),
                db_before=before,
                db_after=self.world.time.now_ms(),
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
        """A lost answer would make a second backfill a second wish: it is asked once, and only told if it succeeded."""
        began, now = self.world.now, self.world.time.now_ms()
        try:
            runs = await self.world.api.backfill_job(TENANT, job.id, start=now - 20_000, end=now, force=False, limit=50)
        except OnTheDotError:
            return
        self._acted(job, "backfill", began, runs, 1)

    async def _redrive(self, job: JobView) -> None:
        began = self.world.now
        try:
            runs = await self.world.api.redrive(TENANT, job_id=job.id)
        except OnTheDotError:
            return
        if runs:
            self._acted(job, "redrive", began, list(runs), 1)

    async def _cancel(self, job: JobView) -> None:
        began, now = self.world.now, self.world.time.now_ms()
        rows = await self.world.pending(job.id, now + 2000)
        if not rows:
            return
        run = self.rng.choice(rows)
        try:
            _, sent = await self._ask("cancel_run", TENANT, run)
        except OnTheDotError:
            return
        self._hint("orders")
        self._acted(job, "cancel", began, [run], sent)

    def _acted(self, job: JobView, verb: Any, began: int, runs: list[str], sent: int) -> None:
        self.world.history.append(Acted(at=began, until=self.world.now, job=job.id, verb=verb, runs=runs, sent=sent))

    async def _ask(self, verb: str, *args: Any, **kwargs: Any) -> tuple[Any, int]:
        """Until there is an answer; and how often it took."""
        sent = 0
        while True:
            sent += 1
            try:
                return await getattr(self.world.api, verb)(*args, **kwargs), sent
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
