"""One seed: build the world, let users and nemesis loose on it, let it settle, read the ledger, decide."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import random
import re
import time
from collections.abc import Callable

import msgspec

from proof.checker.events import Crashed, History, Received
from proof.checker.ledger import Ledger
from proof.checker.verdict import Violation, check
from proof.sim.loop import VirtualLoop
from proof.sim.nemesis import EXTRA, HOST_FAULTS, PROFILES, Nemesis
from proof.sim.workload import Workload
from proof.sim.world import World

__all__ = ["Outcome", "play", "record"]

MINUTES = 10.0
QUIET = 60.0
"""The last stretch of every run has no faults, so that what is due must be finished when it ends."""

CROWD = 3
"""So many times more jobs where destinations are limited, or concurrency groups."""
GROUPS = "groups"

_encode = msgspec.json.Encoder(order="deterministic").encode

Plant = Callable[[World], None]


class Outcome(msgspec.Struct, kw_only=True):
    seed: int
    profile: str
    digest: str
    violations: list[Violation]
    excuses: dict[str, int]
    sends: int
    slots: int
    faults: int
    turns: int
    seconds: float
    tail: list[str]


def profile_of(seed: int) -> str:
    """Half of the seeds get everything at once, the others one family of faults each, or none. One in twenty has
    destinations that hang and fail, one has chains, and one has jobs in concurrency groups."""
    if seed % 20 == 5:
        return "destinations"
    if seed % 20 == 9:
        return "chains"
    if seed % 20 == 13:
        return GROUPS
    names = list(PROFILES)
    return names[seed // 2 % len(names)] if seed % 2 else "mixed"


def play(
    seed: int,
    *,
    minutes: float = MINUTES,
    profile: str | None = None,
    kinds: tuple[str, ...] | None = None,
    plant: Plant | None = None,
    tail: int = 60,
) -> Outcome:
    """The same seed gives the same history, to the byte. kinds: these faults, instead of a profile's."""
    began = time.process_time()
    chosen = "planted" if kinds is not None else profile or profile_of(seed)
    faults_to_come = kinds if kinds is not None else (PROFILES | EXTRA)[chosen]
    history, ledger, faults, turns = record(
        seed,
        minutes=minutes,
        kinds=faults_to_come,
        plant=plant,
        chains=chosen == "chains",
        grouped=chosen == GROUPS,
    )
    found, excuses = check(history, ledger)
    lines = [_encode(event) for event in history]
    digest = hashlib.sha256(b"\n".join([*lines, _encode(ledger)])).hexdigest()[:16]
    return Outcome(
        seed=seed,
        profile=chosen,
        digest=digest,
        violations=found,
        excuses=dict(excuses),
        sends=sum(isinstance(event, Received) for event in history),
        slots=len(ledger.entries),
        faults=faults,
        turns=turns,
        seconds=time.process_time() - began,
        tail=_about(found, [line.decode() for line in lines])[-tail:] if found and tail else [],
    )


def record(
    seed: int,
    *,
    minutes: float,
    kinds: tuple[str, ...] = (),
    plant: Plant | None = None,
    chains: bool = False,
    grouped: bool = False,
) -> tuple[History, Ledger, int, int]:
    """What happened, what the store says in the end, how many faults there were and how many turns of the loop."""
    loop = VirtualLoop()
    thresholds = gc.get_threshold()
    gc.set_threshold(200_000, 20, 20)  # little of it is garbage in circles: looking for that took 8 % of the time
    try:
        playing = _play(loop, seed, minutes * 60, kinds, plant, chains=chains, grouped=grouped)
        history, ledger, faults = loop.run_until_complete(playing)
        turns = loop.turns
        _end_all(loop)
    finally:
        loop.close()
        gc.set_threshold(*thresholds)
        gc.collect()
    history.sort(key=lambda event: event.at)
    return history, ledger, faults, turns


def _about(found: list[Violation], lines: list[str]) -> list[str]:
    """What the history says of the job of the first violation, and of what went wrong meanwhile."""
    names = re.findall(r"\b(?:job )?(\d+)(?:-\d+|\b)", found[0].text)
    marks = (
        '"fault"',
        '"lost"',
        '"stepped"',
        '"crashed"',
        *(f'"job":{n},' for n in names[:1]),
        *(f'"{n}-' for n in names[:1]),
    )
    return [line for line in lines if any(mark in line for mark in marks)]


async def _play(
    loop: VirtualLoop,
    seed: int,
    seconds: float,
    kinds: tuple[str, ...],
    plant: Plant | None,
    *,
    chains: bool,
    grouped: bool,
) -> tuple[History, Ledger, int]:
    world = World(loop, seed, hosts=bool(HOST_FAULTS & set(kinds)))
    await world.open()
    if plant is not None:
        plant(world)
    rng = random.Random(seed ^ 0x5EED)
    quiet = min(QUIET, seconds / 3)
    nemesis = Nemesis(world, random.Random(rng.getrandbits(64)), kinds)
    workload = Workload(
        world, random.Random(rng.getrandbits(64)), recurring=rng.randint(2, 4), one_offs=int(seconds / 15)
    )
    if world.hosts or grouped:
        workload.crowd(CROWD)
    if chains:
        workload.chain()
    workload.grouped = grouped
    tasks = [loop.create_task(workload.play(seconds - quiet)), loop.create_task(nemesis.rage(seconds - quiet))]
    for task in tasks:
        await task
    await asyncio.sleep(max(0.0, seconds - loop.time()))
    ledger = await world.ledger()
    for process in world.processes:
        if process.trouble is not None:
            world.history.append(Crashed(at=world.now, node=process.name, error=f"takes no part: {process.trouble}"))
    for error in loop.errors:
        world.history.append(Crashed(at=world.now, node="loop", error=error))
    history = list(world.history)
    await world.close()
    return history, ledger, nemesis.faults


def _end_all(loop: VirtualLoop) -> None:
    """Let every task, also those of the dead, run to its end, so that the next world starts with a clean table."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=60))
