"""On the Dot, put together for a measurement: the product's own parts, with clocks at the two ends of the store."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from onthedot.clock import SystemClock
from onthedot.engine import EngineSettings, Node
from onthedot.errors import OnTheDotError
from onthedot.launcher.collector import calm_collector
from onthedot.model.decoding import convert
from onthedot.model.job import JobSpec
from onthedot.service import DEFAULT_TENANT, Service
from onthedot.settings import Settings, load_settings
from onthedot.store import Store, open_store
from onthedot.targets import EgressRule, InProcessFunctions, Targets, build_targets

__all__ = ["CONCURRENCY", "Meter", "create", "in_process", "opened", "running", "spec", "webhooks", "workers"]

CONCURRENCY = 1000
BATCH = 5000


def in_process(**functions: Callable[..., Any]) -> Targets:
    """Functions of an embedded Scheduler."""
    offered = InProcessFunctions(threads=CONCURRENCY, clock=SystemClock())
    for name, function in functions.items():
        offered.add(name, function)
    return build_targets(in_process=offered)


def webhooks() -> Targets:
    return build_targets(egress=EgressRule.parse(allow_private=True))


def workers(processes: int) -> Targets:
    """Functions in worker processes, as a node runs those of a jobs file."""
    return build_targets(
        Settings(functions=("bench.ours.functions",), function_processes=processes),
        import_paths=[str(Path(__file__).resolve().parent.parent.parent)],
    )


def spec(schedule: dict[str, Any], target: dict[str, Any], **more: Any) -> JobSpec:
    return convert({"schedule": schedule, "target": target, **more}, JobSpec)


@asynccontextmanager
async def opened(url: str, targets: Targets, **settings: str) -> AsyncIterator[tuple[Store, Service]]:
    clock = SystemClock()
    store = await open_store(url, clock)
    await store.ensure_partitions()  # what the first node of all does once: as much a part of the schema as the tables
    service = Service(store, targets, clock, load_settings({"store": url, **settings}, environ={}))
    try:
        yield store, service
    finally:
        await service.close()
        await store.close()


async def create(service: Service, specs: Iterable[JobSpec]) -> None:
    batch: list[JobSpec] = []
    for item in specs:
        batch.append(item)
        if len(batch) == BATCH:
            await _create(service, batch)
            batch = []
    await _create(service, batch)


async def _create(service: Service, batch: Sequence[JobSpec]) -> None:
    answers = await service.create_many(DEFAULT_TENANT, batch)
    for answer in answers:
        if isinstance(answer, OnTheDotError):
            raise answer


class Meter:
    """Stands before the store: when the first claim was sent, when the n-th run was recorded, how long claims took.

    A count per batch costs nothing; a count per run would be measured with the run.
    """

    def __init__(self, store: Store, n: int) -> None:
        self.recorded = 0
        self.began = self.ended = 0.0
        self.claims_ms: list[float] = []
        self.finishes_ms: list[float] = []
        self.failed: str | None = None
        self.all = asyncio.Event()
        self._store = store
        self._n = n

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def claim_each(self, *args: Any, **named: Any) -> Any:
        before = time.perf_counter()
        claims = await self._store.claim_each(*args, **named)
        if any(claim.runs for claim in claims):
            self.began = self.began or before
            self.claims_ms.append((time.perf_counter() - before) * 1000)
        return claims

    async def finish(self, node: str, results: Sequence[Any]) -> Any:
        before = time.perf_counter()
        report = await self._store.finish(node, results)
        self.finishes_ms.append((time.perf_counter() - before) * 1000)
        self.recorded += report.recorded
        for item in results:
            if not item.outcome.ok:
                self.failed = self.failed or str(item.outcome.error)
                self.all.set()
        if self.recorded >= self._n and not self.ended:
            self.ended = time.perf_counter()
            self.all.set()
        return report

    @property
    def rate(self) -> float:
        if self.failed is not None:
            raise RuntimeError(f"a run failed, which is not what is measured: {self.failed}")
        return self._n / (self.ended - self.began)


@asynccontextmanager
async def running(
    store: Any, targets: Targets, ready: Callable[[], Awaitable[None]] | None = None, **settings: Any
) -> AsyncIterator[Node]:
    """`ready` is awaited when the targets are there and the node has not started yet."""
    chosen = {"concurrency": CONCURRENCY, "next_job_count": CONCURRENCY, **settings}
    async with targets:
        calm_collector()  # as a server does
        if ready is not None:
            await ready()
        node = Node(
            store=store,
            targets=targets,
            clock=SystemClock(),
            rng=random.Random(),
            settings=EngineSettings(**chosen),
        )
        async with node:
            yield node
