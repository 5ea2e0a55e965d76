"""What a user can do with one job, and what is written down of it: only what was answered."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any, Literal

from proof.chaos.asking import Answer, Asking
from proof.chaos.clock import TrueTime
from proof.chaos.specs import Spec
from proof.checker.events import Acted, Changed, Crashed, History, Made, Refused

__all__ = ["Verb", "Verbs", "ms_of"]

Verb = Literal["edit", "pause", "resume", "delete"]


class Verbs:
    def __init__(self, asking: Asking, *, time: TrueTime, history: History, rng: random.Random) -> None:
        self._asking = asking
        self._time = time
        self._history = history
        self._rng = rng
        self._marks = 0

    def mark(self) -> int:
        self._marks += 1
        return self._marks

    async def make(self, spec: Spec) -> int | None:
        mark, began = self.mark(), self._time.now
        spec = {**spec, "params": {**spec.get("params", {}), "mark": mark}} | (
            {"key": f"job-{mark}"} if mark % 3 else {}
        )
        answer = await self._asking.ask("POST", "/v1/jobs", spec, f"make-{mark}")
        sent = answer.sent
        if answer.good and self._rng.random() < 0.15:  # a user who presses the button twice
            answer = await self._asking.ask("POST", "/v1/jobs", spec, f"make-{mark}")
            sent += answer.sent
        if not answer.good:
            self.refused(mark, spec, answer, began, sent)
            return None
        job = int(answer.body["id"])
        self.made(mark, job, spec, began, ms_of(answer.body["created_at"]), sent)
        return job

    def made(self, mark: int, job: int, spec: Spec, began: int, created_at: int, sent: int) -> None:
        self._history.append(
            Made(at=began, until=self._time.now, mark=mark, job=job, spec=spec, created_at=created_at, sent=sent)
        )

    def refused(self, mark: int, spec: Spec, answer: Answer, began: int, sent: int) -> None:
        """An instant that had passed before anybody answered is rightly refused; nothing else is."""
        if answer.status == 422 and "past" in str(answer.body):
            self._history.append(Refused(at=began, until=self._time.now, mark=mark, why="past"))
        else:
            text = f"{spec} was refused, asked {sent} times: {answer.status} {answer.body}"
            self._history.append(Crashed(at=self._time.now, node="api", error=text))

    async def edit(self, job: int, schedule: Spec, *, if_match: int | None = None) -> Answer:
        return await self.change(job, "edit", "PATCH", "", {"schedule": _replacing(schedule)}, if_match=if_match)

    async def change(
        self, job: int, verb: Verb, method: str, path: str, body: Any = None, *, if_match: int | None = None
    ) -> Answer:
        """Half of the users name what they do (Idempotency-Key), so that it is done once however often they ask."""
        began = self._time.now
        key = f"{verb}-{self.mark()}" if verb in ("pause", "resume") and self._rng.random() < 0.5 else None
        answer = await self._asking.ask(method, f"/v1/jobs/{job}{path}", body, key, if_match=if_match)
        view = answer.body if answer.good else None
        if not answer.good and not (verb == "delete" and answer.status == 404 and answer.sent > 1):
            return answer
        self._history.append(
            Changed(
                at=began,
                until=self._time.now,
                job=job,
                verb=verb,
                version=None if view is None else view["version"],
                state=None if view is None else view["state"],
                changed_at=None if view is None else ms_of(view["updated_at"]),
                spec=None if view is None or body is None else _wish(body),
                sent=answer.sent,
            )
        )
        return answer

    async def run(self, job: int) -> None:
        mark, began = self.mark(), self._time.now
        for _ in range(2 if self._rng.random() < 0.2 else 1):
            answer = await self._asking.ask("POST", f"/v1/jobs/{job}/run", None, f"run-{mark}")
            if answer.good:
                runs = [answer.body["id"]]
                self._history.append(
                    Acted(at=began, until=self._time.now, job=job, verb="run", runs=runs, sent=answer.sent)
                )


def _replacing(schedule: Spec) -> Spec:
    """A merge patch that leaves nothing of the schedule before."""
    return {**dict.fromkeys(("cron", "every", "at", "in", "tz", "count")), **schedule}


def _wish(body: Spec) -> Spec | None:
    """What an edit asked for of schedule and policy."""
    wish: Spec = {name: body[name] for name in ("schedule", "policy") if name in body}
    if "schedule" in wish:
        wish["schedule"] = {name: value for name, value in wish["schedule"].items() if value is not None}
    return wish or None


def ms_of(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
