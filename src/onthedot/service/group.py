"""Group commit for creates: take one, take whatever else waits, write, answer all.

One commit costs the same for one job as for five hundred, so the busier it is, the bigger the groups grow by
themselves; there is no timer that a lonely create would have to wait for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from onthedot.errors import Invalid, OnTheDotError, StoreUnavailable
from onthedot.model.job import JobView
from onthedot.store import NewJob
from onthedot.telemetry import emit

__all__ = ["GROUP_LIMIT", "CreateGroup"]

GROUP_LIMIT = 500

Answer = JobView | OnTheDotError
Write = Callable[[Sequence[NewJob]], Awaitable[Sequence[Answer]]]
Waiting = tuple[NewJob, asyncio.Future[Answer]]


class CreateGroup:
    """Callers wait in line; who finds nobody writing starts the writer, which ends when the line is empty."""

    def __init__(self, write: Write, limit: int = GROUP_LIMIT) -> None:
        self._write = write
        self._limit = limit
        self._line: deque[Waiting] = deque()
        self._writer: asyncio.Task[None] | None = None

    async def create(self, items: Sequence[NewJob]) -> list[Answer]:
        """One answer per item, in order: the job as stored, or why not. A caller that gives up undoes nothing."""
        loop = asyncio.get_running_loop()
        answers = [loop.create_future() for _ in items]
        self._line.extend(zip(items, answers, strict=True))
        if self._writer is None or self._writer.done():
            self._writer = loop.create_task(self._write_all(), name="service.create-group")
        return [await answer for answer in answers]

    async def drain(self) -> None:
        """Until nothing waits any more: for an orderly stop."""
        while self._writer is not None and not self._writer.done():
            await asyncio.wait([self._writer])

    async def _write_all(self) -> None:
        while self._line:
            group = self._take()
            try:
                answers = await self._write([item for item, _ in group])
            except StoreUnavailable as error:  # nobody's fault in particular: singly would fail the same way
                answers = [error] * len(group)
            except Exception:  # one of them made the statement fail: only the guilty one may get the error
                answers = [await self._write_one(item) for item, _ in group]
            for (_, waiting), answer in zip(group, answers, strict=True):
                if not waiting.done():
                    waiting.set_result(answer)

    async def _write_one(self, item: NewJob) -> Answer:
        try:
            (answer,) = await self._write([item])
        except OnTheDotError as error:
            return error
        except Exception as error:
            return _unexpected(error)
        return answer

    def _take(self) -> list[Waiting]:
        """The longest waiting ones, but of those that contend for the same key only the first: the others go next."""
        group: list[Waiting] = []
        later: list[Waiting] = []
        seen: set[tuple[int, str, str]] = set()
        while self._line and len(group) < self._limit:
            waiting = self._line.popleft()
            names = _contended(waiting[0])
            (later if names & seen else group).append(waiting)
            seen |= names
        self._line.extendleft(reversed(later))
        return group


def _contended(item: NewJob) -> set[tuple[int, str, str]]:
    names = set()
    if item.spec.key is not None:
        names.add((item.tenant, "key", item.spec.key))
    if item.idempotency is not None:
        names.add((item.tenant, "idempotency", item.idempotency.key))
    return names


def _unexpected(error: Exception) -> OnTheDotError:
    """The caller learns that its own job can't be kept, the operator why."""
    emit("store.refused", error=f"{type(error).__name__}: {error}")
    return Invalid.one("$", "the store can't keep this job")
