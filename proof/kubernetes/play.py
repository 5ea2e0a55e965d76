"""One play: a stand-in for an API server, two nodes on PostgreSQL, and as many one-off jobs as wanted, due one after
the other.

Meanwhile each node is killed once and started again, and the API server is restarted twice, once with what it knew of
old versions compacted. In the end the processes that its kubelet has started are compared with the runs that the API
shows: each Job was started once, each run has its own result, and no Job is unknown.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from proof.two_nodes import TwoNodes, strike_in_turn
from tests.services.kubernetes_api import KubernetesServer, running_kubernetes
from tests.services.postgres import running_postgres

__all__ = ["PlayedJobs", "play"]

AHEAD = 3.0
SCRIPT = 'sleep 1; echo "\\"$ONTHEDOT_RUN_ID\\""'
TARGET = {"type": "kubernetes", "image": "alpine:3", "args": ["sh", "-c", SCRIPT]}
POLICY = {"timeout": "2m", "retry": {"attempts": 20, "backoff": "200ms", "factor": 2, "max": "2s"}}


@dataclass(frozen=True)
class PlayedJobs:
    wanted: int
    done: int
    lost: int  # runs of which nothing was started
    foreign: int  # Jobs of no run
    wrong: int  # runs whose result is not their own
    twice: int  # Jobs that were started more than once
    jobs: int
    repeats: int  # Jobs of later tries
    adopted: int  # runs that were claimed or adopted more often than they were tried
    restarts: int
    kills: int
    seconds: float

    @property
    def holds(self) -> bool:
        return self.done == self.wanted and not (self.lost or self.foreign or self.wrong or self.twice)

    def told(self) -> str:
        return (
            f"{self.wanted} runs, {self.done} done, API server restarted {self.restarts} times,"
            f" nodes killed {self.kills} times: {self.lost} lost, {self.jobs} Jobs,"
            f" {self.repeats} of them repeats with the same run id, {self.foreign} unknown,"
            f" {self.wrong} wrong results, {self.twice} Jobs started twice,"
            f" {self.adopted} runs claimed more than once, in {self.seconds:.0f} s"
        )


class _Struck:
    """Its restarts as the proofs ask for them: `kill` is the one after which old versions are gone."""

    def __init__(self, server: KubernetesServer) -> None:
        self._server = server

    def restart(self, *, kill: bool = False) -> None:
        self._server.stop()
        if kill:
            self._server.call(self._server.cluster.compact)
        self._server.start()


async def play(wanted: int, rate: float) -> PlayedJobs:
    began = time.monotonic()
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="onthedot-kubernetes-")))
        server = stack.enter_context(running_kubernetes(place))
        postgres = await asyncio.to_thread(stack.enter_context, running_postgres())
        setting = {"kubeconfig": str(server.kubeconfig()), "images": ["alpine:*"], "concurrency": 8}
        cluster = TwoNodes(place, postgres, "kubernetes", {"ONTHEDOT_KUBERNETES": json.dumps(setting)})
        stack.callback(cluster.kill)
        for number in range(2):
            await cluster.start(number)
        await asyncio.to_thread(cluster.create, TARGET, POLICY, wanted, rate, time.time() + AHEAD)
        await strike_in_turn(cluster, _Struck(server), time.monotonic() + AHEAD, wanted / rate)
        runs = await cluster.ended(wanted, within=120 + wanted)
        results = {run_id: await asyncio.to_thread(cluster.ask, "GET", f"/v1/runs/{run_id}") for run_id in runs}
        started = dict(server.cluster.started)
    of_runs = {name.rpartition("-")[0] for name in started}
    return PlayedJobs(
        wanted=wanted,
        done=sum(status == "DONE" for status in runs.values()),
        lost=len(set(runs) - of_runs),
        foreign=len(of_runs - set(runs)),
        wrong=sum(run.get("result") != run_id for run_id, run in results.items()),
        twice=sum(count > 1 for count in started.values()),
        jobs=len(started),
        repeats=len(started) - len(of_runs),
        adopted=sum(run["attempt"] > len(run["attempts"]) for run in results.values()),
        restarts=2,
        kills=2,
        seconds=time.monotonic() - began,
    )
