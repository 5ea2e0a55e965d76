"""A process's way to the database: each call travels there, is carried out or not, and its answer travels back or not.

The database's side does not belong to the process: a statement that is under way commits although its sender was
killed meanwhile, or has given up waiting and asks for it again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from typing import Any

from onthedot.errors import StoreUnavailable
from onthedot.store import Store
from proof.sim.loop import Place, VirtualLoop, at_once

__all__ = ["Database", "Link", "LinkedStore"]

DEADLINE = 3.0
"""How long a call waits for its answer."""

Witness = Callable[[str, str, Any, tuple[Any, ...], dict[str, Any]], None]
"""Told of all that was committed: (process, method, answer, arguments, named arguments)."""


class Database:
    """What all links lead to."""

    def __init__(self) -> None:
        self.up = True
        self.silent = False  # down: says nothing at all, rather than refusing at once
        self.witness: Witness = lambda process, method, answer, arguments, named: None


class Link:
    """Delays in seconds, chances from 0 to 1. What is set here is what the nemesis turns."""

    def __init__(self, loop: VirtualLoop, database: Database, place: Place, rng: random.Random) -> None:
        self.loop = loop
        self.database = database
        self.place = place
        self.rng = rng
        self._random = rng.random
        self.cut = False
        self.slow = 0.0
        self.refuses = 0.0  # the connection breaks before the statement arrives
        self.loses = 0.0  # it was committed, and the answer is lost
        self.hangs = 0.0  # lost as well, but silently: the caller waits until its deadline
        self.late = 0.0  # it is carried out only when the caller has long given up

    def call(self, name: str, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        answer: asyncio.Future[Any] = self.loop.create_future()
        way = self._way()
        if self.late and self.rng.random() < self.late:
            way += DEADLINE * self.rng.uniform(0.5, 1.8)
        if self.cut:
            self.loop.outside_later(self.rng.choice((0.05, DEADLINE)), self._fail, answer, "cut off")
        else:
            self.loop.outside_later(way, self._arrive, answer, copy_context(), name, method, args, kwargs)
            if way > DEADLINE:
                self.loop.outside_later(DEADLINE, self._fail, answer, "no answer in time")
        return answer

    def hides_cancellation(self) -> bool:
        """In trouble a driver may take the failure of the rollback for the reason, instead of the cancellation."""
        return (self.cut or not self.database.up) and self.rng.random() < 0.5

    def _arrive(
        self,
        answer: asyncio.Future[Any],
        context: Context,
        name: str,
        method: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        database = self.database
        if not database.up or self.cut:
            self.loop.outside_later(
                DEADLINE if database.silent or self.cut else 0.002, self._fail, answer, "the database is away"
            )
            return
        if self.refuses and self.rng.random() < self.refuses:
            self._fail(answer, "the connection broke")
            return
        try:
            result = context.run(_carried_out, method, args, kwargs)  # who asked is known there
        except Exception as error:
            self.loop.outside_later(self._way(), _reject, answer, error)
            return
        context.run(database.witness, self.place.name, name, result, args, kwargs)
        chance = self.rng.random()
        if chance < self.loses:
            self._fail(answer, "the connection broke before the answer came")
        elif chance < self.loses + self.hangs:
            self.loop.outside_later(DEADLINE, self._fail, answer, "no answer in time")
        else:
            self.loop.outside_later(self._way(), self._answer, answer, result)

    def _answer(self, answer: asyncio.Future[Any], result: Any) -> None:
        if self.cut or not self.database.up:
            self.loop.outside_later(DEADLINE, self._fail, answer, "no answer in time")
        elif not answer.done():
            answer.set_result(result)

    def _fail(self, answer: asyncio.Future[Any], why: str) -> None:
        _reject(answer, StoreUnavailable(why))

    def _way(self) -> float:
        """One way. Mostly a fraction of a millisecond, now and then a retransmission."""
        chance = self._random()
        way = 0.0002 + 0.0018 * self._random() if chance > 0.01 else 0.02 + 0.23 * self._random()
        return way + self.slow * self._random() if self.slow else way


class LinkedStore:
    """A Store as a process sees it, through its link. Each process has its own Store object, and so its own caches."""

    def __init__(self, store: Store, link: Link) -> None:
        self._store = store
        self._link = link
        self.driver = store.driver

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return await self._link.call(name, method, args, kwargs)
            except asyncio.CancelledError:
                if self._link.hides_cancellation():
                    raise StoreUnavailable("the rollback failed") from None
                raise

        self.__dict__[name] = call
        return call

    def listen(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Hints come late, and some never."""
        link = self._link

        def hint(topic: str) -> None:
            if not link.cut and link.database.up and link.rng.random() > 0.1:
                link.loop.call_later(link.rng.uniform(0, 0.05), partial(callback, topic), context=link.place.context)

        return self._store.listen(hint)


def _carried_out(method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return at_once(method(*args, **kwargs))


def _reject(answer: asyncio.Future[Any], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
        answer.exception()  # seen: a killed process does not come for it
