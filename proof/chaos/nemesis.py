"""What goes wrong, when and to whom: drawn from the seed, written down with its beginning and end, healed at the end.

The order and the choices repeat with the seed; the instants do not: these are real processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg

from proof.chaos.clock import TrueTime
from proof.chaos.database import Database
from proof.chaos.harm import Harm
from proof.chaos.more_faults import LEASE, MoreFaults
from proof.chaos.node import POINTS
from proof.chaos.nodes import NodeProcess
from proof.chaos.wire import Helper
from proof.checker.events import Crashed, History

__all__ = ["PROFILES", "Nemesis"]

STOPS_WITHIN = 45.0
"""Seconds, at the very most, while the database is away: a lease for the last claim, the grace of 10 s, a lease to kill
what runs, one to record it, the deadline of 10 s of a call, 5 s to close connections. While it is there, the verdict
allows 9."""

PROFILES: dict[str, tuple[str, ...]] = {
    "calm": (),
    "kill": ("kill",),
    "points": ("kill_at",),
    "freeze": ("freeze",),
    "sigterm": ("sigterm",),
    "api": ("kill_api",),
    "crash": ("db_restart",),
    "outage": ("outage",),
    "backends": ("backends",),
    "cut": ("cut",),
    "refuse": ("refuse",),
    "silence": ("silence",),
    "delay": ("delay",),
    "commit": ("swallow_commit",),
    "clock": ("node_clock",),
    "db_clock": ("db_clock",),
    "disk": ("disk_full",),
    "receiver": ("receiver_down", "receiver_slow"),
    "twin": ("twin",),
    "freeze_api": ("freeze_api",),
    "files": ("few_files",),
    "both_ways": ("clock_there_and_back",),
}
PROFILES["mixed"] = tuple(dict.fromkeys(kind for kinds in PROFILES.values() for kind in kinds))
# a pair of databases instead of the one: runs of their own
PROFILES["failover_sync"] = PROFILES["failover_async"] = ("failover", "kill", "freeze", "sigterm", "failover")


class Nemesis(MoreFaults):
    def __init__(
        self,
        *,
        kinds: tuple[str, ...],
        executors: list[NodeProcess],
        apis: list[NodeProcess],
        twin: NodeProcess,
        database: Database,
        proxy: Helper,
        receiver: Helper,
        time: TrueTime,
        history: History,
        rng: random.Random,
        longest_outage: float = 10 * LEASE,
    ) -> None:
        self.harms: list[Harm] = []
        self.not_run: dict[str, str] = {}
        self._executors = executors
        self._apis = apis
        self._double = twin
        self._database = database
        self._proxy = proxy
        self._receiver = receiver
        self._time = time
        self._history = history
        self._rng = rng
        self._longest_outage = longest_outage
        self._tasks: set[asyncio.Task[None]] = set()
        self._receiver_busy = False
        self.kinds = [kind for kind in kinds if self._possible(kind)]

    def _possible(self, kind: str) -> bool:
        why = None
        if kind == "disk_full" and self._database.disk is None:
            why = "mounting a small disk needs root"
        if kind == "db_clock" and self._database.clock is None:
            why = "PostgreSQL runs without libfaketime here (PROFILE=db_clock runs it)"
        if why is not None:
            self.not_run[kind] = why
        return why is None

    async def rage(self, seconds: float, gap: float) -> None:
        """A fault every `gap` seconds, also while others last; each kind comes round before any comes again."""
        end = asyncio.get_running_loop().time() + seconds
        bag: list[str] = []
        if not self.kinds:
            await asyncio.sleep(seconds)
        while self.kinds and asyncio.get_running_loop().time() < end:
            if not bag:
                bag = list(self.kinds)
                self._rng.shuffle(bag)
            act: Callable[[], Awaitable[None]] = getattr(self, "_" + bag.pop())
            task = asyncio.create_task(self._guarded(act))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            await asyncio.sleep(gap * self._rng.uniform(0.5, 1.5))
        while self._tasks:
            await asyncio.wait(list(self._tasks))
        await self.heal()

    async def _guarded(self, act: Callable[[], Awaitable[None]]) -> None:
        try:
            await act()
        except Exception as error:
            self._history.append(Crashed(at=self._time.now, node="nemesis", error=f"{act.__name__}: {error!r}"))

    async def heal(self) -> None:
        await self._proxy.ask(do="heal")
        await self._receiver.ask(mode="up")
        for node in [*self._executors, *self._apis]:
            node.thaw()
            if not node.running:
                await node.start()

    # processes

    async def _kill(self) -> None:
        await self._restarted("kill", self._any(), NodeProcess.kill)

    async def _sigterm(self) -> None:
        await self._restarted("sigterm", self._any(), NodeProcess.terminate)

    async def _kill_api(self) -> None:
        await self._restarted("kill_api", self._pick(self._apis), NodeProcess.kill)

    async def _restarted(self, what: str, node: NodeProcess | None, act: Callable[[NodeProcess], None]) -> None:
        if node is None:
            return
        node.busy, pid, began = True, node.pid, self._time.now
        act(node)
        await self._end(node, what)
        self._note(began, what, pid=pid, name=node.name)
        await self._rest(0.05, 1.2 * LEASE)
        await node.start()
        node.busy = False

    async def _end(self, node: NodeProcess, what: str) -> None:
        if not await node.ended(STOPS_WITHIN):
            self._history.append(Crashed(at=self._time.now, node=node.name, error=f"did not end after {what}"))
            node.kill()
            await node.ended(5)

    async def _kill_at(self) -> None:
        if (node := self._any()) is None:
            return
        node.busy, pid, point = True, node.pid, self._rng.choice(POINTS)
        node.arm(point, self._rng.randint(1, 20))
        if await node.ended(6):
            self._note(self._time.now, "kill_at", pid=pid, name=node.name, detail=point)
            await self._rest(0.05, 1.2 * LEASE)
            await node.start()
        else:
            node.disarm()
        node.busy = False

    async def _freeze(self) -> None:
        if (node := self._any()) is None:
            return
        node.busy, began = True, self._time.now
        node.freeze()
        await asyncio.sleep(LEASE * self._rng.choice((self._rng.uniform(0.1, 1), self._rng.uniform(1, 5))))
        node.thaw()
        self._note(began, "freeze", pid=node.pid, name=node.name)
        node.busy = False

    async def _twin(self) -> None:
        """One more node with the name of the others (all carry the name of this host), for a while."""
        double = self._double
        if double.busy:
            return
        double.busy = True
        await double.start()
        pid = double.pid
        await self._registered(pid)
        await self._rest(1, 2 * LEASE)
        what, act = self._rng.choice((("twin", NodeProcess.kill), ("twin_stopped", NodeProcess.terminate)))
        began = self._time.now
        act(double)
        await self._end(double, what)
        self._note(began, what, pid=pid, name=double.name)
        double.busy = False

    async def _registered(self, pid: int) -> None:
        for _ in range(100):
            with contextlib.suppress(OSError, asyncpg.PostgresError, TimeoutError):
                if await self._database.fetch("SELECT 1 FROM nodes WHERE pid = $1", pid):
                    return
            await asyncio.sleep(0.2)

    async def _node_clock(self) -> None:
        if (node := self._pick([*self._executors, *self._apis])) is None:
            return
        by = self._rng.choice((-3_600_000, 3_600_000, self._rng.randint(-5000, 5000)))
        node.set_clock(by)
        self._note(self._time.now, "node_clock", pid=node.pid, name=node.name, detail=f"{by / 1000:+.1f} s")

    # the database

    async def _db_restart(self) -> None:
        async with self._database.lock:
            began = self._time.now
            await self._database.crash(0)
        self._note(began, "db_restart")

    async def _outage(self) -> None:
        """Three of four shorter than the lease."""
        long = self._rng.random() < 0.25
        seconds = self._rng.uniform(LEASE, self._longest_outage) if long else self._rng.uniform(0.2, 0.8 * LEASE)
        async with self._database.lock:
            began = self._time.now
            await self._database.crash(seconds)
        self._note(began, "outage" if seconds >= LEASE else "short_outage")

    async def _backends(self) -> None:
        if self._database.lock.locked():
            return
        began = self._time.now
        count = await self._database.terminate(self._rng.randint(1, 40))
        self._note(began, "backends", count=count)

    async def _disk_full(self) -> None:
        async with self._database.lock:
            began = self._time.now
            await self._database.fill(self._rng.uniform(0.5, LEASE))
        self._note(began, "disk_full")

    async def _db_clock(self) -> None:
        assert self._database.clock is not None
        by = self._rng.choice((-1, 1)) * self._rng.choice((self._rng.randint(1, 100), self._rng.randint(100, 20_000)))
        self._database.clock.step(by)
        self._time.step(by)
        self._note(self._time.now, "db_clock", detail=f"{by} ms")

    # the way to it

    async def _cut(self) -> None:
        node = self._someone()
        count = await self._proxy.ask(do="cut", door=node.name if node else None)
        self._note(self._time.now, "cut", pid=node.pid if node else None, name=node.name if node else "", count=count)

    async def _refuse(self) -> None:
        await self._on_the_way("refuse", 0.2, 2 * LEASE)

    async def _delay(self) -> None:
        await self._on_the_way("delay", 1, 2 * LEASE, seconds=self._rng.uniform(0.005, 0.3))

    async def _silence(self) -> None:
        ways = self._rng.choice((["up"], ["down"], ["down"], ["up", "down"]))
        await self._on_the_way("silence", 0.3, 3 * LEASE, ways=ways)

    async def _swallow_commit(self) -> None:
        before = await self._proxy.ask(do="count")
        began = self._time.now
        node = await self._on_the_way("swallow", 0.5, 2, commits=self._rng.randint(1, 3), quiet=True)
        count = await self._proxy.ask(do="count") - before
        if node is not None:
            self._note(began, "swallow_commit", pid=node.pid, name=node.name, count=count)

    async def _on_the_way(
        self, what: str, least: float, most: float, *, quiet: bool = False, **order: Any
    ) -> NodeProcess | None:
        node = self._pick([*self._executors, *self._apis])
        if node is None:
            return None
        node.busy, began = True, self._time.now
        await self._proxy.ask(do=what, door=node.name, **order)
        await self._rest(least, most)
        await self._proxy.ask(do="heal", door=node.name)
        if not quiet:
            detail = " ".join(order.get("ways", []))
            self._note(began, what, pid=node.pid, name=node.name, detail=detail)
        node.busy = False
        return node

    # the receiver

    async def _receiver_down(self) -> None:
        await self._receiver_is("down", 0.5, 8)

    async def _receiver_slow(self) -> None:
        await self._receiver_is("slow", 1, 8)

    async def _receiver_is(self, mode: str, least: float, most: float) -> None:
        if self._receiver_busy:
            return
        self._receiver_busy, began = True, self._time.now
        await self._receiver.ask(mode=mode)
        await self._rest(least, most)
        await self._receiver.ask(mode="up")
        self._note(began, f"receiver_{mode}")
        self._receiver_busy = False

    def _any(self) -> NodeProcess | None:
        return self._pick(self._executors)

    def _pick(self, nodes: list[NodeProcess]) -> NodeProcess | None:
        free = [node for node in nodes if node.running and not node.busy]
        return self._rng.choice(free) if free else None

    def _someone(self) -> NodeProcess | None:
        """One of them, or None for all."""
        return None if self._rng.random() < 0.3 else self._pick([*self._executors, *self._apis])

    async def _rest(self, least: float, most: float) -> None:
        await asyncio.sleep(self._rng.uniform(least, most))

    def _note(
        self, began: int, what: str, *, pid: int | None = None, name: str = "", detail: str = "", count: int = 0
    ) -> None:
        self.harms.append(
            Harm(at=began, until=self._time.now, what=what, pid=pid, name=name, detail=detail, count=count)
        )
