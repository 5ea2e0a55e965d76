"""One play: a container engine, two nodes on PostgreSQL, and as many one-off jobs as wanted, due one after the other.

Meanwhile each node is killed once and started again, and the engine is restarted twice, once by SIGKILL. Containers are
kept, so that in the end those that the engine has are compared with the runs that the API shows: each run has the
container of its last try, with its own id in its output, and none has one that another run does not know.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.services.container_engine import IMAGE, EngineServer, running_engine
from tests.services.ports import free_port
from tests.services.postgres import PostgresServer, running_postgres
from tests.services.process import NodeProcess
from tests.services.waiting import until

__all__ = ["Played", "play"]

AHEAD = 3.0
BATCH = 1000
SCRIPT = 'sleep 1; echo "\\"$ONTHEDOT_RUN_ID\\""'
POLICY = {"timeout": "2m", "retry": {"attempts": 20, "backoff": "200ms", "factor": 2, "max": "2s"}}


@dataclass(frozen=True)
class Played:
    wanted: int
    done: int
    lost: int  # runs without a container that ended well
    foreign: int  # containers of no run
    wrong: int  # runs whose result is not their own
    silent: int  # … without a result, because the engine was down when the container printed it, and does not have it
    twice: int  # containers that were started more than once: each prints one line
    containers: int
    repeats: int  # containers of later tries
    adopted: int  # runs that were claimed or adopted more often than they were tried
    restarts: int
    kills: int
    seconds: float

    @property
    def holds(self) -> bool:
        return self.done == self.wanted and not self.lost and not self.foreign and not self.wrong and not self.twice

    def told(self) -> str:
        return (
            f"{self.wanted} runs, {self.done} done, engine restarted {self.restarts} times, nodes killed {self.kills}"
            f" times: {self.lost} lost, {self.containers} containers, {self.repeats} of them repeats with the same run"
            f" id, {self.foreign} unknown, {self.wrong} wrong results, {self.silent} without one,"
            f" {self.twice} containers started twice, {self.adopted} runs claimed more than once,"
            f" in {self.seconds:.0f} s"
        )


async def play(wanted: int, rate: float) -> Played:
    began = time.monotonic()
    with ExitStack() as stack:
        engine = await asyncio.to_thread(stack.enter_context, running_engine())
        postgres = await asyncio.to_thread(stack.enter_context, running_postgres())
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="onthedot-containers-")))
        cluster = _Cluster(place, postgres, engine)
        stack.callback(cluster.kill)
        for number in range(2):
            await cluster.start(number)
        await asyncio.to_thread(cluster.create, wanted, rate)
        await _trouble(cluster, engine, wanted / rate)
        runs = await cluster.ended(wanted)
        results = {run_id: await asyncio.to_thread(cluster.run, run_id) for run_id in runs}
        listed = await asyncio.to_thread(engine.ask, "GET", "/containers/json?all=1")
        odd = [run_id for run_id, run in results.items() if run.get("result") != run_id]
        printed = {name: await asyncio.to_thread(_lines, engine, name) for name in _names(listed)}
        silent = [run_id for run_id in odd if not any(printed[name] for name in _names(listed, run_id))]
    of_runs = Counter(each["Labels"]["onthedot.run"] for each in listed)
    ended_well = {each["Labels"]["onthedot.run"] for each in listed if each["Status"].startswith("Exited (0)")}
    return Played(
        wanted=wanted,
        done=sum(status == "DONE" for status in runs.values()),
        lost=len(set(runs) - ended_well),
        foreign=len(set(of_runs) - set(runs)),
        wrong=len(odd) - len(silent),
        silent=len(silent),
        twice=sum(lines > 1 for lines in printed.values()),
        containers=of_runs.total(),
        repeats=of_runs.total() - len(of_runs),
        adopted=sum(run["attempt"] > len(run["attempts"]) for run in results.values()),
        restarts=2,
        kills=2,
        seconds=time.monotonic() - began,
    )


def _names(listed: list[dict[str, Any]], run_id: str | None = None) -> list[str]:
    return [each["Names"][0] for each in listed if run_id in (None, each["Labels"]["onthedot.run"])]


def _lines(engine: EngineServer, name: str) -> int:
    """That it printed, as far as the engine knows: of what is printed while it is down it never hears."""
    said = engine.ask("GET", f"/containers{name}/logs?stdout=1")
    return said.count(b"\n") if isinstance(said, bytes) else 0


class _Cluster:
    def __init__(self, place: Path, postgres: PostgresServer, engine: EngineServer) -> None:
        self._place = place
        self._store = postgres.create_database("containers")
        setting = {"socket": engine.url, "images": [IMAGE], "concurrency": 8, "memory": "32M"}
        self._env = {"ONTHEDOT_CONTAINERS": json.dumps(setting), "ONTHEDOT_LEASE": "2s"}
        self.nodes: dict[int, NodeProcess] = {}

    async def start(self, number: int) -> None:
        directory = self._place / str(number)
        directory.mkdir(exist_ok=True)
        self.nodes[number] = await NodeProcess.serve(
            "--store", self._store, directory=directory, port=free_port(), env=self._env
        )

    async def replace(self, number: int) -> None:
        self.nodes[number].kill()
        await self.start(number)

    def kill(self) -> None:
        for node in self.nodes.values():
            node.kill()

    def create(self, wanted: int, rate: float) -> None:
        target = {"type": "container", "image": IMAGE, "command": ["sh", "-c", SCRIPT]}
        began = time.time() + AHEAD
        jobs = [
            {"schedule": {"at": _instant(began + number / rate)}, "target": target, "policy": POLICY}
            for number in range(wanted)
        ]
        for first in range(0, wanted, BATCH):
            answers = self._ask("POST", "/v1/jobs/batch", jobs[first : first + BATCH])
            assert all(answer["status"] == 201 for answer in answers), answers[0]

    async def ended(self, count: int) -> dict[str, str]:
        async def all_ended() -> dict[str, str]:
            runs = await asyncio.to_thread(self._runs)
            return runs if len(runs) == count else {}

        return await until(all_ended, f"{count} runs have ended", 120 + count)

    def run(self, run_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("GET", f"/v1/runs/{run_id}")
        return found

    def _runs(self) -> dict[str, str]:
        """Of those that have ended, by id."""
        found: dict[str, str] = {}
        for status in ("DONE", "FAILED", "CANCELLED", "SKIPPED"):
            path = f"/v1/runs?status={status}&limit=500"
            while path:
                page = self._ask("GET", path)
                found |= {run["id"]: run["status"] for run in page["items"]}
                path = page.get("next")
        return found

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        node = self.nodes[max(self.nodes)]
        url = path if path.startswith("http") else node.url + path
        request = urllib.request.Request(url, data=data, method=method, headers={"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())


async def _trouble(cluster: _Cluster, engine: EngineServer, lasts: float) -> None:
    """At a fifth, two fifths … of the firings."""
    part = lasts / 5
    began = time.monotonic() + AHEAD
    strikes: list[Callable[[], Awaitable[None]]] = [
        lambda: cluster.replace(0),
        lambda: asyncio.to_thread(engine.restart),
        lambda: cluster.replace(1),
        lambda: asyncio.to_thread(engine.restart, kill=True),
    ]
    for number, strike in enumerate(strikes, 1):
        await asyncio.sleep(max(0.0, began + number * part - time.monotonic()))
        await strike()


def _instant(seconds: float) -> str:
    milliseconds = round(seconds * 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000)) + f".{milliseconds % 1000:03}Z"
