"""Where users ask: the API of a node, in the process that also runs jobs, or a process that does nothing else.

A request is carried out in its process, and stands still with it. Its client waits for so long, hangs up, and asks at
another door; what it asked for must not be carried out after that.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any, Protocol

from onthedot.errors import Abandoned, OnTheDotError, StoreUnavailable
from onthedot.model.actor import ChangeActor
from onthedot.model.duration import SECOND
from onthedot.store.abandoned_requests import ASKER, PATIENCE, too_late
from proof.sim.callbacks import CallbackDoor
from proof.sim.loop import Place, VirtualLoop

__all__ = ["Client", "Door", "Front"]


class Client:
    """Who sent one request, as the store may ask. gone: since when nobody waits any more."""

    name: str | None = None

    def __init__(self, loop: VirtualLoop, request: int) -> None:
        self.request = request
        self.actor: ChangeActor | None = None
        self.gone: float | None = None
        self._loop = loop
        self._since = loop.now

    def check(self, *, late: bool = True) -> None:
        if self.gone is not None:
            raise Abandoned("the client hung up")
        if late and self._loop.now - self._since > PATIENCE / SECOND:
            raise too_late()


class Door(Protocol):
    @property
    def place(self) -> Place: ...
    @property
    def open(self) -> bool: ...
    @property
    def api(self) -> Any: ...


class Front:
    def __init__(self, loop: VirtualLoop, doors: Sequence[Door], rng: random.Random) -> None:
        self._loop = loop
        self._doors = doors
        self._rng = rng
        self._requests = 0

    def client(self) -> Client:
        self._requests += 1
        return Client(self._loop, self._requests)

    async def ask(self, client: Client, verb: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
        """The answer of one of the doors; StoreUnavailable: none came, and nobody can say whether it was done."""
        rng, door = self._rng, self._rng.choice(self._doors)
        answer: asyncio.Future[Any] = self._loop.create_future()
        if not door.open:
            raise StoreUnavailable("connection refused")
        context = door.place.context.copy()
        context.run(ASKER.set, client)
        self._loop.call_later(
            rng.uniform(0.0002, 0.002), self._carry_out, door.api, verb, args, named, answer, context=context
        )
        patience = rng.choice((rng.uniform(0.5, 3), 10.0))
        self._loop.outside_later(patience, self._hang_up, client, answer)
        return await answer

    def _carry_out(
        self, api: Any, verb: str, args: Sequence[Any], named: dict[str, Any], answer: asyncio.Future[Any]
    ) -> None:
        self._loop.create_task(self._serve(api, verb, args, named, answer))

    async def _serve(
        self, api: Any, verb: str, args: Sequence[Any], named: dict[str, Any], answer: asyncio.Future[Any]
    ) -> None:
        try:
            served = CallbackDoor(api) if hasattr(CallbackDoor, verb) else api
            result = await getattr(served, verb)(*args, **named)
        except OnTheDotError as error:
            self._loop.outside_later(0.0005, _reject, answer, error)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._loop.outside_later(0.0005, _reject, answer, error)
        else:
            self._loop.outside_later(self._rng.uniform(0.0002, 0.002), _answer, answer, result)

    def _hang_up(self, client: Client, answer: asyncio.Future[Any]) -> None:
        if not answer.done():
            client.gone = self._loop.now
            _reject(answer, StoreUnavailable("no answer in time"))


def _answer(answer: asyncio.Future[Any], result: Any) -> None:
    if not answer.done():
        answer.set_result(result)


def _reject(answer: asyncio.Future[Any], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
        answer.exception()
