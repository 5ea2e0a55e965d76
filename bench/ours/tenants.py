"""Many tenants and owners at the API, each with keys and jobs of their own, while jobs fire: 100 requests a second.

One `onthedot serve` does both. Requests come with the keys of random tenants, so that next to none finds its key in the
server's memory, which keeps it for two seconds.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import asyncpg

from bench.contest import in_time, quantiles
from bench.ours.mix import CONNECTIONS, Step, play_step
from bench.ours.parts import opened, spec, webhooks
from bench.ours.seeding import analyze
from bench.ours.serving import serving
from bench.ours.wire import request, wired
from onthedot.errors import OnTheDotError
from onthedot.model.instant import format_instant
from onthedot.model.job import JobSpec
from onthedot.model.key import ApiKeySpec
from onthedot.service import Service

__all__ = ["tenants"]

AT_ONCE = 8
LEAD = 2.0
"""Seconds to store the jobs that fire, before the first of them is due."""
LATER: dict[str, Any] = {
    "schedule": {"in": "1d"},
    "target": {"type": "webhook", "url": "http://127.0.0.1:9/", "body": {"a": 1}},
}
_RECORDED = "SELECT status, lateness_ms FROM history WHERE slot >= $1 AND slot < $2"


@dataclass(frozen=True)
class Tenant:
    number: int
    key: str
    owners: list[str]
    jobs: list[int]


class Requests:
    """40 of 100 read a job, 25 list an owner's jobs, 20 create one (1,728,000 a day), 15 rename one."""

    def __init__(self, tenants: list[Tenant], rng: random.Random) -> None:
        self._tenants, self._rng = tenants, rng

    def next(self) -> tuple[str, bytes]:
        dice, tenant = self._rng.randrange(100), self._rng.choice(self._tenants)
        owner, job = self._rng.choice(tenant.owners), self._rng.choice(tenant.jobs)
        login = f"authorization: Bearer {tenant.key}\r\n"
        if dice < 40:
            return "get", request("GET", f"/v1/jobs/{job}", more=login)
        if dice < 65:
            return "list by owner", request("GET", f"/v1/jobs?owner={quote(owner)}&limit=50", more=login)
        if dice < 85:
            return "create", request("POST", "/v1/jobs", {**LATER, "owner": owner}, more=login)
        name = {"name": f"Renamed {self._rng.randrange(10**6)}"}
        return "patch", request("PATCH", f"/v1/jobs/{job}", name, "application/merge-patch+json", login)


async def tenants(
    store: str,
    echo: str,
    tenants: int,
    owners: int,
    jobs: int,
    rate: int,
    firings: int,
    seconds: int,
    lead: float = 1.0,
) -> dict[str, Any]:
    """`owners` and `jobs` in all, `rate` requests and `firings` firings a second. `lead`: so many times more time to
    store the jobs that fire."""
    began = time.perf_counter()
    async with opened(store, webhooks()) as (_, service):
        there = await _tenants(service, tenants, owners // tenants, jobs // tenants)
        await analyze(store)
        seeded = time.perf_counter() - began
        async with serving(store, roles="api,executor", environ={"ONTHEDOT_EGRESS_ALLOW": "127.0.0.0/8"}) as server:
            wires = [await wired(server.port) for _ in range(CONNECTIONS)]
            asked = Requests(there, random.Random(1))
            first = await _firing(service, there, firings, echo, lead * LEAD)
            await play_step(wires, asked, server, rate, 1)  # statements get prepared
            await asyncio.sleep(first / 1000 - time.time())
            step = await play_step(wires, asked, server, rate, seconds)
            fired = await _fired(store, first, first + seconds * 1000, firings * seconds)
    done = [row["lateness_ms"] for row in fired if row["status"] == "done"]
    return {
        "requests_ms": step.figures,
        "errors": len(step.errors),
        "first_errors": step.errors[:20],
        "answered_share": len(step.late_ms) / (rate * seconds),
        "fired_share": len(done) / (firings * seconds),
        "firings_ms": quantiles(done),
        "seeded_seconds": seeded,
        "client_busy": step.own_busy,
        **step.server,
        "table": {
            "head": ["", "number", "p50 ms", "p99 ms", "max ms", "errors"],
            "rows": [*_rows(step), ["firings (lateness)", len(fired), *_shares(done), len(fired) - len(done)]],
        },
    }


def _rows(step: Step) -> list[list[object]]:
    kinds = sorted(step.by_kind.items())
    rows = [[kind, len(took), *_shares(took), step.failed[kind]] for kind, took in kinds]
    return [*rows, ["all requests", len(step.late_ms), *_shares(step.late_ms), len(step.errors)]]


def _shares(values: list[float]) -> list[object]:
    found = quantiles(values)
    return [found.get(share) for share in ("p50", "p99", "max")]


async def _tenants(service: Service, count: int, owners: int, jobs: int) -> list[Tenant]:
    """Each with a key, `owners` owners and `jobs` jobs, which are theirs in turn."""
    some = asyncio.Semaphore(AT_ONCE)

    async def made(number: int) -> Tenant:
        name, named = f"tenant-{number}", [f"owner-{number}-{owner}" for owner in range(owners)]
        async with some:
            key = (await service.create_key(ApiKeySpec(name="bench", scope="write", tenant=name))).key
            tenant = await service.tenant_named(name)
            specs = [spec(**LATER, owner=named[job % owners]) for job in range(jobs)]
            return Tenant(tenant, key, named, await _created(service, tenant, specs))

    return list(await asyncio.gather(*map(made, range(count))))


async def _firing(service: Service, tenants: list[Tenant], count: int, echo: str, lead: float) -> int:
    """Jobs that fire once a second each, spread evenly over it and over the tenants; when the first of them does."""
    first = int((time.time() + lead) * 1000)
    hook = {"type": "webhook", "url": echo, "body": {"a": 1}}

    async def made(number: int) -> None:
        every = {"every": "1s", "start": format_instant(first + number * 1000 // count)}
        await _created(service, tenants[number % len(tenants)].number, [spec(every, hook)])

    await asyncio.gather(*map(made, range(count)))
    in_time(first / 1000, 0.0)
    return first


async def _created(service: Service, tenant: int, specs: list[JobSpec]) -> list[int]:
    """The ids of the jobs."""
    ids = []
    for answer in await service.create_many(tenant, specs):
        if isinstance(answer, OnTheDotError):
            raise answer
        ids.append(answer.id)
    return ids


async def _fired(store: str, first: int, last: int, expected: int) -> list[asyncpg.Record]:
    """What the ledger has of these seconds; the last ones get half a minute to be written."""
    connection = await asyncpg.connect(store)
    try:
        async with asyncio.timeout(30):
            while len(rows := await connection.fetch(_RECORDED, first, last)) < expected:
                await asyncio.sleep(0.2)
    except TimeoutError:
        rows = await connection.fetch(_RECORDED, first, last)
    finally:
        await connection.close()
    return list(rows)
