"""kill -9 at each named point, many times, on both stores: `make chaos SIZE=points`.

SQLite: one process, killed and started again, on several databases side by side. PostgreSQL: three executors that are
killed, one that takes over what they held, and an API. Users go on all the while; in the end everything is there, once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from onthedot.launcher.launch import fast_loop
from onthedot.store import open_store
from proof.chaos.asking import Asking
from proof.chaos.clock import TrueTime
from proof.chaos.database import running_database
from proof.chaos.diary import postgres_diary, sqlite_diary
from proof.chaos.figures import figures_of
from proof.chaos.harm import Harm
from proof.chaos.life import Life
from proof.chaos.node import POINTS
from proof.chaos.record import Record, read_record
from proof.chaos.run import Result, keep_evidence
from proof.chaos.verdict import judge
from proof.chaos.wire import Helper
from proof.chaos.workload import Load, Workload
from proof.checker.events import Crashed, History
from proof.checker.story import Story
from proof.report import told, write_report
from tests.services.ports import free_port

__all__ = ["STORES", "main", "play_part", "play_points"]

STORES = ("sqlite", "postgres")
TIMES = 200
STRUCK = 3
SIDE_BY_SIDE = {"sqlite": 2, "postgres": 1}
"""How many grounds of a store share its kills: a life spends most of its time waiting."""
FOUNDING = 60.0
LOAD = Load(firings=60, verbs=2.0, crowd=0, functions=0, commands=0)
COLD = 0.15
"""The share of lives that may be ended before they recorded anything. If all could, the same runs would be taken over
by one doomed life after the other, and what three nodes did not survive is rightly not tried again (`poison`)."""
ENVIRON = {"LOG_LEVEL": "ERROR", "ONTHEDOT_LOOKAHEAD": "200ms"}


class Lives:
    """One place where a node lives, again and again."""

    def __init__(self, name: str, argv: list[str], zygote: Helper, directory: Path) -> None:
        self.name = name
        self._argv = argv
        self._zygote = zygote
        self._directory = directory
        self._life: Life | None = None

    async def start(self, point: str = "", *, whole: bool = True) -> None:
        """whole False: without an API, if it has one, which takes most of the time of a start."""
        file = self._directory / f"{self.name}.orders"
        file.write_text(point)
        self._life = await Life.begin(
            self._zygote,
            [*self._argv, *([] if whole or "--roles" in self._argv else ["--roles", "executor"])],
            directory=self._directory,
            log=self._directory / f"{self.name}.log",
            environ={**ENVIRON, "CHAOS_FILE": str(file), "LOGS_BASE_DIRECTORY": os.devnull},
        )

    @property
    def pid(self) -> int:
        return 0 if self._life is None else self._life.pid

    @property
    def alive(self) -> bool:
        return self._life is not None and not self._life.over

    def was_hit(self, point: str) -> bool:
        """Whether it ended as it was told to; anything else is a fault of its own."""
        mark = self._directory / f"{self.name}.orders.hit"
        if not mark.exists() or mark.read_text() != point:
            return False
        mark.unlink()
        return True

    async def ended(self, within: float) -> bool:
        return self._life is None or await self._life.ended(within)

    async def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        if self._life is not None:
            self._life.signal(number)
            if not await self._life.ended(20):
                await self._life.end()


class Ground:
    """What a store needs: its address, the lives that are struck, those that are spared."""

    def __init__(self, url: str, struck: list[Lives], spared: list[Lives], api: str, directory: Path) -> None:
        self.url = url
        self.struck = struck
        self.spared = spared
        self.api = api
        self.directory = directory


@asynccontextmanager
async def _ground(store: str) -> AsyncIterator[Ground]:
    directory = Path(tempfile.mkdtemp(prefix="onthedot-points-"))
    port = free_port()
    async with AsyncExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        zygote = await Helper.start("proof.chaos.zygote")
        stack.push_async_callback(zygote.stop)
        if store == "sqlite":
            url = f"sqlite:///{directory / 'onthedot.db'}"
            await (await open_store(url)).close()
            with contextlib.closing(sqlite3.connect(directory / "onthedot.db")) as connection:
                connection.executescript(sqlite_diary())
            struck = [Lives("node", ["--port", str(port), "--store", url], zygote, directory)]
            spared = []
        else:
            database = await stack.enter_async_context(running_database())
            url = database.url
            await (await open_store(url)).close()
            await database.execute(postgres_diary())
            struck = [
                Lives(f"exec{n}", ["--roles", "executor", "--store", url], zygote, directory) for n in range(STRUCK)
            ]
            spared = [
                Lives("witness", ["--roles", "executor", "--store", url], zygote, directory),
                Lives("api", ["--roles", "api", "--port", str(port), "--store", url], zygote, directory),
            ]
        for lives in [*struck, *spared]:
            stack.push_async_callback(lives.end)
        yield Ground(url, struck, spared, f"http://127.0.0.1:{port}", directory)


async def play_points(store: str, seed: int, times: int, keep: Path | None = None) -> tuple[Result, Story]:
    rng = random.Random(seed)
    users: History = []
    harms: list[Harm] = []
    async with _ground(store) as ground:
        time = TrueTime()
        receiver = await Helper.start("proof.chaos.receiver", str(ground.directory / "received.jsonl"))
        try:
            port = (await receiver.ask())["port"]
            for lives in [*ground.spared, *ground.struck]:
                await lives.start()
            async with Asking([ground.api], random.Random(seed), users, lambda: time.now) as asking:
                workload = Workload(
                    asking, LOAD, url=f"http://127.0.0.1:{port}", time=time, history=users, rng=random.Random(seed)
                )
                enough = asyncio.Event()
                playing = asyncio.create_task(workload.play(enough))
                await asyncio.wait_for(workload.founded.wait(), FOUNDING)
                todo = [point for point in POINTS for _ in range(times)]
                rng.shuffle(todo)
                await asyncio.gather(*(_strike(lives, todo, harms, users, time, rng) for lives in ground.struck))
                await asyncio.sleep(6)
                enough.set()
                await workload.end(playing)
            await asyncio.sleep(12)
            for lives in [*ground.struck, *ground.spared]:
                await lives.end(signal.SIGTERM)
            record = await read_record(
                ground.url,
                time=time,
                users=users,
                harms=harms,
                received=ground.directory / "received.jsonl",
            )
            return _result(store, seed, record, time, asking, ground.directory, keep)
        finally:
            await receiver.stop()


async def _strike(
    lives: Lives, todo: list[str], harms: list[Harm], users: History, time: TrueTime, rng: random.Random
) -> None:
    """Life after life, each ended at its point; one that is not reached in time is tried again."""
    while todo:
        point = todo.pop()
        await _end_by_hand(lives, harms, time)
        warm = "warm 1\n" if rng.random() > COLD else ""
        await lives.start(f"{warm}{point} {rng.randint(1, 4)}", whole=rng.random() < 0.1)
        pid = lives.pid
        if await lives.ended(10):
            if not lives.was_hit(point):
                users.append(Crashed(at=time.now, node=lives.name, error=f"ended by itself before {point}"))
                break
            harms.append(Harm(at=time.now, until=time.now, what="kill_at", pid=pid, name=lives.name, detail=point))
        else:
            todo.insert(0, point)
    await _end_by_hand(lives, harms, time)
    await lives.start()
    if await lives.ended(2):
        users.append(Crashed(at=time.now, node=lives.name, error="did not stay alive"))


async def _end_by_hand(lives: Lives, harms: list[Harm], time: TrueTime) -> None:
    if lives.alive:
        await lives.end()
        harms.append(Harm(at=time.now, until=time.now, what="kill", pid=lives.pid, name=lives.name))


def _result(
    store: str, seed: int, record: Record, time: TrueTime, asking: Asking, directory: Path, keep: Path | None
) -> tuple[Result, Story]:
    story, violations = judge(record.history, record.ledger, alone=store == "sqlite", timeouts=record.timeouts)
    requests = {"asked": asking.asked, "unanswered": asking.unanswered, "unavailable": asking.unavailable}
    result = Result(
        seed=seed,
        profile=f"points on {store}",
        figures=figures_of(story, violations, record.harms, requests),
        violations=violations,
        harms=record.harms,
        not_run={},
        seconds=time.now / 1000,
    )
    if violations and keep is not None:
        keep_evidence(directory, record, keep)
    return result, story


def play_part(store: str, seed: int, out: Path, times: int) -> int:
    """One ground, in this process."""
    place = out / f"points-{store}-{seed}"
    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        result, story = runner.run(play_points(store, seed, times, place))
    report = write_report(place, result, story)
    poison = sum(entry.reason == "poison" and entry.id not in story.sends for entry in story.ledger.entries)
    sys.stdout.write(f"{told(result, aims=False)}\n")
    sys.stdout.write(f"  given up after three lost nodes without ever being received: {poison}\nreport: {report}\n")
    return 1 if result.violations else 0


def main(seed: int, out: Path, times: int = TIMES, stores: Sequence[str] = STORES) -> int:
    """All grounds at once, each in a process of its own. How often each point was hit is counted from their reports."""
    parts = [
        (store, seed + number, times * (number + 1) // many - times * number // many)
        for store in stores
        for many in [SIDE_BY_SIDE[store]]
        for number in range(many)
    ]
    bad = asyncio.run(_play_parts(parts, out))
    for store in stores:
        hits: Counter[str] = Counter()
        lost = 0
        for part, number, _ in parts:
            if part == store and (report := out / f"points-{store}-{number}.json").exists():
                result = msgspec.json.decode(report.read_bytes(), type=Result)
                hits.update(harm.detail for harm in result.harms if harm.detail)
                lost += result.figures.lost
        enough = all(hits[point] >= times for point in POINTS)
        bad += not enough
        counts = ", ".join(f"{point} {hits[point]}" for point in POINTS)
        verdict = "reached" if enough and not lost else "MISSED"
        sys.stdout.write(f"{verdict} {store}: kill -9 at each point x {times}: {counts}; lost {lost}\n")
    return 1 if bad else 0


async def _play_parts(parts: Sequence[tuple[str, int, int]], out: Path) -> int:
    async def play(store: str, seed: int, times: int) -> int:
        given = ["--store", store, "--seed", str(seed), "--times", str(times), "--out", str(out)]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "proof.chaos", "--size", "part", *given, stdout=asyncio.subprocess.PIPE
        )
        try:
            told, _ = await process.communicate()
        except asyncio.CancelledError:
            process.terminate()  # it takes down what it started
            await process.wait()
            raise
        sys.stdout.write(told.decode())
        return int(process.returncode != 0)

    return sum(await asyncio.gather(*(play(*part) for part in parts)))
