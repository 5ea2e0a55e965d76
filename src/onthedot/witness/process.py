"""The witness at work: two looks, each at its own pace, and the ping. A slow look at all slots delays no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from onthedot.channels.channel import Channel
from onthedot.clock import Clock
from onthedot.errors import OnTheDotError, StoreUnavailable
from onthedot.model.duration import MINUTE, SECOND
from onthedot.model.instant import format_instant
from onthedot.telemetry import emit
from onthedot.version import __version__
from onthedot.witness.delivery import deliver, ping
from onthedot.witness.looking import SlotsSeen, WitnessedStore, WitnessFinding, open_witnessed
from onthedot.witness.metrics import WitnessMetrics, result_of
from onthedot.witness.watching import Watch, WitnessMessage

__all__ = ["Witness", "WitnessHealth", "WitnessOrder"]

ALIVE_EVERY = 5.0
PING_EVERY = 60.0
ANSWER_WITHIN = 20.0
"""Then a store that does not answer is one that can't be read."""
STUCK = MINUTE
"""A witness that has not even tried to look for so long is of no use."""


class WitnessOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What to watch. Durations in ms."""

    store: str
    every: int
    reach: int
    late: int
    ping_url: str | None = None


class WitnessHealth(msgspec.Struct, frozen=True, kw_only=True):
    """`status` is "ok" as long as the witness looks, whatever it sees; `findings` are those of the last look."""

    status: str
    version: str
    looked_at: str
    blind_since: str | None
    findings: dict[str, int]


class Witness:
    def __init__(
        self, order: WitnessOrder, channels: Sequence[Channel], clock: Clock, tell: Callable[[WitnessMessage], None]
    ) -> None:
        now = clock.now_ms()
        self.metrics = WitnessMetrics()
        self._order, self._channels, self._clock, self._tell = order, channels, clock, tell
        self._alive = Watch(now, ("silent", "standing"))
        self._slots = Watch(now, ("missing", "twice"), blind="slots could not be checked", brief=False)
        self._tried_at = now
        self._has_looked = asyncio.Event()
        self._sending = set[asyncio.Task[None]]()

    async def run(self) -> None:
        """Until it is cancelled."""
        parts = [
            asyncio.create_task(part, name=f"witness.{name}")
            for name, part in (("alive", self._look_alive()), ("slots", self._look_slots()), ("ping", self._ping()))
        ]
        try:
            await asyncio.gather(*parts)
        finally:
            for task in (*parts, *self._sending):
                task.cancel()
            await asyncio.gather(*parts, *self._sending, return_exceptions=True)

    def health(self) -> WitnessHealth:
        blind = self._alive.blind_since
        stuck = self._clock.now_ms() - self._tried_at > STUCK
        return WitnessHealth(
            status="stuck" if stuck else "ok",
            version=__version__,
            looked_at=format_instant(self._alive.looked_at),
            blind_since=None if blind is None else format_instant(blind),
            findings={**self._alive.found, **self._slots.found},
        )

    async def _look_alive(self) -> None:
        async def look(store: WitnessedStore) -> Sequence[WitnessFinding]:
            patient = not self._alive.found["silent"]  # a silence is not over because the database was away meanwhile
            async with self._clock.timeout(ANSWER_WITHIN):
                return await store.alive(self._order.late, patient=patient)

        await self._look("alive", min(self._order.every / SECOND, ALIVE_EVERY), self._alive, look)

    async def _look_slots(self) -> None:
        async def look(store: WitnessedStore) -> Sequence[WitnessFinding]:
            seen, found = await store.slots(self._order.reach)
            self._seen(seen)
            if unseen := [finding for finding in found if finding.kind == "blind"]:
                raise StoreUnavailable(unseen[0].text)
            return found

        await self._look("slots", self._order.every / SECOND, self._slots, look)

    async def _look(
        self,
        name: str,
        every: float,
        watch: Watch,
        look: Callable[[WitnessedStore], Coroutine[Any, Any, Sequence[WitnessFinding]]],
    ) -> None:
        store: WitnessedStore | None = None
        while True:
            if watch is self._alive:
                self._tried_at = self._clock.now_ms()
            try:
                store = store or await self._opened()
                messages = watch.saw(self._clock.now_ms(), await look(store))
                good = True
                if watch is self._alive:
                    self._has_looked.set()
            except (OnTheDotError, OSError, TimeoutError) as error:
                why = str(error) or f"no answer within {ANSWER_WITHIN:.0f} s"
                messages, good = self._saw_nothing(watch, why), False
                await self._closed(store)
                store = None
            self._count(name, watch, good=good)
            for message in messages:
                self._send(message)
            await self._clock.sleep(every)

    def _saw_nothing(self, watch: Watch, why: str) -> list[WitnessMessage]:
        """A store that can't be read at all is told once, not by each look."""
        if watch is self._slots and self._alive.blind_since is not None:
            return []
        if watch.blind_since is None:
            emit("witness.blind", error=why)
        return watch.saw_nothing(self._clock.now_ms(), why)

    async def _opened(self) -> WitnessedStore:
        async with self._clock.timeout(ANSWER_WITHIN):
            return await open_witnessed(self._order.store)

    async def _closed(self, store: WitnessedStore | None) -> None:
        if store is not None:
            with suppress(OnTheDotError, OSError, TimeoutError):
                async with self._clock.timeout(ANSWER_WITHIN):
                    await store.close()

    def _seen(self, seen: SlotsSeen) -> None:
        self.metrics.expected.set(seen.expected)
        self.metrics.decided.set(seen.decided)

    def _count(self, name: str, watch: Watch, *, good: bool) -> None:
        self.metrics.looks.labels(name, result_of(good)).inc()
        self.metrics.looked_at.labels(name).set(watch.looked_at / 1000)
        self.metrics.blind.set(self._alive.blind_since is not None)
        for kind, number in watch.found.items():
            self.metrics.findings.labels(kind).set(number)

    def _send(self, message: WitnessMessage) -> None:
        self._tell(message)
        for channel in self._channels:
            task = asyncio.create_task(self._deliver(message, channel), name="witness.deliver")
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _deliver(self, message: WitnessMessage, channel: Channel) -> None:
        self.metrics.messages.labels(result_of(await deliver(message, channel, self._clock))).inc()

    async def _ping(self) -> None:
        """Each minute, as long as all is well; the first after the first good look."""
        url = self._order.ping_url
        if url is None:
            return
        await self._has_looked.wait()
        while True:
            if self._alive.well and self._slots.well:
                self.metrics.pings.labels(result_of(await ping(url))).inc()
            await self._clock.sleep(PING_EVERY)
