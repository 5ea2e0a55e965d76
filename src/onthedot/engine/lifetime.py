"""One life of a node: an id, a row in the store, and its actors. It ends by a stop, by being declared lost, or
by an error that nobody expected; in each case in order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Literal

from onthedot.channels.channel import Channel
from onthedot.clock import Clock
from onthedot.engine.claiming.capacity import Capacity
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.membership.lateness import Lateness
from onthedot.engine.ports import EngineStore, Offload
from onthedot.engine.running.monitor import NODE_STOPPED
from onthedot.engine.settings import EngineSettings
from onthedot.engine.tuning import DESTINATIONS_TOLD
from onthedot.engine.waiting import at_most, first_of
from onthedot.engine.wiring import Actor, Wiring
from onthedot.errors import StoreUnavailable
from onthedot.model.callback import installation_id
from onthedot.model.node import NodeInfo, NodeLoad
from onthedot.model.run import Outcome
from onthedot.store import Beat
from onthedot.targets import Targets
from onthedot.targets.contract import Cause
from onthedot.telemetry import emit

__all__ = ["Ending", "Incarnation"]

Ending = Literal["stopped", "lost", "unregistered"]

AGAIN = 0.5
"""Seconds after which a loop that did not end is told once more."""


class Incarnation:
    def __init__(
        self,
        info: NodeInfo,
        *,
        store: EngineStore,
        targets: Targets,
        slots: Capacity,
        clock: Clock,
        rng: random.Random,
        settings: EngineSettings,
        offload: Offload,
        lateness: Lateness,
        health: StoreHealth,
        heard: Callable[[Beat], None],
        channels: Mapping[str, Channel],
    ) -> None:
        self.info = info
        self.registered = False
        self.draining = False
        self._store = store
        self._clock = clock
        self._settings = settings
        self._slots = slots
        self._targets = targets
        self._rng = rng
        self._lateness = lateness
        self._health = health
        self._loops: dict[str, asyncio.Task[None]] = {}
        self._lost = asyncio.Event()
        self._failed = asyncio.Event()
        self._error: BaseException | None = None
        self.wiring = Wiring(
            info.id,
            store=store,
            targets=targets,
            slots=slots,
            clock=clock,
            rng=rng,
            settings=settings,
            offload=offload,
            lateness=lateness,
            health=health,
            load=self.load,
            lost=self._lost,
            crashed=self._crashed,
            heard=heard,
            channels=channels,
        )

    @property
    def trouble(self) -> str | None:
        """Why it runs nothing new now; None: it does."""
        if self.draining:
            return "the node is stopping"
        if not self.registered:
            return "not registered yet"
        if not self._health.ok:
            return "the store does not respond"
        return None if self.wiring.lease.may_start() else "the lease expired because the store did not respond"

    def load(self) -> NodeLoad:
        self._slots.set_capabilities(self.wiring.offers.capabilities())
        return NodeLoad(
            offers=self._targets.capabilities(),
            capacity=self._slots.capacity,
            held=self._slots.held,
            running=len(self.wiring.dispatcher.running),
            lateness_ms=self._lateness.percentile(0.99),
            draining=self.draining,
            destinations=self.wiring.destinations.report(DESTINATIONS_TOLD, self._at_ms),
            clock_skew_ms=self._clock_skew_ms(),
        )

    def _clock_skew_ms(self) -> int | None:
        """By which the date of this machine is ahead of the database's: nothing fires by it, but people read logs."""
        time = self.wiring.time
        return self._clock.now_ms() - time.now_ms() if time.known else None

    def _at_ms(self, instant: float) -> int:
        """An instant of our monotonic clock on the database's."""
        return self.wiring.time.at_us(instant) // 1000

    async def live(self, stop: asyncio.Event, at_once: asyncio.Event) -> Ending:
        """From the registration to the last row written. Raises what an actor raised, after stopping in order."""
        if not await self._register():
            return "unregistered"
        unlisten = self._store.listen(self.wiring.hint)
        self._start_loops()
        try:
            await first_of(stop.wait(), self._lost.wait(), self._failed.wait())
            if self._lost.is_set():
                await self._let_go()
            else:
                await self._stop(at_once)
        finally:
            unlisten()
            await self._end(*self._loops)
            self.wiring.timer.close()
            await self._abandon()
        if self._error is not None:
            raise self._error
        return "lost" if self._lost.is_set() else "stopped"

    # beginning

    async def _register(self) -> bool:
        """False: no answer. The row may be there all the same, so the next try is another incarnation."""
        try:
            proposal = f"{self._rng.getrandbits(256):064x}"
            self.wiring.callbacks.secret = secret = await self._store.callback_secret(proposal)
            self._targets.belong_to(installation_id(secret))
            sent = self._clock.monotonic()
            now = await self._store.register(self.info)
            self.wiring.time.observe(now, sent, self._clock.monotonic())
            self.wiring.lease.renew(sent)
            if self._settings.alone:
                await self._bury_all_others()
        except StoreUnavailable as error:
            self._health.failed(error)
            return False
        self._health.worked()
        self.registered = True
        emit("node.registered", node=self.info.id)
        return True

    async def _bury_all_others(self) -> None:
        """Who holds the SQLite file is the only one alive: the runs of whoever had it before are free at once."""
        for peer, beat in (await self._store.beat(self.info.id, self.load())).peers:
            if await self._store.declare_lost(peer, beat):
                emit("node.lost", node=peer, by=self.info.id)
        while await self._store.reclaim():
            pass

    def _start_loops(self) -> None:
        loop = asyncio.get_running_loop()
        for name, actor in self.wiring.actors.items():
            self._loops[name] = loop.create_task(self._loop(actor), name=f"onthedot-{name}")

    async def _loop(self, actor: Actor) -> None:
        try:
            while True:
                await actor.step()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._crashed(error)

    # ending

    async def _stop(self, at_once: asyncio.Event) -> None:
        """No more claims → what goes on without us is detached → grace for the rest → what is left is given back →
        Recorder drained → node row removed."""
        self.draining = True
        await self._end("timer", "failure_detector", "duties", "operation_runner")
        await self.wiring.dispatcher.close(self._settings.lease / 1000)
        self.wiring.dispatcher.detach_all()
        await self._grace(at_once)
        await self._stop_all("interrupted", NODE_STOPPED)
        await self._drain()
        await self._end(*self._loops)
        try:
            await self._store.leave(self.info.id)
            emit("node.left", node=self.info.id)
        except StoreUnavailable as error:
            self._health.failed(error)  # others will find the beat standing still

    async def _let_go(self) -> None:
        """Declared lost: others have our runs or will have them. What ended already is offered once more; the store
        takes it only where the row is still ours."""
        emit("node.lost", node=self.info.id, by=self.info.id)
        await self._end("timer", "failure_detector", "duties", "operation_runner", "heartbeat")
        await self.wiring.dispatcher.close(self._settings.lease / 1000)
        await self._stop_all("gone")
        await self._end("recorder")
        self.wiring.recorder.collect()
        await self.wiring.recorder.write()

    async def _grace(self, at_once: asyncio.Event) -> None:
        """After an error the beat may be what failed: then only as long as the lease lasts."""
        most = self._settings.grace if self._error is None else min(self._settings.grace, self._settings.lease - 1000)
        self.wiring.dispatcher.quiet.clear()
        if self.wiring.dispatcher.running:
            await first_of(at_most(self._clock, most / 1000, self.wiring.dispatcher.quiet.wait()), at_once.wait())

    async def _stop_all(self, cause: Cause, outcome: Outcome | None = None) -> None:
        """Tell all that runs; a target has as long as a lease to end what it started."""
        self.wiring.dispatcher.stop_all(cause, outcome)
        await at_most(self._clock, self._settings.lease / 1000, self.wiring.dispatcher.quiet.wait())

    async def _drain(self) -> None:
        """Until everything is written; a database that stays away for a lease has to wait for the next node.

        The loop itself is only watched here: told to end once, in the middle of trouble, it was waited for for ever."""
        written = at_most(self._clock, self._settings.lease / 1000, self.wiring.recorder.rest())
        await first_of(written, asyncio.wait([self._loops["recorder"]]))
        if self.wiring.logs is not None:
            await self._end("logs")
            await self.wiring.logs.flush()

    async def _abandon(self) -> None:
        """Whatever still runs when this returns early (an error while stopping, a cancelled program) ends with it."""
        if self.wiring.dispatcher.running:
            await self._stop_all("gone")

    def _crashed(self, error: BaseException) -> None:
        if self._error is None:
            self._error = error
            self._failed.set()

    async def _end(self, *names: str) -> None:
        """Told again until it ends: whoever is cancelled in the middle of trouble may take the one for the other."""
        left = [self._loops[name] for name in names if not self._loops[name].done()]
        while left:
            for task in left:
                task.cancel()
            await at_most(self._clock, AGAIN, asyncio.wait(left))
            left = [task for task in left if not task.done()]
