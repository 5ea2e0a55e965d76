"""Group commit for creates: take one, take whatever else waits, write, answer all.

One commit costs the same for one job as for a thousand, so the busier it is, the bigger the groups grow by themselves;
there is no timer that a lonely create would have to wait for. While a full group waits behind the one being written,
another writer takes it: what one prepares in Python, the database does for the others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, cast

from onthedot.errors import Invalid, OnTheDotError, StoreUnavailable
from onthedot.model.job import JobView
from onthedot.store import NewJob
from onthedot.telemetry import emit

__all__ = ["GROUP_LIMIT", "Caller", "CreateBatcher", "unexpected"]

GROUP_LIMIT = 1000
WRITERS = 3
"""Twice 500 had 0.7 of PgQueuer's rate in bulk on a busy machine, three times 1,000 had 1.05 (ADR 0007)."""

Answer = JobView | OnTheDotError
Write = Callable[[Sequence[NewJob]], Awaitable[Sequence[Answer]]]


class Caller(Protocol):
    """Who is told what became of its items."""

    def answer(self, place: int, answers: Sequence[Answer]) -> None:
        """Those of its items from `place` on. Must not raise: others wait for theirs."""
        ...


class _Call:
    """A caller that waits: an answer per item, and one future for them all."""

    __slots__ = ("answers", "done", "left")

    def __init__(self, size: int) -> None:
        self.answers: list[Answer | None] = [None] * size
        self.left = size
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def answer(self, place: int, answers: Sequence[Answer]) -> None:
        self.answers[place : place + len(answers)] = answers
        self.left -= len(answers)
        if not self.left and not self.done.done():
            self.done.set_result(None)


Waiting = tuple[Sequence[NewJob], Caller, int]  # items that stay together, who asked for them, the place of the first


class CreateBatcher:
    """Callers wait in line; who finds too few writing starts a writer, which ends when the line is empty."""

    def __init__(self, write: Write, limit: int = GROUP_LIMIT) -> None:
        self._write = write
        self._limit = limit
        self._line: deque[Waiting] = deque()
        self._waiting = 0  # items in line
        self._writers: set[asyncio.Task[None]] = set()

    async def create(self, items: Sequence[NewJob]) -> list[Answer]:
        """One answer per item, in order: the job as stored, or why not. A caller that gives up undoes nothing."""
        if not items:
            return []
        call = _Call(len(items))
        if any(_contended(item) for item in items):  # each may have to wait for another
            self._line.extend(((item,), call, place) for place, item in enumerate(items))
        else:
            self._line.append((items, call, 0))
        self._waiting += len(items)
        self._start_writers()
        await call.done
        return [answer for answer in call.answers if answer is not None]

    def add(self, item: NewJob, caller: Caller) -> None:
        """For a caller that does not wait: it is told from the step of the loop that knows."""
        self._line.append(((item,), caller, 0))
        self._waiting += 1
        self._start_writers()

    def _start_writers(self) -> None:
        """One always; another only for a full group: two half groups would be two commits instead of one."""
        while len(self._writers) < WRITERS and self._waiting > len(self._writers) * self._limit:
            writer = asyncio.get_running_loop().create_task(self._write_all(), name="service.create-batcher")
            self._writers.add(writer)

    async def drain(self) -> None:
        """Until nothing waits any more: for an orderly stop."""
        while self._writers:
            await asyncio.wait(self._writers)

    async def _write_all(self) -> None:
        """Who comes while it ends must find it gone: it leaves in the very step in which it saw the line empty.

        Before the first group the loop goes round once, so that requests that have arrived but are not read yet get in:
        with 32 connections groups of 16 instead of 13. Each later one is on its way before those who asked for the one
        before are answered: the database works while the answers are written.
        """
        try:
            while self._line:
                await asyncio.sleep(0)
                while group := self._take():
                    answers = await self._written(group)
                    if self._line:
                        asyncio.get_running_loop().call_soon(_tell, group, answers)
                    else:
                        _tell(group, answers)
        finally:
            self._writers.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _written(self, group: Sequence[Waiting]) -> Sequence[Answer]:
        items = [item for together, _, _ in group for item in together]
        try:
            return await self._write(items)
        except StoreUnavailable as error:  # nobody's fault in particular: singly would fail the same way
            return [error] * len(items)
        except Exception:  # one of them made the statement fail: only the guilty one may get the error
            return [await self._write_one(item) for item in items]

    async def _write_one(self, item: NewJob) -> Answer:
        try:
            (answer,) = await self._write([item])
        except OnTheDotError as error:
            return error
        except Exception as error:
            return unexpected(error)
        return answer

    def _take(self) -> list[Waiting]:
        """The longest waiting ones, but of those that contend for the same key only the first: the others go next."""
        group: list[Waiting] = []
        later: list[Waiting] = []
        seen: set[tuple[int, str, str]] = set()
        room = self._limit
        while self._line and room:
            items, caller, place = waiting = self._line.popleft()
            if len(items) > room:
                self._line.appendleft((items[room:], caller, place + room))
                items = items[:room]
                waiting = (items, caller, place)
            if len(items) == 1 and (names := _contended(items[0])):
                if names & seen:
                    later.append(waiting)
                    seen |= names
                    continue
                seen |= names
            group.append(waiting)
            room -= len(items)
        self._line.extendleft(reversed(later))
        self._waiting -= self._limit - room
        return group


def _tell(group: Sequence[Waiting], answers: Sequence[Answer]) -> None:
    given = 0
    for together, caller, place in group:
        caller.answer(place, answers[given : given + len(together)])
        given += len(together)


def _contended(item: NewJob) -> set[tuple[int, str, str]]:
    if item.spec.key is None and item.idempotency is None:
        return _NOTHING
    names = set()
    if item.spec.key is not None:
        names.add((item.tenant, "key", item.spec.key))
    if item.idempotency is not None:
        names.add((item.tenant, "idempotency", item.idempotency.key))
    return names


_NOTHING: set[tuple[int, str, str]] = set()


def unexpected(error: Exception) -> OnTheDotError:
    """The caller learns that its own job can't be kept, the operator why."""
    emit("store.refused", error=f"{type(error).__name__}: {error}")
    return Invalid.one("$", "the database rejected this job")
