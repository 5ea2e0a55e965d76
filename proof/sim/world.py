"""The whole cluster: a database, three nodes on it, users, a receiver, and what goes wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

from onthedot.store import Store, open_driver
from onthedot.store.driver import Driver, Transaction
from onthedot.store.migrate import migrate
from proof.checker.events import History, Stepped
from proof.checker.ledger import Ledger
from proof.sim.callbacks import LaterResults
from proof.sim.clocks import DatabaseTime
from proof.sim.diary import Diary
from proof.sim.final import read_ledger
from proof.sim.front import Front
from proof.sim.link import Database, Link, LinkedStore
from proof.sim.loop import Place, VirtualLoop, at_once
from proof.sim.process import PROCESSES, SETTINGS, Process
from proof.sim.receiver import Receiver
from proof.sim.written import clock_was_set, note_writes

__all__ = ["NODES", "World"]

NODES = 3
LOOKAHEADS = (2000, 2000, 2000, 500, 100)
SMALL = 0.15
"""The share of worlds that have more to run than they have slots for."""

FEW = 6
"""Slots of a node for webhooks where destinations are limited: four for one host alone, one of each beside them."""

STARTS = (
    1_772_413_200_000,  # an ordinary Monday night in March
    1_774_745_820_000,  # three minutes before Berlin's clocks go forward
    1_792_889_820_000,  # three minutes before they go back
    1_798_761_300_000,  # five minutes before the year ends
)

Point = Callable[[str, str], None]


class _Api:
    """A process that answers users and runs nothing."""

    open = True

    def __init__(self, driver: Driver, link: Link) -> None:
        self.place = link.place
        self.api: Any = LinkedStore(Store(driver), link)


class World:
    """Everything is drawn from one seed: same seed, same history."""

    def __init__(self, loop: VirtualLoop, seed: int, *, hosts: bool = False) -> None:
        """`hosts`: webhooks go to several, each a destination of its own, and there are few slots."""
        self.loop = loop
        self.rng = random.Random(seed)
        self.history: History = []
        self.time = DatabaseTime(loop, self.rng.choice(STARTS) + self.rng.randint(0, 999))
        self.database = Database()
        self.diary = Diary(loop, self.time, self.history)
        self.diary.point = lambda what, process: self.point(what, process)
        self.database.witness = self.diary.note
        self.receiver = Receiver(loop, self.time, self.history, self._branch())
        self.receiver.reached = lambda process: self.point("received", process)
        self.receiver.answered = lambda process: self.point("answered", process)
        self.receiver.calls_back = LaterResults(self).follow
        self.point: Point = lambda what, process: None
        self.processes: list[Process] = []
        small = self.rng.random() < SMALL
        self.settings = msgspec.structs.replace(
            SETTINGS,
            lookahead=self.rng.choice(LOOKAHEADS),
            concurrency=3 if small else SETTINGS.concurrency,
        )
        self.hosts = self.receiver.steady = hosts
        if hosts:
            self.settings = msgspec.structs.replace(self.settings, concurrency=FEW)
        self.slots = {"webhook": self.settings.concurrency, "function": 2 if small else PROCESSES}

    def _branch(self) -> random.Random:
        return random.Random(self.rng.getrandbits(64))

    @property
    def now(self) -> int:
        """The true time in ms."""
        return round(self.loop.now * 1000)

    async def open(self) -> None:
        self.driver = await open_driver("sqlite:///:memory:", self.time, threads=False)
        await migrate(self.driver)
        await note_writes(self.driver)
        self.link = Link(self.loop, self.database, Place("api"), self._branch())
        self.driver.queries.lookahead = self.settings.lookahead
        self.diary.driver = self.driver
        for number in range(NODES):
            process = Process(
                f"n{number}",
                loop=self.loop,
                driver=self.driver,
                database=self.database,
                receiver=self.receiver,
                history=self.history,
                rng=self._branch(),
                wall_ms=self.time.now_ms(),
                settings=self.settings,
                processes=self.slots["function"],
                hosts=self.hosts,
            )
            self.processes.append(process)
            process.start()
        api = _Api(self.driver, self.link)
        self.front = Front(self.loop, [api, api, api, *self.processes], self._branch())

    @property
    def links(self) -> list[Link]:
        return [self.link, *(process.link for process in self.processes)]

    def process(self, name: str) -> Process:
        return next(process for process in self.processes if process.name == name)

    def step_database_clock(self, by_ms: int) -> None:
        self.time.step(by_ms)
        clock_was_set(self.driver)
        self.history.append(Stepped(at=self.now, by_ms=by_ms, highest=self.time.highest, db=self.time.now_ms()))

    def hint(self, topic: str) -> None:
        """What a NOTIFY does."""
        at_once(self.driver.notify(topic))

    async def live_runs(self, job: int) -> list[str]:
        """What a user sees of a job's runs, to choose one to cancel: the next one lies at any distance."""

        async def body(tx: Transaction) -> list[str]:
            rows = await tx.sql("SELECT id FROM runs WHERE job_id = ?1 ORDER BY id", job)
            return [row["id"] for row in rows]

        return await self.driver.read(body)

    async def ledger(self) -> Ledger:
        ledger = await read_ledger(self.driver, at=self.now, now=self.time.now_ms(), clock_noted=True)
        return msgspec.structs.replace(
            ledger, slots=self.slots, nodes=NODES, lookahead=self.settings.lookahead, hosts=self.hosts
        )

    async def close(self) -> None:
        """Nobody looks any more: thaw the dead and let everything end, so that nothing is left behind in Python."""
        self.database.up, self.database.silent = False, True
        for process in self.processes:
            process.bury()
        await self.driver.close()
