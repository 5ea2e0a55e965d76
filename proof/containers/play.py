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
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proof.two_nodes import TwoNodes, strike_in_turn
from tests.services.container_engine import IMAGE, EngineServer, running_engine
from tests.services.postgres import running_postgres

__all__ = ["Played", "play"]

AHEAD = 3.0
SCRIPT = 'sleep 1; echo "\\"$ONTHEDOT_RUN_ID\\""'
TARGET = {"type": "container", "image": IMAGE, "command": ["sh", "-c", SCRIPT]}
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
        setting = {"socket": engine.url, "images": [IMAGE], "concurrency": 8, "memory": "32M"}
        cluster = TwoNodes(place, postgres, "containers", {"ONTHEDOT_CONTAINERS": json.dumps(setting)})
        stack.callback(cluster.kill)
        for number in range(2):
            await cluster.start(number)
        await asyncio.to_thread(cluster.create, TARGET, POLICY, wanted, rate, time.time() + AHEAD)
        await strike_in_turn(cluster, engine, time.monotonic() + AHEAD, wanted / rate)
        runs = await cluster.ended(wanted, within=120 + wanted)
        results = {run_id: await asyncio.to_thread(cluster.ask, "GET", f"/v1/runs/{run_id}") for run_id in runs}
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
