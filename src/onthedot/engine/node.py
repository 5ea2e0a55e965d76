"""A node: one process that runs what is due. `async with Node(...) as node: await node.wait()`.

Declared lost (it froze, or could not reach the database for a lease), it drops everything and starts as a new
incarnation with a new id. Database trouble is waited out for ever; any other error stops it in order and comes
out of `wait()`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Self

from onthedot.channels.channel import Channel
from onthedot.clock import Clock
from onthedot.engine.claiming.capacity import Capacity
from onthedot.engine.lifetime import Incarnation
from onthedot.engine.membership.backoff import Backoff
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.membership.lateness import Lateness
from onthedot.engine.ports import EngineStore, Offload
from onthedot.engine.settings import EngineSettings
from onthedot.engine.waiting import at_most
from onthedot.model.level import LEVEL
from onthedot.model.node import NodeInfo, NodeLoad, SlotUse
from onthedot.settings import Settings
from onthedot.store import Beat
from onthedot.targets import Targets

__all__ = ["Node", "in_thread"]


async def in_thread(work: Callable[[], None]) -> None:
    await asyncio.to_thread(work)


class Node:
    def __init__(
        self,
        *,
        store: EngineStore,
        targets: Targets,
        clock: Clock,
        rng: random.Random,
        settings: EngineSettings | Settings | None = None,
        offload: Offload = in_thread,
        heard: Callable[[Beat], None] = lambda answer: None,
        channels: Mapping[str, Channel] = MappingProxyType({}),
    ) -> None:
        """`targets` must be open already. `offload` writes log files; a simulation does it inline. `heard` is told each
        beat's answer. `channels`: those that this node delivers alerts to."""
        chosen = settings if settings is not None else EngineSettings()
        self.settings = EngineSettings.of(chosen) if isinstance(chosen, Settings) else chosen
        self._store = store
        self._targets = targets
        self._clock = clock
        self._rng = rng
        self._offload = offload
        self._heard = heard
        self._channels = channels
        self._health = StoreHealth()
        self._lateness = Lateness(clock)
        self._slots = Capacity(
            targets.capabilities(),
            capacities=targets.capacities(self.settings.concurrency),
            default=self.settings.concurrency,
            hold_most=self.settings.next_job_count,
            ahead=targets.ahead,
        )
        self._stop = asyncio.Event()
        self._at_once = asyncio.Event()
        self._main: asyncio.Task[None] | None = None
        self.incarnation: Incarnation | None = None
        self.incarnations = 0

    async def __aenter__(self) -> Self:
        """Returns at once: a database that is away must not keep the API from saying so."""
        self._main = asyncio.get_running_loop().create_task(self._live(), name="onthedot-node")
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    @property
    def ready(self) -> bool:
        """Registered, the database answers, and the lease is good."""
        return self.trouble is None

    @property
    def trouble(self) -> str | None:
        """Why it is not ready; None: it is."""
        return "not registered yet" if self.incarnation is None else self.incarnation.trouble

    @property
    def lacking(self) -> str | None:
        """What this machine has run out of, while less is run for it; None: nothing."""
        return self._slots.lacking

    @property
    def mailboxes(self) -> dict[str, tuple[int, int]]:
        """By actor, how many messages wait for it, and how many may."""
        return {} if self.incarnation is None else self.incarnation.wiring.mailboxes

    @property
    def slots(self) -> dict[str, SlotUse]:
        """By kind of target, how many runs execute here, and how many may."""
        return self._slots.use

    @property
    def info(self) -> NodeInfo | None:
        """Who this is now; None before the first registration is tried."""
        return None if self.incarnation is None else self.incarnation.info

    @property
    def load(self) -> NodeLoad:
        return NodeLoad() if self.incarnation is None else self.incarnation.load()

    def lateness(self, share: float) -> int | None:
        """The lateness in ms that this share of the last minute's runs did not exceed."""
        return self._lateness.percentile(share)

    async def wait(self) -> None:
        """Until the node has stopped. Raises the error that stopped it, if it was one."""
        assert self._main is not None, "enter the node first"
        await asyncio.wait([self._main])
        self._main.result()

    def request_stop(self) -> None:
        """For signal handlers: the first time stop in order, the second time at once."""
        if self._stop.is_set():
            self._at_once.set()
        self._stop.set()

    async def stop(self, *, at_once: bool = False) -> None:
        """Stop in order and wait for it. A failure is left for `wait()` to raise."""
        self._stop.set()
        if at_once:
            self._at_once.set()
        if self._main is not None:
            await asyncio.wait([self._main])

    async def _live(self) -> None:
        backoff = Backoff(self._rng)
        while not self._stop.is_set():
            self.incarnations += 1
            self.incarnation = Incarnation(
                self._new_info(),
                store=self._store,
                targets=self._targets,
                slots=self._slots,
                clock=self._clock,
                rng=self._rng,
                settings=self.settings,
                offload=self._offload,
                lateness=self._lateness,
                health=self._health,
                heard=self._heard,
                channels=self._channels,
            )
            if await self.incarnation.live(self._stop, self._at_once) == "unregistered":
                await at_most(self._clock, backoff.delay(), self._stop.wait())
            else:
                backoff.reset()

    def _new_info(self) -> NodeInfo:
        settings = self.settings
        return NodeInfo(
            id=f"{self._rng.getrandbits(64):016x}",
            name=settings.name,
            host=settings.host,
            pid=settings.pid,
            version=settings.version,
            level=LEVEL,
            roles=list(settings.roles),
            offers=self._targets.capabilities(),
            labels=list(settings.labels),
            capacity=self._slots.capacity,
            binding=settings.binding,
            exposed=settings.exposed,
        )
