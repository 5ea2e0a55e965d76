"""What goes wrong, when, and to whom: drawn from the seed, written into the history, healed at the end."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

from proof.checker.events import Fault
from proof.sim.link import Link
from proof.sim.process import Process
from proof.sim.receiver import HOSTS
from proof.sim.world import World

__all__ = ["EXTRA", "HOST_FAULTS", "PROFILES", "Nemesis"]

LEASE = 5.0

PROFILES: dict[str, tuple[str, ...]] = {
    "calm": (),
    "kills": ("kill", "kill_at", "power_cut"),
    "freezes": ("freeze", "freeze_at", "suspend"),
    "stops": ("stop", "stop_cut"),
    "network": ("cut", "flaky", "slow", "late", "hang"),
    "outages": ("outage", "brief_outage"),
    "clocks": ("wall", "database_clock", "kill"),
    "receiver": ("receiver", "exhausted", "kill_at"),
}
PROFILES["mixed"] = tuple(dict.fromkeys(kind for kinds in PROFILES.values() for kind in kinds))
HOST_FAULTS = frozenset({"hanging_host", "failing_host"})
EXTRA: dict[str, tuple[str, ...]] = {
    "ahead": ("clock_ahead",),
    "chains": ("kill", "kill_at", "kill_at", "power_cut", "freeze", "stop", "cut", "outage"),
    "destinations": (*("hanging_host", "failing_host") * 3, "kill", "kill_at", "cut", "outage", "stop"),
}
EXTRA["groups"] = ("kill", "kill", "kill_at", "kill_at", "freeze", "cut", "flaky", "outage", "stop", "stop_cut")
"""Played when they are asked for by name, or by seeds of their own."""

POINTS = ("claimed", "begun", "received", "answered", "recorded")


class Nemesis:
    def __init__(self, world: World, rng: random.Random, kinds: tuple[str, ...]) -> None:
        self.world = world
        self.rng = rng
        self.kinds = kinds
        self.faults = 0
        self._outages = 0
        self._armed: tuple[str, Callable[[Process], None]] | None = None
        world.point = self._at_point

    async def rage(self, until: float) -> None:
        """One thing after another, some before the last one is healed; all of it over by `until` (seconds)."""
        sleep, rng = self.world.time.sleep, self.rng
        await sleep(rng.uniform(2, 12))
        while self.kinds and self.world.loop.time() < until - 40:
            self.faults += 1
            acts = getattr(self, "_" + rng.choice(self.kinds))
            if rng.random() < 0.25:
                self.world.loop.create_task(self._guarded(acts))
            else:
                await acts()
            await sleep(rng.choice((rng.uniform(0.2, 3), rng.uniform(5, 30))))
        await sleep(max(0.0, until - self.world.loop.time()))
        await self._heal()

    async def _guarded(self, acts: Callable[[], Awaitable[None]]) -> None:
        await acts()

    async def _heal(self) -> None:
        self._armed = None
        for process in self.world.processes:
            process.exhausted = False
            process.thaw()
            if not process.running:
                process.start()
        for link in self.world.links:
            link.cut = False
            link.slow = link.refuses = link.loses = link.hangs = link.late = 0.0
        self.world.database.up = True
        self.world.receiver.up = True
        self.world.receiver.ill.clear()

    # processes

    async def _kill(self) -> None:
        process = self._any()
        await self._restart_after(process, "kill", process.kill)

    async def _power_cut(self) -> None:
        began, victims = self.world.now, [process for process in self.world.processes if process.running]
        ids = [self._id(process) for process in victims]
        for process in victims:
            process.kill()
        await self._rest(0.1, 2 * LEASE)
        for process, node in zip(victims, ids, strict=True):
            self._note(began, "power_cut", node)
            self._start(process)

    async def _stop(self) -> None:
        process = self._any()
        await self._restart_after(process, "stop", process.terminate)

    async def _stop_cut(self) -> None:
        """Told to stop because it does not reach its database: what it cancels is in the middle of trouble."""
        process = self._any()
        if not process.healthy:
            return
        began, node = self.world.now, self._id(process)
        process.link.cut = True
        await self._rest(0.1, LEASE)
        await self._restart_after(process, "stop", process.terminate)
        process.link.cut = False
        self._note(began, "cut", node)

    async def _restart_after(self, process: Process, what: str, act: Callable[[], None]) -> None:
        began, node = self.world.now, self._id(process)
        if not process.healthy:
            return
        act()
        await self._rest(0.05, 2.5 * LEASE)
        for _ in range(100):
            if not process.running:
                break
            await self.world.time.sleep(0.2)
        self._note(began, what, node)
        self._start(process)

    def _start(self, process: Process) -> None:
        if not process.running:
            process.start()

    async def _freeze(self) -> None:
        process = self._any()
        if not process.healthy:
            return
        began, node = self.world.now, self._id(process)
        process.freeze()
        await self._rest(0.1 * LEASE, 5 * LEASE)
        self._note(began, "freeze", node)
        if process.frozen:
            process.thaw()

    async def _suspend(self) -> None:
        """Frozen, and woken with a wrong date, as a virtual machine from its snapshot."""
        process = self._any()
        if not process.healthy:
            return
        began, node = self.world.now, self._id(process)
        process.freeze()
        await self._rest(0.1 * LEASE, 3 * LEASE)
        process.clock.jump(self.rng.choice((-3_600_000, -30_000, 30_000)))
        self._note(began, "suspend", node)
        process.thaw()

    # at named points: the very moment after something was committed, received or answered

    async def _kill_at(self) -> None:
        await self._arm("kill_at", lambda process: process.kill())

    async def _freeze_at(self) -> None:
        await self._arm("freeze_at", lambda process: process.freeze())

    async def _arm(self, what: str, act: Callable[[Process], None]) -> None:
        hit: list[tuple[Process, int, str]] = []

        def strike(process: Process) -> None:
            hit.append((process, self.world.now, self._id(process)))
            act(process)

        self._armed = self.rng.choice(POINTS), strike
        for _ in range(50):
            await self.world.time.sleep(0.2)
            if hit:
                break
        self._armed = None
        await self._rest(0.05, 2.5 * LEASE)
        for process, began, node in hit:
            self._note(began, what, node)
            process.thaw()
            self._start(process)

    def _at_point(self, point: str, name: str) -> None:
        if self._armed is None or self._armed[0] != point:
            return
        process = next((process for process in self.world.processes if process.name == name), None)
        if process is not None and process.healthy:
            strike, self._armed = self._armed[1], None
            strike(process)

    # the way to the database, and the database

    async def _cut(self) -> None:
        process = self._any()
        began, node = self.world.now, self._id(process)
        process.link.cut = True
        await self._rest(0.2, 4 * LEASE)
        process.link.cut = False
        self._note(began, "cut", node)
        if self._id(process) != node:
            self._note(began, "cut", self._id(process))

    async def _flaky(self) -> None:
        await self._links("flaky", refuses=self.rng.uniform(0.02, 0.3), loses=self.rng.uniform(0.02, 0.3))

    async def _slow(self) -> None:
        await self._links("slow", slow=self.rng.uniform(0.05, 0.8))

    async def _late(self) -> None:
        await self._links("late", late=self.rng.uniform(0.02, 0.15))

    async def _hang(self) -> None:
        await self._links("hang", hangs=self.rng.uniform(0.02, 0.15))

    async def _links(self, what: str, **trouble: float) -> None:
        everywhere = self.rng.random() < 0.3
        links = self.world.links if everywhere else [self.rng.choice(self.world.links)]
        began, whose = self.world.now, None if everywhere else self._whose(links[0])
        for link in links:
            for name, value in trouble.items():
                setattr(link, name, value)
        await self._rest(2, 4 * LEASE)
        for link in links:
            for name in trouble:
                setattr(link, name, 0.0)
        self._note(began, what, whose)
        if not everywhere and self._whose(links[0]) != whose:  # it was started anew meanwhile
            self._note(began, what, self._whose(links[0]))

    def _whose(self, link: Link) -> str:
        process = next((process for process in self.world.processes if process.link is link), None)
        return "api" if process is None else self._id(process)

    async def _outage(self) -> None:
        await self._away(0.5 * LEASE, 5 * LEASE)

    async def _long_outage(self) -> None:
        """Longer than the minute after which catch-up `skip` gives up, and a run is backlog."""
        await self._away(13 * LEASE, 18 * LEASE)

    async def _brief_outage(self) -> None:
        await self._away(0.05, 0.5 * LEASE)

    async def _away(self, least: float, most: float) -> None:
        """One may begin during another: the database is back when the last is over."""
        database, began = self.world.database, self.world.now
        self._outages += 1
        database.up, database.silent = False, self.rng.random() < 0.5
        await self._rest(least, most)
        self._outages -= 1
        database.up = self._outages == 0
        self._note(began, "outage", None)

    # clocks, and the receiver

    async def _wall(self) -> None:
        self._any().clock.jump(self.rng.choice((-3_600_000, 3_600_000, self.rng.randint(-5000, 5000))))
        self._note(self.world.now, "wall", None)

    async def _database_clock(self) -> None:
        by = self.rng.choice((-1, 1)) * self.rng.choice((self.rng.randint(1, 100), self.rng.randint(100, 20_000)))
        self.world.step_database_clock(by)
        self._note(self.world.now, "database_clock", None)

    async def _clock_ahead(self) -> None:
        """For a moment it is an hour later, as when a machine takes its time from the wrong server."""
        began, by = self.world.now, self.rng.choice((3_600_000, 120_000))
        self.world.step_database_clock(by)
        await self._rest(0.5, 8)
        self.world.step_database_clock(-by)
        self._note(began, "database_clock", None)

    async def _exhausted(self) -> None:
        """A machine without descriptors: whatever its node wants to send does not begin."""
        process = self._any()
        if not process.healthy:
            return
        began, node = self.world.now, self._id(process)
        process.exhausted = True
        await self._rest(0.2, 6)
        process.exhausted = False
        self._note(began, "exhausted", node)

    async def _receiver(self) -> None:
        began = self.world.now
        self.world.receiver.up = False
        await self._rest(0.5, 12)
        self.world.receiver.up = True
        self._note(began, "receiver", None)

    async def _hanging_host(self) -> None:
        """One host does not answer any more; all others do."""
        await self._ill("hangs")

    async def _failing_host(self) -> None:
        await self._ill("fails")

    async def _ill(self, how: str) -> None:
        began, ill = self.world.now, self.world.receiver.ill
        host = f"http://host{self.rng.randrange(HOSTS)}"
        if host in ill:
            return
        ill[host] = how
        await self._rest(5, 50)
        ill.pop(host, None)
        self._note(began, "host", host)

    def _id(self, process: Process) -> str:
        return process.node_id() or process.name

    def _any(self) -> Process:
        return self.rng.choice(self.world.processes)

    async def _rest(self, least: float, most: float) -> None:
        await self.world.time.sleep(self.rng.uniform(least, most))

    def _note(self, began: int, what: str, node: str | None) -> None:
        self.world.history.append(Fault(at=began, until=self.world.now, what=what, node=node))
