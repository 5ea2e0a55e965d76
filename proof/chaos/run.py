"""One run: build the cluster, let users and nemesis loose on it, let it heal, stop it, read what is written, decide."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from onthedot.store import open_store
from proof.chaos.asking import Asking
from proof.chaos.clock import TrueTime
from proof.chaos.database import Database, running_database
from proof.chaos.diary import postgres_diary
from proof.chaos.failover import running_pair
from proof.chaos.faketime import FakeTime, find_faketime
from proof.chaos.figures import Figures, figures_of
from proof.chaos.harm import Harm
from proof.chaos.nemesis import PROFILES, Nemesis
from proof.chaos.nodes import NodeProcess, lookahead_of
from proof.chaos.record import Record, in_trouble, read_record
from proof.chaos.ring import FUNCTION
from proof.chaos.sizes import Size
from proof.chaos.specs import COMMAND
from proof.chaos.verdict import STOPS_WITHIN, judge
from proof.chaos.wire import ROOT, Helper
from proof.chaos.workload import Workload
from proof.checker.events import Crashed, History
from proof.checker.story import Story, Violation
from tests.services.ports import free_port

__all__ = ["Result", "keep_evidence", "play"]

FAILOVERS = ("failover_sync", "failover_async")
FEW_SLOTS = 8
"""Webhooks at once on one of the executors: a receiver that is slow fills it."""
STARTING = 15_000
"""ms that a process may try to reach the database before it gives up at its start."""


class Result(msgspec.Struct, kw_only=True):
    seed: int
    profile: str
    figures: Figures
    violations: list[Violation]
    harms: list[Harm]
    not_run: dict[str, str]
    seconds: float
    excuses: dict[str, int] = {}  # what was let pass, and how often


class Cluster:
    """Everything that runs."""

    def __init__(self, directory: Path, size: Size, seed: int) -> None:
        self.directory = directory
        self.environ = {"ONTHEDOT_LOOKAHEAD": lookahead_of(seed)}
        self.size = size
        self.time = TrueTime()
        self.users: History = []
        self.apis: list[NodeProcess] = []
        self.executors: list[NodeProcess] = []
        self.urls: list[str] = []
        self.received = directory / "received.jsonl"
        self.database: Database
        self.proxy: Helper
        self.receiver: Helper
        self.zygote: Helper
        self.twin: NodeProcess

    @property
    def nodes(self) -> list[NodeProcess]:
        return [*self.apis, *self.executors, self.twin]

    async def open(self, stack: AsyncExitStack, database: Database) -> None:
        self.database = database
        store = await open_store(database.url)
        await store.close()
        await database.execute(postgres_diary())
        self.proxy = await self._helper(stack, "proof.chaos.proxy", str(database.server.port))
        self.receiver = await self._helper(stack, "proof.chaos.receiver", str(self.received))
        self.zygote = await self._helper(stack, "proof.chaos.zygote")
        _write_settings(self.directory)
        for number in range(self.size.apis):
            self.apis.append(await self._api(stack, f"api{number}", "api"))
        for number in range(self.size.both):
            self.apis.append(await self._api(stack, f"both{number}", "api,executor"))
        for number in range(self.size.executors):
            few = {"ONTHEDOT_CONCURRENCY": str(FEW_SLOTS)} if number == 0 else {}
            self.executors.append(await self._node(stack, f"exec{number}", "--roles", "executor", environ=few))
        self.twin = await self._node(stack, "twin", "--roles", "executor")
        self.time = TrueTime()
        for node in self.nodes:
            node.follow(self.time)
        await asyncio.gather(*(node.start() for node in [*self.apis, *self.executors]))

    async def _helper(self, stack: AsyncExitStack, module: str, *args: str) -> Helper:
        helper = await Helper.start(module, *args)
        stack.push_async_callback(helper.stop)
        return helper

    async def _api(self, stack: AsyncExitStack, name: str, roles: str) -> NodeProcess:
        port = free_port()
        self.urls.append(f"http://127.0.0.1:{port}")
        return await self._node(stack, name, "--roles", roles, "--port", str(port))

    async def _node(
        self, stack: AsyncExitStack, name: str, *args: str, environ: Mapping[str, str] | None = None
    ) -> NodeProcess:
        door = await self.proxy.ask(do="open", door=name)
        url = f"postgresql://postgres@127.0.0.1:{door}/chaos"
        node = NodeProcess(
            name,
            *args,
            "--store",
            url,
            directory=self.directory,
            time=self.time,
            history=self.users,
            zygote=self.zygote,
            environ={**self.environ, **(environ or {})},
        )
        stack.push_async_callback(node.bury)
        return node

    async def ready(self) -> None:
        """All have registered, and the APIs answer."""
        wanted = len(self.executors) + self.size.both
        for _ in range(600):
            rows = await self.database.fetch("SELECT count(*) AS n FROM nodes WHERE lost_at IS NULL")
            if rows[0]["n"] >= wanted and all([await _listens(url) for url in self.urls]):
                return
            await asyncio.sleep(0.1)
        raise RuntimeError("the cluster did not start:\n" + "\n".join(node.log()[-1000:] for node in self.nodes))

    async def settled(self, within: float) -> None:
        """Until nothing that is due waits; whether all is well is the checker's business."""
        for _ in range(int(within / 0.5)):
            with contextlib.suppress(OSError):
                rows = await self.database.fetch(
                    "SELECT count(*) AS n FROM runs WHERE parked IS NULL AND due_at < $1", self.time.db_now() - 8000
                )
                if not rows[0]["n"]:
                    return
            await asyncio.sleep(0.5)

    async def stop(self) -> None:
        """All is healed: whoever runs takes part, and ends when told to."""
        rows = await self.database.fetch("SELECT pid FROM nodes WHERE lost_at IS NULL")
        present = {row["pid"] for row in rows}
        for node in [*self.executors, *(node for node in self.apis if node.name.startswith("both"))]:
            if node.pid not in present:
                self._finding(node, "runs, and does not beat")
        for node in self.nodes:
            node.terminate()
        ended = await asyncio.gather(*(node.ended(STOPS_WITHIN / 1000) for node in self.nodes))
        for node, in_time in zip(self.nodes, ended, strict=True):
            if not in_time:
                self._finding(node, f"did not end within {STOPS_WITHIN} ms of SIGTERM, with nothing wrong")

    def excuse_refusals(self, harms: Sequence[Harm]) -> None:
        """Who could not reach the database at its start may say so and end; but only if it could not be reached."""
        for node in self.nodes:
            for at in node.refused:
                way = [msgspec.structs.replace(harm, pid=None) for harm in harms if harm.name in ("", node.name)]
                if not in_trouble(way, None, at - STARTING, at):
                    self._finding(node, "could not reach the database at its start, and that was there")

    def _finding(self, node: NodeProcess, error: str) -> None:
        self.users.append(Crashed(at=self.time.now, node=node.name, error=error))


