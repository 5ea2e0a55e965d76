"""Waiting for the ends of all executions of one engine: one loop asks for those that are due, in few requests.

An execution is looked at each second, and less often the longer it has been followed: each 2, 4 … 32 seconds, which is
about a tenth of its age. All are looked at by the same grid of instants, so that many are due together. Where many of
one workflow are, the engine is asked once which of them go on, and only the others are looked at one by one. While an
engine does not answer, it is asked again and again: nobody's end is lost by that.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from itertools import islice

from onthedot.clock import Clock
from onthedot.targets.workflow.engine import EngineDown, Execution, StartRefused, WorkflowEngine
from onthedot.telemetry import emit

__all__ = ["EndWatch"]

FIRST, SHARE, LONGEST = 1.0, 0.1, 32.0
MANY = 10
"""So many of one workflow are asked for together."""
AT_ONCE = 8
"""Requests, so that an engine is not overrun."""


class _Followed:
    """One execution that somebody waits for."""

    __slots__ = ("due", "ended", "name", "since", "workflow")

    def __init__(self, workflow: str, name: str, now: float) -> None:
        self.workflow, self.name, self.since, self.due = workflow, name, now, now
        self.ended: asyncio.Future[Execution | None] = asyncio.get_running_loop().create_future()


class EndWatch:
    def __init__(self, engine: WorkflowEngine, clock: Clock, *, first: float = FIRST) -> None:
        self._engine, self._clock, self._first = engine, clock, first
        self._followed: dict[str, _Followed] = {}
        self._sooner = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._why: str | None = None  # it does not answer

    async def ended(self, workflow: str, name: str) -> Execution | None:
        """How it ended; None: it is gone."""
        followed = _Followed(workflow, name, self._clock.monotonic())
        self._again(followed)
        self._followed[name] = followed
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch(), name=f"onthedot-workflows-{self._engine.place}")
        self._sooner.set()
        try:
            return await followed.ended
        finally:
            if self._followed.get(name) is followed:
                del self._followed[name]

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _watch(self) -> None:
        while self._followed:
            now = self._clock.monotonic()
            due = [each for each in self._followed.values() if each.due <= now and not each.ended.done()]
            if due:
                await self._look_at(due)
                continue
            next_at = min((each.due for each in self._followed.values()), default=now + LONGEST)
            self._sooner.clear()
            try:
                async with asyncio.timeout(max(next_at - now, self._first / 5)):
                    await self._sooner.wait()
            except TimeoutError:
                pass

    async def _look_at(self, due: list[_Followed]) -> None:
        by_workflow: defaultdict[str, list[_Followed]] = defaultdict(list)
        for each in due:
            by_workflow[each.workflow].append(each)
        try:
            alone = []
            for workflow, group in by_workflow.items():
                going = await self._engine.going(workflow) if len(group) >= MANY else set()
                for each in group:
                    if each.name in going:
                        self._again(each)
                    else:
                        alone.append(each)
            places = iter(alone)
            while portion := list(islice(places, AT_ONCE)):
                await asyncio.gather(*map(self._look, portion))
            self._why = None
        except (EngineDown, StartRefused) as error:
            self._tell(str(error))
        except Exception as error:  # an answer that nobody foresaw must not end the watch over all others
            self._tell(f"{type(error).__name__}: {error}")
        now = self._clock.monotonic()
        for each in due:
            if each.due <= now:
                self._again(each)

    async def _look(self, followed: _Followed) -> None:
        found = await self._engine.look(followed.workflow, followed.name)
        if found is not None and found.state == "going":
            self._again(followed)
        elif not followed.ended.done():
            followed.ended.set_result(found)

    def _again(self, followed: _Followed) -> None:
        now = self._clock.monotonic()
        grid = self._first
        while 2 * grid <= min(SHARE * (now - followed.since), LONGEST):
            grid *= 2
        followed.due = (now // grid + 1) * grid

    def _tell(self, why: str) -> None:
        if self._why is None:  # once until it answers again
            emit("workflows.unavailable", engine=self._engine.place, error=why)
        self._why = why
