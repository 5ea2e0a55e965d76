"""What users do over HTTP: make jobs of every kind, change them, run them, take them away; and ask again, under the
same Idempotency-Key, when no answer comes or for no reason at all.

What is not acknowledged proves nothing; what is, stands in the history.
"""

from __future__ import annotations

import asyncio
import random
from datetime import datetime
from typing import Any, Literal

import msgspec

from proof.chaos.asking import Answer, Asking
from proof.chaos.clock import TrueTime
from proof.chaos.specs import Spec, a_batch_item, a_one_off, a_recurring, another_schedule, firings_per_second
from proof.checker.events import Acted, Changed, Crashed, History, Made

__all__ = ["Load", "Workload"]

PATIENCE = 180.0


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Per second: `firings` of which a share are one-offs, `verbs` on jobs that exist."""

    firings: float
    one_offs: float = 0.25
    verbs: float = 3.0


class Workload:
    """Nobody does two things to the same job at once: so what was in force when can be told from the answers."""

    def __init__(
        self, asking: Asking, load: Load, *, url: str, time: TrueTime, history: History, rng: random.Random
    ) -> None:
        self.asking = asking
        self.load = load
        self.founded = asyncio.Event()  # the jobs that fire all along are there
        self.unsure: dict[int, Spec] = {}  # mark → spec of what was refused after a lost answer: it may be there or not
        self._url = url
        self._time = time
        self._history = history
        self._rng = rng
        self._marks = 0
        self._jobs: dict[int, Spec] = {}  # recurring jobs that nobody is busy with
        self._tasks: set[asyncio.Task[None]] = set()

    async def play(self, enough: asyncio.Event) -> None:
        await self._found()
        self.founded.set()
        players = [self._batches(enough), self._singles(enough), self._verbs(enough)]
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
                await self._change(job, "edit", "PATCH", "", {"schedule": _replacing(schedule)})
            case "pause":
                await self._pause(job)
            case "delete":
                await self._change(job, "delete", "DELETE", "")
            case _:
                await self._run(job)

    async def _keep(self, job: int, spec: Spec) -> None:
        rng = self._rng
        match rng.choice(("edit", "edit", "target", "pause", "pause", "run", "run", "delete")):
            case "edit":
                schedule = another_schedule(rng)
                if await self._change(job, "edit", "PATCH", "", {"schedule": _replacing(schedule)}):
                    spec = {**spec, "schedule": schedule}
            case "target":
                url = f"{self._url}/{rng.choice(('ok', 'ok', 'flaky'))}"
                await self._change(job, "edit", "PATCH", "", {"target": {"url": url}})
            case "pause":
                await self._pause(job)
            case "run":
                await self._run(job)
            case _:
                await self._change(job, "delete", "DELETE", "")
                await self._make(a_recurring(rng, self._url), keep=True)
                return
        self._jobs[job] = spec

    async def _pause(self, job: int) -> None:
        await self._change(job, "pause", "POST", "/pause")
        await asyncio.sleep(self._rng.choice((self._rng.uniform(0, 2), self._rng.uniform(2, 10))))
        await self._change(job, "resume", "POST", "/resume")

    # verbs

    async def _make(self, spec: Spec, *, keep: bool = False) -> int | None:
        mark, began = self._mark(), self._time.now
        spec = {**spec, "params": {"mark": mark}} | ({"key": f"job-{mark}"} if mark % 3 else {})
        answer = await self.asking.ask("POST", "/v1/jobs", spec, f"make-{mark}")
        sent = answer.sent
        if answer.good and self._rng.random() < 0.15:  # a user who presses the button twice
            answer = await self.asking.ask("POST", "/v1/jobs", spec, f"make-{mark}")
            sent += answer.sent
        if not answer.good:
            self._refused(mark, spec, answer, sent)
            return None
        job = int(answer.body["id"])
        self._made(mark, job, spec, began, _ms(answer.body["created_at"]), sent)
        if keep:
            self._jobs[job] = spec
        return job

    async def _make_batch(self, count: int) -> None:
        began, now = self._time.now, self._time.db_now()
        marks = [self._mark() for _ in range(count)]
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
                self._made(mark, item["id"], spec, began, self._time.db_now(), sent)
            else:
                self._refused(mark, spec, Answer(item["status"], item, sent), sent)

    def _made(self, mark: int, job: int, spec: Spec, began: int, created_at: int, sent: int) -> None:
        self._history.append(
            Made(at=began, until=self._time.now, mark=mark, job=job, spec=spec, created_at=created_at, sent=sent)
        )

    def _refused(self, mark: int, spec: Spec, answer: Answer, sent: int) -> None:
        """An instant that had passed before anybody answered is rightly refused; nothing else is."""
        if answer.status == 422 and "past" in str(answer.body):
            self.unsure[mark] = spec
        else:
            text = f"{spec} was refused, asked {sent} times: {answer.status} {answer.body}"
            self._history.append(Crashed(at=self._time.now, node="api", error=text))

    async def _change(
        self,
        job: int,
        verb: Literal["edit", "pause", "resume", "delete"],
        method: str,
        path: str,
        body: Any = None,
    ) -> bool:
        began, before = self._time.now, self._time.db_now()
        answer = await self.asking.ask(method, f"/v1/jobs/{job}{path}", body)
        view = answer.body if answer.good else None
        if not answer.good and not (verb == "delete" and answer.status == 404 and answer.sent > 1):
            return False
        self._history.append(
            Changed(
                at=began,
                until=self._time.now,
                job=job,
                verb=verb,
                version=None if view is None else view["version"],
                state=None if view is None else view["state"],
                changed_at=None if view is None else _ms(view["updated_at"]),
                db_before=before,
                db_after=self._time.db_now(),
                spec={"schedule": _written(body["schedule"])}
                if view is not None and "schedule" in (body or {})
                else None,
                sent=answer.sent,
            )
        )
        return True

    async def _run(self, job: int) -> None:
        mark, began = self._mark(), self._time.now
        for _ in range(2 if self._rng.random() < 0.2 else 1):
            answer = await self.asking.ask("POST", f"/v1/jobs/{job}/run", None, f"run-{mark}")
            if answer.good:
                runs = [answer.body["id"]]
                self._history.append(
                    Acted(at=began, until=self._time.now, job=job, verb="run", runs=runs, sent=answer.sent)
                )

    def _mark(self) -> int:
        self._marks += 1
        return self._marks


def _some_unavailable(answer: Answer) -> bool:
    """A batch is answered item by item."""
    return answer.good and any(item["status"] == 503 for item in answer.body)


def _replacing(schedule: Spec) -> Spec:
    """A merge patch that leaves nothing of the schedule before."""
    return {**dict.fromkeys(("cron", "every", "at", "in", "tz")), **schedule}


def _written(patch: Spec) -> Spec:
    return {name: value for name, value in patch.items() if value is not None}


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
