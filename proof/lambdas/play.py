"""One play: moto, two nodes on PostgreSQL, and as many one-off jobs as wanted, due one after the other.

Meanwhile each node is killed once and started again, and moto is restarted twice, once by SIGKILL. In the end the calls
that it has written down are compared with the runs that the API shows, and each result with its run.
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

from proof.lambdas.peer import running_lambda
from proof.two_nodes import TwoNodes, strike_in_turn
from tests.services.postgres import running_postgres

__all__ = ["Played", "play"]

AHEAD = 3.0
TARGET = {"type": "lambda", "function": "echo", "payload": {"run": {"$": "run_id"}}}
POLICY = {"timeout": "30s", "retry": {"attempts": 100, "backoff": "200ms", "factor": 2, "max": "2s"}}


@dataclass(frozen=True)
class Played:
    wanted: int
    done: int
    lost: int  # runs that never reached the function
    foreign: int  # calls with an id that no run has
    wrong: int  # runs whose result is not their own
    calls: int
    repeats: int
    restarts: int
    kills: int
    seconds: float

    @property
    def holds(self) -> bool:
        return self.done == self.wanted and not self.lost and not self.foreign and not self.wrong

    def told(self) -> str:
        return (
            f"{self.wanted} runs, {self.done} done, moto restarted {self.restarts} times, nodes killed {self.kills}"
            f" times: {self.lost} lost, {self.calls} calls, {self.repeats} of them repeats with the same run id,"
            f" {self.foreign} with an unknown id, {self.wrong} wrong results, in {self.seconds:.0f} s"
        )


async def play(wanted: int, rate: float) -> Played:
    began = time.monotonic()
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="onthedot-lambdas-")))
        peer = await asyncio.to_thread(stack.enter_context, running_lambda(place))
        postgres = await asyncio.to_thread(stack.enter_context, running_postgres())
        env = {
            "ONTHEDOT_AWS": json.dumps({"region": "eu-west-1", "endpoint": peer.url}),
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }
        cluster = TwoNodes(place, postgres, "lambdas", env)
        stack.callback(cluster.kill)
        for number in range(2):
            await cluster.start(number)
        await asyncio.to_thread(cluster.create, TARGET, POLICY, wanted, rate, time.time() + AHEAD)
        await strike_in_turn(cluster, peer, time.monotonic() + AHEAD, wanted / rate)
        runs = await cluster.ended(wanted, within=120 + wanted / 10)
        results = {run_id: await asyncio.to_thread(cluster.ask, "GET", f"/v1/runs/{run_id}") for run_id in runs}
        lines = peer.book.read_bytes().splitlines()
    called = Counter(json.loads(line)["run"] for line in lines)
    return Played(
        wanted=wanted,
        done=sum(status == "DONE" for status in runs.values()),
        lost=len(set(runs) - set(called)),
        foreign=len(set(called) - set(runs)),
        wrong=sum(run.get("result") != {"run": run_id} for run_id, run in results.items()),
        calls=called.total(),
        repeats=called.total() - len(called),
        restarts=2,
        kills=2,
        seconds=time.monotonic() - began,
    )
