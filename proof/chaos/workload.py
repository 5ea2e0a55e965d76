"""What users do over HTTP: make jobs of every kind, change them, run them, take them away; and ask again, under the
same Idempotency-Key, when no answer comes or for no reason at all.

What is not acknowledged proves nothing; what is, stands in the history.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec

from proof.chaos.asking import Answer, Asking
from proof.chaos.clock import TrueTime
from proof.chaos.crowd import Crowd
from proof.chaos.specs import (
    Spec,
    a_batch_item,
    a_callback,
    a_command,
    a_function,
    a_one_off,
    a_recurring,
    another_policy,
    another_schedule,
    firings_per_second,
)
from proof.chaos.verbs import Verbs
from proof.checker.events import Crashed, History

__all__ = ["Load", "Workload"]

PATIENCE = 180.0


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Per second: `firings` of which a share are one-offs, `verbs` on jobs that exist."""

    firings: float
    one_offs: float = 0.25
    verbs: float = 3.0
    crowd: float = 1.5  # of those verbs that users do to one job at once, and the rarer ones
    functions: int = 3
    commands: int = 1
    callbacks: int = 4


class Workload:
    """What users do all along; what they do to one job at once is `crowd`'s."""

    def __init__(
        self, asking: Asking, load: Load, *, url: str, time: TrueTime, history: History, rng: random.Random
    ) -> None:
        self.asking = asking
        self.load = load
        self.founded = asyncio.Event()  # the jobs that fire all along are there
        self.verbs = Verbs(asking, time=time, history=history, rng=rng)
        self.crowd = Crowd(asking, self.verbs, url=url, time=time, history=history, rng=rng)
        self._url = url
        self._time = time
        self._history = history
        self._rng = rng
        self._jobs: dict[int, Spec] = {}  # recurring jobs that nobody is busy with
        self._tasks: set[asyncio.Task[None]] = set()

    async def play(self, enough: asyncio.Event) -> None:
        await self._found()
        self.founded.set()
        players = [self._batches(enough), self._singles(enough), self._verbs(enough), self._crowds(enough)]
        try:
            await asyncio.gather(*players)
            while self._tasks:
                await asyncio.wait(list(self._tasks))
        finally:
            for task in self._tasks:  # none is left unless the run was interrupted
                task.cancel()

    async def end(self, playing: asyncio.Task[None]) -> None:
        """Until every question is answered; an API that does not come back is a finding."""
        try:
            await asyncio.wait_for(playing, PATIENCE)
        except TimeoutError:
            self._history.append(Crashed(at=self._time.now, node="api", error=f"no answer within {PATIENCE} s"))
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _found(self) -> None:
        """The jobs that fire all along."""
        wanted, rate, specs = self.load.firings * (1 - self.load.one_offs), 0.0, []
        while rate < wanted:
            specs.append(spec := a_recurring(self._rng, self._url))
            rate += firings_per_second(spec["schedule"])
        for begin in range(0, len(specs), 8):
            await asyncio.gather(*(self._make(spec, keep=True) for spec in specs[begin : begin + 8]))
            await asyncio.sleep(self._rng.uniform(0, 0.05))
        others = [a_function(self._rng, self._url) for _ in range(self.load.functions)]
        others += [a_command(self._rng, self._url) for _ in range(self.load.commands)]
        others += [a_callback(self._rng, self._url) for _ in range(self.load.callbacks)]
        await asyncio.gather(*(self._make(spec, keep=True) for spec in others))
        if self.load.crowd:
            await self.crowd.found()

    async def _batches(self, enough: asyncio.Event) -> None:
        """One-off jobs, some dozens in one request."""
        rng = self._rng
        gap = 0.5
        while not enough.is_set():
            count = round(self.load.firings * self.load.one_offs * 0.9 * gap)
            self._start(self._make_batch(max(1, count)))
            await asyncio.sleep(gap * rng.uniform(0.8, 1.2))

    async def _singles(self, enough: asyncio.Event) -> None:
        """One-off jobs that are looked after: changed, paused, deleted, run."""
        rng = self._rng
        rate = max(0.5, self.load.firings * self.load.one_offs * 0.1)
        while not enough.is_set():
            self._start(self._once())
            await asyncio.sleep(rng.expovariate(rate))

    async def _verbs(self, enough: asyncio.Event) -> None:
        rng = self._rng
        while not enough.is_set():
            await asyncio.sleep(rng.expovariate(self.load.verbs))
            if self._jobs:
                job = rng.choice(list(self._jobs))
                self._start(self._keep(job, self._jobs.pop(job)))

    async def _crowds(self, enough: asyncio.Event) -> None:
        rng = self._rng
        while not enough.is_set() and self.load.crowd:
            await asyncio.sleep(rng.expovariate(self.load.crowd))
            if rng.random() < 0.3:
                self._start(self.crowd.aside())
            elif self._jobs:
                job = rng.choice(list(self._jobs))
                self._start(self._among_many(job, self._jobs.pop(job)))

    async def _among_many(self, job: int, spec: Spec) -> None:
        await self.crowd.play(job)
        self._jobs[job] = spec

    def _start(self, doing: Any) -> None:
        if len(self._tasks) < 400:
            task = asyncio.create_task(doing)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            doing.close()

    # users

    async def _once(self) -> None:
        rng = self._rng
        job = await self._make(a_one_off(rng, self._url, self._time.db_now()))
        if job is None or rng.random() < 0.5:
            return
        await asyncio.sleep(rng.uniform(0, 5))
        match rng.choice(("edit", "pause", "delete", "run")):
            case "edit":
                schedule = a_one_off(rng, self._url, self._time.db_now())["schedule"]
                await self.verbs.edit(job, schedule)
            case "pause":
                await self._pause(job)
            case "delete":
                await self.verbs.change(job, "delete", "DELETE", "")
            case _:
                await self.verbs.run(job)

    async def _keep(self, job: int, spec: Spec) -> None:
        rng = self._rng
        match rng.choice(("edit", "edit", "policy", "policy", "target", "pause", "pause", "run", "run", "delete")):
            case "edit":
                schedule = another_schedule(rng)
                if (await self.verbs.edit(job, schedule)).good:
                    spec = {**spec, "schedule": schedule}
            case "policy":
                await self.verbs.change(job, "edit", "PATCH", "", {"policy": another_policy(rng)})
            case "target":
                url = f"{self._url}/{rng.choice(('ok', 'ok', 'flaky'))}"
                await self.verbs.change(job, "edit", "PATCH", "", {"target": {"url": url}})
            case "pause":
                await self._pause(job)
            case "run":
                await self.verbs.run(job)
            case _:
                await self.verbs.change(job, "delete", "DELETE", "")
                await self._make(a_recurring(rng, self._url), keep=True)
                return
        self._jobs[job] = spec

    async def _pause(self, job: int) -> None:
        await self.verbs.change(job, "pause", "POST", "/pause")
        await asyncio.sleep(self._rng.choice((self._rng.uniform(0, 2), self._rng.uniform(2, 10))))
        await self.verbs.change(job, "resume", "POST", "/resume")

    # verbs

    async def _make(self, spec: Spec, *, keep: bool = False) -> int | None:
        job = await self.verbs.make(spec)
        if keep and job is not None:
            self._jobs[job] = spec
        return job

    async def _make_batch(self, count: int) -> None:
        began, now = self._time.now, self._time.db_now()
        marks = [self.verbs.mark() for _ in range(count)]
        specs = [{**a_batch_item(self._rng, self._url, now), "params": {"mark": mark}} for mark in marks]
        key = f"batch-{marks[0]}"
        answer = await self.asking.ask("POST", "/v1/jobs/batch", specs, key)
        sent = answer.sent
        while _some_unavailable(answer) or self._rng.random() < 0.1:
            answer = await self.asking.ask("POST", "/v1/jobs/batch", specs, key)
            sent += answer.sent
        items = answer.body if answer.good else [answer.body] * count
        for mark, spec, item in zip(marks, specs, items, strict=True):
            if item["status"] == 201:
                self.verbs.made(mark, item["id"], spec, began, self._time.db_now(), sent)
            else:
                self.verbs.refused(mark, spec, Answer(item["status"], item, sent), began, sent)


def _some_unavailable(answer: Answer) -> bool:
    """A batch is answered item by item."""
    return answer.good and any(item["status"] == 503 for item in answer.body)
