"""One node as an operating system process: started, frozen, thawed, told to stop, killed, started again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, cast

from onthedot.engine import EngineSettings, Node
from onthedot.store import Store
from onthedot.store.driver import Driver
from proof.checker.events import Crashed, History
from proof.sim.callbacks import BASE
from proof.sim.clocks import ProcessClock
from proof.sim.link import Database, Link, LinkedStore
from proof.sim.loop import Place, VirtualLoop
from proof.sim.receiver import Manner, Receiver, Sender

__all__ = ["PROCESSES", "SETTINGS", "Process"]

DIRECT = 0.75
"""The share of lives in which calls are begun without a task for each; in the others each is a coroutine."""

EARLY = 0.4
"""The share of those in which they are started before their instant, as a program's own functions are."""

PROCESSES = 20
"""How many functions run at once."""

SETTINGS = EngineSettings(
    name="node",
    host="simulated",
    next_job_count=40,
    concurrency=60,
    grace=2000,
    callback_base=BASE,
)


async def _inline(work: Callable[[], None]) -> None:
    work()


class Process:
    """The same machine over all its lives: its clock stays wrong, its link stays the link."""

    def __init__(
        self,
        name: str,
        *,
        loop: VirtualLoop,
        driver: Driver,
        database: Database,
        receiver: Receiver,
        history: History,
        rng: random.Random,
        wall_ms: int,
        settings: EngineSettings = SETTINGS,
        processes: int = PROCESSES,
        hosts: bool = False,
    ) -> None:
        self.name = name
        self.settings = settings
        self.exhausted = False
        """No descriptor is left: what it wants to send can't even begin."""
        self.loop = loop
        self.clock = ProcessClock(loop, wall_ms + rng.randint(-3_600_000, 3_600_000), rng.uniform(10, 1e6))
        self.rng = rng
        self.lives = 0
        self.place = Place(name)
        self.node: Node | None = None
        self.frozen = False
        self.graves: list[tuple[Place, asyncio.Task[None] | None]] = []
        self.link = Link(loop, database, self.place, random.Random(rng.getrandbits(64)))
        self._driver = driver
        self._receiver = receiver
        self._processes = processes
        self._hosts = hosts
        self._history = history
        self._main: asyncio.Task[None] | None = None
        self.api: Any = None

    @property
    def open(self) -> bool:
        """Whether a connection to its API is taken: a frozen one takes it and says nothing."""
        return self.running

    @property
    def running(self) -> bool:
        return self._main is not None and not self._main.done()

    @property
    def healthy(self) -> bool:
        return self.running and not self.frozen

    @property
    def trouble(self) -> str | None:
        """Why it does not work now; None: it does."""
        return "it does not run" if self.node is None or not self.running else self.node.trouble

    def node_id(self) -> str | None:
        info = self.node.info if self.node is not None else None
        return None if info is None else info.id

    def start(self) -> None:
        """A fresh process: nothing of the one before is left in memory."""
        self.lives += 1
        self.frozen = False
        self.place = Place(self.name)
        self.link.place = self.place
        self.api = LinkedStore(Store(self._driver), self.link)
        self._main = self.loop.create_task(self._live(self.place), context=self.place.context, name=self.name)

    async def _live(self, place: Place) -> None:
        direct, early = self.rng.random() < DIRECT, self.rng.random() < EARLY
        manner: Manner = "coroutine" if not direct else "early" if early else "direct"
        sender = Sender(self._receiver, place, self.clock, manner=manner, processes=self._processes, hosts=self._hosts)
        node = Node(
            store=cast("Any", LinkedStore(Store(self._driver), self.link)),
            targets=sender.targets,
            clock=self.clock,
            rng=random.Random(self.rng.getrandbits(64)),
            settings=self.settings,
            offload=_inline,
        )
        sender.exhausted = lambda: self.exhausted
        sender.node = lambda: None if node.info is None else node.info.id
        self.node = node
        try:
            async with node:
                await node.wait()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            at = round(self.loop.time() * 1000)
            self._history.append(Crashed(at=at, node=self.name, error=f"{type(error).__name__}: {error}"))

    def kill(self) -> None:
        """kill -9: not one more line of it runs. (It is kept, so that Python does not clean up after it.)"""
        self.loop.freeze(self.place)
        self.frozen = False  # whoever froze it will thaw it, and must not wake the dead
        self.graves.append((self.place, self._main))
        self._main, self.node = None, None

    def freeze(self) -> None:
        self.frozen = True
        self.loop.freeze(self.place)

    def thaw(self) -> None:
        if self.frozen:
            self.frozen = False
            self.loop.thaw(self.place)

    def terminate(self) -> None:
        """SIGTERM."""
        if self.node is not None:
            self.loop.call_soon(self.node.request_stop, context=self.place.context)

    def bury(self) -> None:
        """At the very end: let Python clean up all of its lives, when nobody looks any more."""
        self.kill()
        for place, _ in self.graves:
            self.loop.thaw(place)
