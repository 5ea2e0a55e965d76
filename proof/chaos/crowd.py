"""Users who get in each other's way, and verbs beyond the everyday ones.

contrary    a pause that gets no answer soon is given up; the job is paused and resumed elsewhere
together    two or three verbs on one job at the same moment, some of them only for the version that was read (If-Match)
cancels     of any pending run, however far ahead; of a job that fires once a year, which is then set to every second
by hand     backfill, redrive
timers      the shorthand for one webhook once
a file      jobs applied as a jobs file is: the same again, which changes nothing; and with one of them changed
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from proof.chaos.asking import Answer, Asking
from proof.chaos.clock import TrueTime
from proof.chaos.specs import Spec, a_recurring, another_policy, another_schedule, instant
from proof.chaos.verbs import Verb, Verbs, ms_of
from proof.checker.events import Acted, Changed, Crashed, History, Made

__all__ = ["Crowd"]

SOURCE = "chaos.json"
RARE: tuple[Spec, ...] = ({"cron": "0 0 1 1 *"}, {"every": "6h"}, {"cron": "30 4 29 2 *", "tz": "Europe/Berlin"})


class Crowd:
    def __init__(
        self, asking: Asking, verbs: Verbs, *, url: str, time: TrueTime, history: History, rng: random.Random
    ) -> None:
        self._asking = asking
        self._verbs = verbs
        self._url = url
        self._time = time
        self._history = history
        self._rng = rng
        self._rare: list[int] = []
        self._file: list[Spec] = []
        self._in_file: dict[str, dict[str, Any]] = {}  # key → what was read of it last
        self._applying = asyncio.Lock()
        self.timers: set[int] = set()

    async def found(self) -> None:
        for schedule in RARE:
            spec = {**a_recurring(self._rng, self._url), "schedule": schedule}
            job = await self._verbs.make(spec)
            if job is not None:
                self._rare.append(job)
        self._file = [
            {**a_recurring(self._rng, self._url), "key": f"file-{number}", "params": {"mark": self._verbs.mark()}}
            for number in range(4)
        ]
        await self.apply()

    async def play(self, job: int) -> None:
        """One of the verbs on a job that nobody else is busy with; afterwards it goes on."""
        match self._rng.choice(("contrary",) * 4 + ("together",) * 2 + ("cancel", "backfill", "redrive", "if_match")):
            case "contrary":
                await self._contrary(job)
            case "together":
                await self._together(job)
            case "cancel":
                await self.cancel(job)
            case "backfill":
                await self._backfill(job)
            case "redrive":
                await self._redrive(job)
            case _:
                await self._change_what_was_read(job)

    async def aside(self) -> None:
        """One of those that need no job of the others."""
        match self._rng.choice(("timer", "timer", "apply", "distant")):
            case "timer":
                await self._timer()
            case "apply":
                await self.apply()
            case _:
                await self._distant()

    # on one job

    async def _together(self, job: int) -> None:
        verbs = self._verbs
        doing: list[Callable[[], Awaitable[object]]] = [
            lambda: verbs.change(job, "pause", "POST", "/pause"),
            lambda: verbs.change(job, "resume", "POST", "/resume"),
            lambda: verbs.edit(job, another_schedule(self._rng)),
            lambda: verbs.change(job, "edit", "PATCH", "", {"policy": another_policy(self._rng)}),
            lambda: self._change_what_was_read(job),
            lambda: verbs.run(job),
            lambda: self.cancel(job),
        ]
        await asyncio.gather(*(one() for one in self._rng.sample(doing, self._rng.randint(2, 3))))
        await verbs.change(job, "resume", "POST", "/resume")

    async def _contrary(self, job: int) -> None:
        """What was given up must not be carried out afterwards: the job would be paused, and nobody knows."""
        await self._asking.try_once("POST", f"/v1/jobs/{job}/pause", self._rng.choice((0.05, 0.3, 1.0)))
        await self._verbs.change(job, "pause", "POST", "/pause")
        await self._verbs.change(job, "resume", "POST", "/resume")

    async def _change_what_was_read(self, job: int) -> None:
        """With If-Match: carried out on that version, or not at all."""
        read = await self._asking.ask("GET", f"/v1/jobs/{job}")
        if not read.good:
            return
        version, verbs = int(read.body["version"]), self._verbs
        verb: Verb = self._rng.choice(("edit", "edit", "pause", "resume"))
        if verb == "edit":
            answer = await verbs.edit(job, another_schedule(self._rng), if_match=version)
        else:
            answer = await verbs.change(job, verb, "POST", f"/{verb}", if_match=version)
        if answer.good and answer.sent == 1 and not version <= answer.body["version"] <= version + 1:
            self._wrong(f"job {job}: {verb} of version {version} was answered with {answer.body['version']}")
        if not answer.good and answer.status not in (404, 412):
            self._wrong(f"job {job}: If-Match was answered with {answer.status} {answer.body}")
        if verb == "pause":
            await verbs.change(job, "resume", "POST", "/resume")

    async def cancel(self, job: int) -> None:
        runs = await self._asking.ask("GET", f"/v1/jobs/{job}/runs?status=PENDING&limit=50")
        if not runs.good or not runs.body["items"]:
            return
        run, began = self._rng.choice(runs.body["items"])["id"], self._time.now
        answer = await self._asking.ask("POST", f"/v1/runs/{run}/cancel")
        if answer.good or answer.sent > 1:
            self._acted(job, "cancel", began, [run], answer)

    async def _backfill(self, job: int) -> None:
        began, now = self._time.now, self._time.db_now()
        span = {"start": instant(now - 10_000), "end": instant(now), "limit": 20}
        answer = await self._asking.ask("POST", f"/v1/jobs/{job}/backfill", span, f"backfill-{self._verbs.mark()}")
        if answer.good:
            self._acted(job, "backfill", began, answer.body["runs"], answer)

    async def _redrive(self, job: int) -> None:
        began = self._time.now
        wish = {"job_id": job, "limit": 20}
        answer = await self._asking.ask("POST", "/v1/dead/redrive", wish, f"redrive-{self._verbs.mark()}")
        if answer.good and answer.body["runs"]:
            self._acted(job, "redrive", began, answer.body["runs"], answer)

    async def _distant(self) -> None:
        """The only run in sight is months away: it is cancelled, and the job set to fire every second for a while."""
        if not self._rare:
            return
        job = self._rare.pop(0)
        await self.cancel(job)
        await self._verbs.edit(job, {"cron": "* * * * * *"})
        await asyncio.sleep(self._rng.uniform(3, 8))
        await self._verbs.edit(job, self._rng.choice(RARE))
        self._rare.append(job)

    # beside them

    async def _timer(self) -> None:
        mark, began, seconds = self._verbs.mark(), self._time.now, self._rng.randint(1, 6)
        wish = {"seconds": seconds, "url": f"{self._url}/ok"}
        answer = await self._asking.ask("POST", "/timers", wish, f"timer-{mark}")
        if not answer.good:
            self._wrong(f"a timer of {seconds} s was answered with {answer.status} {answer.body}")
            return
        job = int(answer.body["id"])
        view = await self._asking.ask("GET", f"/v1/jobs/{job}")
        if not view.good:
            self._wrong(f"timer {job} was made and is no job: {view.status}")
            return
        spec = {name: view.body[name] for name in ("schedule", "target", "policy")}
        self.timers.add(job)
        self._history.append(
            Made(
                at=began,
                until=self._time.now,
                mark=mark,
                job=job,
                spec={**spec, "params": {"mark": mark}},
                created_at=ms_of(view.body["created_at"]),
                sent=answer.sent,
            )
        )

    async def apply(self) -> None:
        """A jobs file: as it was, or with one job changed. Nobody else touches its jobs."""
        async with self._applying:
            again = bool(self._in_file) and self._rng.random() < 0.5
            if self._in_file and not again:
                place = self._rng.randrange(len(self._file))
                self._file[place] = {**self._file[place], "schedule": another_schedule(self._rng)}
            began = self._time.now
            wish = {"source": SOURCE, "jobs": self._file, "prune": True}
            answer = await self._asking.ask("POST", "/v1/jobs/sync", wish, f"sync-{self._verbs.mark()}")
            if not answer.good:
                self._wrong(f"the jobs file was answered with {answer.status} {answer.body}")
                return
            if again and len(answer.body["unchanged"]) != len(self._file):
                self._wrong(f"the same jobs file again changed something: {answer.body}")
            for spec in self._file:
                await self._look_at(spec, began, answer.sent)

    async def _look_at(self, spec: Spec, began: int, sent: int) -> None:
        read = await self._asking.ask("GET", f"/v1/jobs/by-key/{spec['key']}")
        if not read.good:
            self._wrong(f"{spec['key']} is in the jobs file that was applied, and not there: {read.status}")
            return
        view, known = read.body, self._in_file.get(spec["key"])
        self._in_file[spec["key"]] = view
        job, now = int(view["id"]), self._time.now
        if known is None:
            created, mark = ms_of(view["created_at"]), spec["params"]["mark"]
            self._history.append(
                Made(at=began, until=now, mark=mark, job=job, spec=spec, created_at=created, sent=sent)
            )
        elif known["version"] != view["version"]:
            self._history.append(
                Changed(
                    at=began,
                    until=now,
                    job=job,
                    verb="edit",
                    version=view["version"],
                    state=view["state"],
                    changed_at=ms_of(view["updated_at"]),
                    spec={"schedule": spec["schedule"]},
                    sent=sent,
                )
            )

    def _acted(
        self, job: int, verb: Literal["cancel", "backfill", "redrive"], began: int, runs: list[str], answer: Answer
    ) -> None:
        self._history.append(Acted(at=began, until=self._time.now, job=job, verb=verb, runs=runs, sent=answer.sent))

    def _wrong(self, text: str) -> None:
        self._history.append(Crashed(at=self._time.now, node="api", error=text))
