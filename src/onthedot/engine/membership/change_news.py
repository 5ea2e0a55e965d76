"""Tells the other nodes that something happened here, at most twice a second: their dashboards then look again.

What happened is not told: whoever wants to know reads the store. So this costs two hints a second, however busy a node
is, and nothing while it is idle. A hint may be lost; pages look by themselves every ten seconds.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable

from onthedot.clock import Clock
from onthedot.telemetry import Event, Telemetry

__all__ = ["CHANGED", "ChangeNews", "is_news_of_others"]

GAP = 0.5
CHANGED = "cluster.changed"
_TOPIC = "news:"
_OWN = _TOPIC + secrets.token_hex(4)
"""Of this process, which hears its own hints as well."""
_OF_THE_CLUSTER = ("node.registered", "node.draining", "node.left", "node.lost")


def is_news_of_others(topic: str) -> bool:
    return topic.startswith(_TOPIC) and topic != _OWN


class ChangeNews:
    def __init__(self, notify: Callable[[str], Awaitable[None]], clock: Clock) -> None:
        self._notify = notify
        self._clock = clock
        self._topic = _OWN
        self._loop = asyncio.get_running_loop()
        self._quiet = True  # nothing was told within the last half second
        self._more = False
        self._telling: asyncio.Task[None] | None = None

    def listen(self, telemetry: Telemetry) -> Callable[[], None]:
        """Returns what ends it."""
        unsubscribe = telemetry.subscribe(self._take)

        def end() -> None:
            unsubscribe()
            if self._telling is not None:
                self._telling.cancel()

        return end

    def _take(self, event: Event) -> None:
        """Called for every event, in whatever thread emits it: most find that it is told already."""
        if self._more or ("tenant" not in event.fields and event.name not in _OF_THE_CLUSTER):
            return
        self._more = True
        if self._quiet:
            self._quiet = False
            self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        self._telling = self._loop.create_task(self._tell(), name="engine.change-news")

    async def _tell(self) -> None:
        while self._more:
            self._more = False
            await self._notify(self._topic)
            await self._clock.sleep(GAP)
        self._quiet = True
