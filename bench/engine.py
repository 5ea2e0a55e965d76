"""What a run costs outside the store: the real engine and targets around a store that answers at once or a while later.

`python -m bench.engine [--runs 50000] [--target async|sync|none] [--answers-after 15] [--listen] [--profile]` prints µs
of CPU a run. A store that answers at once is asked for more before anything has ended, which no database does.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import random
import sys
import time
from collections.abc import Sequence
from typing import Any

import uvloop

from onthedot.clock import SystemClock
from onthedot.engine import EngineSettings, Node
from onthedot.engine.waiting import first_of
from onthedot.model.decoding import convert
from onthedot.model.job import JobSpec
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.model.targets import FunctionTarget
from onthedot.store import Beat, Claim, Finished, FinishReport, PolledOrders, WaitingSeen, Want
from onthedot.targets import Call, InProcessFunctions, Kind, Targets, build_targets
from onthedot.targets.contract import Cause, Done, Ended, Handle, Profile, Stop
from onthedot.telemetry import telemetry
from onthedot.telemetry.log import log_events
from onthedot.telemetry.metrics import Metrics

CONCURRENCY = 1000


class _Memory:
    """As much of a store as a drain asks for. A claim's runs are made beforehand: making them is the store's part."""

    def __init__(self, n: int, seconds: float) -> None:
        self._seconds = seconds
        spec = convert(
            {"schedule": {"in": "1ms"}, "target": {"type": "function", "function": "noop"}},
            JobSpec,
        )
        now = self._now()
        self._due = [_run(number, now, spec) for number in range(n, 0, -1)]
        self._left = n
        self._held: dict[str, ClaimedRun] = {}
        self.returned = 0
        self.claims = self.finishes = 0
        self.all = asyncio.Event()

    @staticmethod
    def _now() -> int:
        return time.time_ns() // 1_000_000

    async def now(self) -> int:
        return self._now()

    async def callback_secret(self, proposal: str) -> str:
        return proposal

    async def register(self, info: Any) -> int:
        return self._now()

    async def poll_orders(self, node: str) -> PolledOrders:
        return PolledOrders(now_us=self._now() * 1000, orders=[])

    async def beat(self, node: str, load: Any) -> Beat:
        return Beat(alive=True, now=self._now(), peers=[])

    async def claim_each(self, node: str, wants: Sequence[Want], **named: Any) -> list[Claim]:
        await asyncio.sleep(self._seconds)
        return [self._claim(want) for want in wants]

    def _claim(self, want: Want) -> Claim:
        runs = [] if "function:noop" not in want.offers else self._due[: -want.limit - 1 : -1]
        if runs:
            del self._due[-len(runs) :]
            self._held.update((run.id, run) for run in runs)
            self.claims += 1
        return Claim(now=self._now(), runs=runs, skipped=0, next_ready=None)

    async def finish(self, node: str, results: Sequence[Finished]) -> FinishReport:
        await asyncio.sleep(self._seconds)
        self.finishes += 1
        self._left -= len(results)
        for result in results:
            del self._held[result.run.id]
        if not self._left:
            self.all.set()
        return FinishReport(recorded=len(results), refused=[], repeated=[])

    async def held(self, node: str) -> list[tuple[str, int]]:
        return [(run.id, run.token) for run in self._held.values()]

    async def give_back(self, node: str, fences: Sequence[tuple[str, int]]) -> None:
        self.returned += len(fences)
        self._due.extend(self._held.pop(run_id) for run_id, _ in fences)

    async def waited_for(self, ranges: Any, most: int) -> WaitingSeen:
        return WaitingSeen(requires=[], expired=False)

    def listen(self, callback: Any) -> Any:
        return lambda: None

    def __getattr__(self, name: str) -> Any:
        async def nothing(*args: Any) -> Any:
            return []

        return nothing


def _run(number: int, now: int, spec: JobSpec) -> ClaimedRun:
    return ClaimedRun(
        id=f"{number}-{now}",
        tenant=1,
        job_id=number,
        version=1,
        spec=spec,
        kind="scheduled",
        slot=now,
        due_at=now,
        token=1,
        tries=0,
        losses=0,
        first_claimed_at=now,
        recurring=False,
    )


class _Nowhere(Kind):
    """A kind that is done at once: the engine alone."""

    spec = FunctionTarget
    profile = Profile(capacity=CONCURRENCY)
    _ok = Outcome(kind="ok")

    def capabilities(self) -> list[str]:
        return ["function:noop"]

    def start(self, call: Call, at: float, done: Done) -> Handle:
        asyncio.get_running_loop().call_soon(done, Ended(self._ok, at))
        return self

    def stop(self, cause: Cause) -> Stop:
        return Stop.STOPPING

    def recorded(self) -> None:
        """Nothing was started."""


def _in_process(target: str) -> Targets:
    async def later() -> None:
        """Nothing."""

    def now() -> None:
        """Nothing."""

    offered = InProcessFunctions(threads=CONCURRENCY, clock=SystemClock())
    offered.add("noop", later if target == "async" else now)
    return build_targets(in_process=offered)


async def _measure(n: int, target: str, seconds: float) -> dict[str, float]:
    store: Any = _Memory(n, seconds)
    targets = Targets([_Nowhere()]) if target == "none" else _in_process(target)
    settings = EngineSettings(concurrency=CONCURRENCY, next_job_count=CONCURRENCY)
    node = Node(store=store, targets=targets, clock=SystemClock(), rng=random.Random(1), settings=settings)
    async with targets:
        began, cpu = time.perf_counter(), time.process_time()
        async with node:
            await first_of(store.all.wait(), node.wait())
            spent, took = time.process_time() - cpu, time.perf_counter() - began
    return {
        "us_per_run": spent / n * 1e6,
        "rate": n / took,
        "claims": store.claims,
        "finishes": store.finishes,
        "returned": store.returned,
    }


def main() -> None:
    asked = argparse.ArgumentParser(prog="bench.engine", description=__doc__)
    asked.add_argument("--runs", type=int, default=50_000)
    asked.add_argument("--target", choices=("async", "sync", "none"), default="async")
    asked.add_argument("--answers-after", type=float, default=0.0, help="ms that a claim and a finish take")
    asked.add_argument("--listen", action="store_true", help="log and metrics listen, as in a server")
    asked.add_argument("--profile", action="store_true", help="of the loop that beats")
    chosen = asked.parse_args()
    if chosen.listen:
        log_events(telemetry)
        Metrics().listen(telemetry)
    profile = cProfile.Profile() if chosen.profile else None
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        figures = (
            profile.runcall(runner.run, _measure(chosen.runs, chosen.target, chosen.answers_after / 1000))
            if profile
            else runner.run(_measure(chosen.runs, chosen.target, chosen.answers_after / 1000))
        )
    if profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)
    sys.stdout.write("  ".join(f"{name} {value:,.1f}" for name, value in figures.items()) + "\n")


if __name__ == "__main__":
    main()
