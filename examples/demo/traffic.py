"""What people and programs do while you look: timers of orders, runs by hand, a change of mind now and then."""

from __future__ import annotations

import asyncio
import itertools
import random
import urllib.request
from contextlib import suppress

from onthedot.client import AsyncClient
from onthedot.errors import OnTheDotError
from onthedot.model.duration import SECOND, Duration
from onthedot.model.job import JobSpec
from onthedot.model.policy import Policy
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget

__all__ = ["go_on"]

CALM = 5.0
"""Seconds between two events, on the average."""
SELDOM = 5
"""Events between two looks at what should always be under way."""
BY_HAND = ("orders-import", "ledger-main", "demand-forecast")


async def go_on(address: str, ports: dict[str, int]) -> None:
    """Until it is cancelled."""
    dice = random.Random()
    async with AsyncClient(address) as client:
        with suppress(OnTheDotError, OSError):
            await client.create_many([_order("loyalty", "book", 1 + number // 4, ports, dice) for number in range(24)])
        for turn in itertools.count():
            await asyncio.sleep(dice.expovariate(1 / CALM))
            with suppress(OnTheDotError, OSError):
                await _something(client, ports, dice)
            with suppress(OnTheDotError, OSError):
                if turn % SELDOM == 0:
                    await _report(client)
                    await _go_on_with_an_operation(client, dice)


async def _report(client: AsyncClient) -> None:
    """The accountant's machine has done its part."""
    job = await client.get_job_by_key("payroll-export")
    if job.ping_url:
        await asyncio.to_thread(urllib.request.urlopen, job.ping_url, timeout=3)


async def _go_on_with_an_operation(client: AsyncClient, dice: random.Random) -> None:
    """There is always one under way, slow enough to be watched. Only orders: slots from before the last change of a job
    are no part of the proof."""
    if any(each.state == "running" for each in (await client.list_operations(limit=10)).items):
        return
    tag = dice.choice(("gift-wrap", "priority", "quarter-end"))
    await client.start_operation("tag", filter={"ended": False, "tag": "order"}, params={"add": [tag]}, rate=1)


async def _something(client: AsyncClient, ports: dict[str, int], dice: random.Random) -> None:
    if dice.random() < 0.06:
        found = await client.list_jobs(q=dice.choice(BY_HAND), limit=1)
        for job in found.items:
            await client.run_job(job.id)
        return
    system, what = dice.choice((("shop", "reserve"), ("mail", "review"), ("payments", "capture"), ("loyalty", "book")))
    await client.create_job(_order(system, what, dice.randint(1, 90), ports, dice))


def _order(system: str, what: str, seconds: float, ports: dict[str, int], dice: random.Random) -> JobSpec:
    """A timer of an order."""
    order = dice.randint(40_000, 49_999)
    return JobSpec(
        name=f"Order {order}: {what}",
        schedule=Schedule(in_=Duration(round(seconds * SECOND))),
        target=WebhookTarget(url=f"http://127.0.0.1:{ports[system]}/orders/{order}/{what}"),
        tags=["order", system],
        owner="shop",
        policy=Policy(expires_in=Duration(40 * SECOND)),  # of a system that is away, no more than these wait
    )