@asynccontextmanager
async def cluster(size: Size, seed: int, profile: str) -> AsyncIterator[Cluster]:
    directory = Path(tempfile.mkdtemp(prefix="onthedot-chaos-"))
    directory.chmod(0o755)
    try:
        library = find_faketime() if profile == "db_clock" else None
        clock = FakeTime(library, directory / "database.clock") if library is not None else None
        async with AsyncExitStack() as stack:
            pair = profile in FAILOVERS
            one = running_pair(sync=profile == "failover_sync") if pair else running_database(clock=clock)
            database: Database = await stack.enter_async_context(one)
            built = Cluster(directory, size, seed)
            await built.open(stack, database)
            yield built
    finally:
        shutil.rmtree(directory, ignore_errors=True)


async def play(
    seed: int, size: Size, *, profile: str = "mixed", keep: Path | None = None, always: bool = False
) -> tuple[Result, Story]:
    """keep: where to leave logs, history and ledger if there is a violation, or always."""
    async with cluster(size, seed, profile) as built:
        result, record = await _play(built, seed, size, profile)
        story, violations = judge(
            record.history,
            record.ledger,
            timeouts=record.timeouts,
            requests=record.requests,
            harms=record.harms,
            lossy=profile == "failover_async",
        )
        result.excuses = dict(sorted(story.excuses.items()))
        result.violations = violations
        result.figures = figures_of(story, violations, record.harms, result.figures.requests)
        if keep is not None and (violations or always):
            keep_evidence(built.directory, record, keep)
    return result, story


def keep_evidence(directory: Path, record: Record, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(directory, place, ignore=shutil.ignore_patterns("*.clock", "*.point"))
    lines = [msgspec.json.encode(event) for event in record.history]
    (place / "history.jsonl").write_bytes(b"\n".join(lines))
    (place / "ledger.json").write_bytes(msgspec.json.encode(record.ledger))


async def _play(built: Cluster, seed: int, size: Size, profile: str) -> tuple[Result, Record]:
    rng = random.Random(seed)
    await built.ready()
    port = (await built.receiver.ask())["port"]
    asking = Asking(built.urls, random.Random(rng.getrandbits(64)), built.users, lambda: built.time.now)
    nemesis = Nemesis(
        kinds=PROFILES[profile],
        executors=built.executors,
        apis=built.apis,
        twin=built.twin,
        database=built.database,
        proxy=built.proxy,
        receiver=built.receiver,
        time=built.time,
        history=built.users,
        rng=random.Random(rng.getrandbits(64)),
        longest_outage=size.longest_outage,
    )
    async with asking:
        workload = Workload(
            asking,
            size.load,
            url=f"http://127.0.0.1:{port}",
            time=built.time,
            history=built.users,
            rng=random.Random(rng.getrandbits(64)),
        )
        enough = asyncio.Event()
        playing = asyncio.create_task(workload.play(enough))
        await asyncio.sleep(size.calm)
        await nemesis.rage(size.seconds, size.gap)
        await asyncio.sleep(size.quiet / 2)
        enough.set()
        await workload.end(playing)
    await asyncio.sleep(size.quiet / 2)
    await built.settled(60)
    await built.stop()
    built.excuse_refusals(nemesis.harms)
    record = await read_record(
        built.database.url,
        time=built.time,
        users=built.users,
        harms=nemesis.harms,
        received=built.received,
        requests=asking.requests,
    )
    requests = {"asked": asking.asked, "unanswered": asking.unanswered, "unavailable": asking.unavailable}
    requests["given up"] = asking.given_up
    empty = figures_of(Story([], record.ledger), [], [], requests)
    result = Result(
        seed=seed,
        profile=profile,
        figures=empty,
        violations=[],
        harms=record.harms,
        not_run=nemesis.not_run,
        seconds=built.time.now / 1000,
    )
    return result, record


def _write_settings(directory: Path) -> None:
    """The nodes' onthedot.toml: functions and the program that jobs may name."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    (directory / "onthedot.toml").write_text(
        f"functions = ['{FUNCTION}']\n\n[commands.{COMMAND}]\nargv = ['{sys.executable}', '-m', 'proof.chaos.ring']\n"
        f"env = {{ PYTHONPATH = '{path}' }}\n"
    )


async def _listens(url: str) -> bool:
    host, _, port = url.removeprefix("http://").partition(":")
    try:
        _, writer = await asyncio.open_connection(host, int(port))
    except OSError:
        return False
    writer.close()
    return True
