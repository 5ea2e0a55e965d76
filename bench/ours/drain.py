"""How many due runs per second a node takes, runs and records."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from bench.contest import Cost, quantiles
from bench.ours.parts import Meter, create, in_process, opened, running, spec, webhooks, workers
from bench.ours.seeding import analyze, pending_jobs, runs_of
from bench.ours.sizes import Sizes
from onthedot.model.run import Outcome
from onthedot.model.targets import FunctionTarget, Target, WebhookTarget
from onthedot.targets import Call, EgressRule, Kind, Targets
from onthedot.targets.contract import Ended
from onthedot.targets.webhook.kind import Webhooks

__all__ = ["bare_webhooks", "drain", "drain_and_claim", "drain_runs", "drain_target", "drain_webhooks", "drain_workers"]

NOOP = {"type": "function", "function": "noop"}
FUNCTIONS = "bench.ours.functions"
PATIENCE = 500.0
WARMING = 60.0


async def _noop() -> None:
    """Nothing."""


async def drain(store: str, n: int, pending: int = 0) -> dict[str, Any]:
    """One-off jobs of an in-process function, all due: each is a job of its own that ends with its run."""
    return await drain_target(store, n, in_process(noop=_noop), NOOP, pending=pending)


async def drain_and_claim(store: str, n: int) -> dict[str, Any]:
    """A drain, and once more a hundred at a time: a 99th percentile stands on hundreds of claims, not on twenty."""
    drained = await drain(store, n)
    small = await drain_target(store, n, in_process(noop=_noop), NOOP, concurrency=100, next_job_count=100)
    return {
        **drained,
        "claim_ms": small["claim_ms"],
        "claims": small["claims"],
        "claim_of_1000_ms": drained["claim_ms"],
    }


async def drain_runs(store: str, n: int) -> dict[str, Any]:
    """Runs of one job, all due: as much as a queue keeps of a task, and a ledger row each."""
    return await drain_target(store, n, in_process(noop=_noop), NOOP, one_job=True)


async def drain_workers(store: str, n: int, processes: int = 2) -> dict[str, Any]:
    """The same through worker processes, which are there before the clock starts: the peers have none to start."""
    target = {"type": "function", "function": f"{FUNCTIONS}:noop"}
    return await drain_target(store, n, workers(processes), target, processes=processes)


async def drain_webhooks(store: str, n: int, echo: str) -> dict[str, Any]:
    return await drain_target(store, n, webhooks(), _webhook(echo))


async def drain_target(
    url: str,
    n: int,
    targets: Targets,
    target: dict[str, Any],
    *,
    pending: int = 0,
    one_job: bool = False,
    processes: int = 0,
    **settings: Any,
) -> dict[str, Any]:
    """`processes`: functions run in so many, and what these use is counted with the node's own CPU."""
    async with opened(url, targets) as (store, service):
        if pending:
            await pending_jobs(url, service, pending, target)
        if one_job:
            await runs_of(url, service, n, target)
        else:
            due = spec({"in": "1ms"}, target)
            await create(service, (due for _ in range(n)))
        await analyze(url)
        meter = Meter(store, n)
        sizes = await Sizes.of(url)
        cost, own = Cost(), 0.0

        async def ready() -> None:
            nonlocal cost, own
            await _warmed(targets, processes)
            cost, own = Cost(os.getpid() if processes else None), time.process_time()

        async with running(meter, targets, ready, **settings):
            async with asyncio.timeout(PATIENCE):
                await meter.all.wait()
            spent = {**cost.per_run(n), "node_cpu_us_per_run": (time.process_time() - own) / n * 1e6}
            return {
                "rate": meter.rate,
                **spent,
                "claim_ms": quantiles(meter.claims_ms),
                "finish_ms": quantiles(meter.finishes_ms),
                "claims": len(meter.claims_ms),
                "batch": n / len(meter.finishes_ms),
                "rss_mb": _resident_mb(),
                "bytes": await sizes.per_run(n),
            }


async def _warmed(targets: Targets, processes: int) -> None:
    """Until each process has run something, and is known to be quick."""
    seen: set[Any] = set()
    async with asyncio.timeout(WARMING):
        while len(seen) < processes:
            seen |= {*await asyncio.gather(*(_called(targets, "whereabouts") for _ in range(8 * processes)))}
    await asyncio.gather(*(_called(targets, "noop") for _ in range(32 * processes)))


async def _called(targets: Targets, name: str) -> Any:
    target = FunctionTarget(function=f"{FUNCTIONS}:{name}")
    return (await _sent(targets.kind_of(target), target)).detail.get("result")


async def _sent(kind: Kind, target: Target, number: int = 0) -> Outcome:
    """One call; again if it was not begun, as the engine would."""
    while True:
        call = Call(run_id=f"1-{number}", job_id=1, slot=number, attempt=1, target=target)
        answer: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        kind.start(call, time.monotonic(), answer.set_result)
        outcome = (await answer).outcome
        if outcome is not None:
            break
    if not outcome.ok:
        raise RuntimeError(outcome.error)
    return outcome


async def bare_webhooks(store: str, n: int, echo: str, at_once: int = 1000) -> dict[str, Any]:
    """The same client without engine and store: `at_once` loops that send one after the other."""
    rule = EgressRule.parse(allow_private=True)
    target = WebhookTarget(url=echo, body={"a": 1})
    left = iter(range(n))

    async def loop(sender: Webhooks) -> None:
        for number in left:
            await _sent(sender, target, number)

    async with Webhooks(rule) as sender:
        cost, began = Cost(), time.perf_counter()
        await asyncio.gather(*(loop(sender) for _ in range(min(at_once, n))))
        return {"rate": n / (time.perf_counter() - began), **cost.per_run(n)}


def _webhook(echo: str) -> dict[str, Any]:
    return {"type": "webhook", "url": echo, "body": {"a": 1}}


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
