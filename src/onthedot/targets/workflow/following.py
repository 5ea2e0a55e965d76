"""Waiting for the ends of all executions of one engine: one loop asks for those that are due, in few requests.

An execution is looked at each second, and less often the longer it has been followed: each 2, 4 … 32 seconds, which is
about a tenth of its age. All are looked at by the same grid of instants, so that many are due together. Where many of
one workflow are, the engine is asked once which of them go on, and only the others are looked at one by one. While an
engine does not answer, or does not want to (its login has expired), it is asked again and again: nobody's end is lost
by that. What can't be said of one execution keeps nobody from the others.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from itertools import islice

from onthedot.clock import Clock
from onthedot.targets.workflow.engine import EngineDown, Execution, WorkflowEngine
from onthedot.targets.workflow.outages import Outages, words_of

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
        self.outages = Outages(engine)

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
                self.outages.over(name)

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
        alone: list[_Followed] = []
        for workflow, group in by_workflow.items():
            alone += await self._ended_of(workflow, group) if len(group) >= MANY else group
        places = iter(alone)
        while portion := list(islice(places, AT_ONCE)):
            if not any(await asyncio.gather(*map(self._look, portion))):
                break  # the others would wait for nothing, too
        now = self._clock.monotonic()
        for each in due:
            if each.due <= now:
                self._again(each)

    async def _ended_of(self, workflow: str, group: list[_Followed]) -> list[_Followed]:
        """Those that may have ended. All of them, if it may not be asked for a list: they are looked at one by one."""
        try:
            going = await self._engine.going(workflow)
        except EngineDown as down:
            for each in group:
                self.outages.tell(each.name, str(down))
            return []
        except Exception:
            return group
        for each in group:
            if each.name in going:
                self.outages.over(each.name)
                self._again(each)
        return [each for each in group if each.name not in going]

    async def _look(self, followed: _Followed) -> bool:
        """Whether anybody answered."""
        try:
            found = await self._engine.look(followed.workflow, followed.name)
        except EngineDown as down:
            self.outages.tell(followed.name, str(down))
            return False
        except Exception as error:  # it is refused, or nobody foresaw the answer: that does not say that it has ended
            self.outages.tell(followed.name, words_of(error))
            return True
        self.outages.over(followed.name)
        if found is not None and found.state == "going":
            self._again(followed)
        elif not followed.ended.done():
            followed.ended.set_result(found)
        return True

    def _again(self, followed: _Followed) -> None:
        now = self._clock.monotonic()
        grid = self._first
        while 2 * grid <= min(SHARE * (now - followed.since), LONGEST):
            grid *= 2
        followed.due = (now // grid + 1) * grid
