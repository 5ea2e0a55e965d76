"""What a live page asks for again and again, and what may take long: asked for as often as its price allows."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

import msgspec

from onthedot.clock import Clock

__all__ = ["Paced"]

AT_MOST_EVERY = 0.5
"""Seconds. Live parts ask once a second."""
SHARE = 20
"""It takes at most one part in so many of the time."""
KEPT = 200
GIVEN_UP = 10.0
"""Seconds."""


class PacedValue(msgspec.Struct, frozen=True):
    """`value` None: it was given up."""

    value: Any
    until: float


class Paced:
    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, PacedValue] = OrderedDict()
        self._under_way: dict[Hashable, asyncio.Task[Any]] = {}

    async def going_on(
        self, clock: Clock, key: Hashable, find: Callable[[], Awaitable[Any]], *, fresh: bool = False
    ) -> Any:
        """The same, but found to its end when who asked does not wait for it: whoever asks next finds it done, or waits
        for the rest."""

        async def bounded() -> Any:
            async with clock.timeout(GIVEN_UP):
                return await find()

        def ended(task: asyncio.Task[Any]) -> None:
            self._under_way.pop(key, None)
            if not task.cancelled():
                task.exception()  # if nobody waited for it, nobody asked

        if key not in self._under_way:
            self._under_way[key] = asyncio.create_task(self.get(clock, key, bounded, fresh=fresh), name="web.paced")
            self._under_way[key].add_done_callback(ended)
        return await asyncio.shield(self._under_way[key])

    async def get(self, clock: Clock, key: Hashable, find: Callable[[], Awaitable[Any]], *, fresh: bool = False) -> Any:
        """`fresh`: found anew whatever it takes. TimeoutError: it was given up a moment ago."""
        known = self._known.get(key)
        began = clock.monotonic()
        if known is not None and not fresh and began < known.until:
            if known.value is None:
                raise TimeoutError
            return known.value
        value = None if known is None else known.value
        try:
            value = await find()
            return value
        finally:  # also when its time is up
            ended = clock.monotonic()
            self._known[key] = PacedValue(value, ended + max(AT_MOST_EVERY, SHARE * (ended - began)))
            self._known.move_to_end(key)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
