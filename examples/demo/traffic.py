"""What people and programs do while you look: timers of orders, runs by hand, a change of mind now and then."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

from onthedot.client import AsyncClient
from onthedot.errors import OnTheDotError
from onthedot.model.duration import SECOND, Duration
from onthedot.model.job import JobSpec
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget

__all__ = ["go_on"]

CALM = 5.0
"""Seconds between two events, on the average."""
BY_HAND = ("orders-import", "ledger-main", "demand-forecast")


async def go_on(address: str, ports: dict[str, int]) -> None:
    """Until it is cancelled."""
    dice = random.Random()
    async with AsyncClient(address) as client:
        while True:
            await asyncio.sleep(dice.expovariate(1 / CALM))
            with suppress(OnTheDotError, OSError):
                await _something(client, ports, dice)


async def _something(client: AsyncClient, ports: dict[str, int], dice: random.Random) -> None:
    if dice.random() < 0.06:
        found = await client.list_jobs(q=dice.choice(BY_HAND), limit=1)
        for job in found.items:
            await client.run_job(job.id)
        return
    order = dice.randint(40_000, 49_999)
    system, what = dice.choice((("shop", "reserve"), ("mail", "review"), ("payments", "capture"), ("loyalty", "book")))
    await client.create_job(
        JobSpec(
            name=f"Order {order}: {what}",
            schedule=Schedule(in_=Duration(dice.randint(1, 90) * SECOND)),
            target=WebhookTarget(url=f"http://127.0.0.1:{ports[system]}/orders/{order}/{what}"),
            tags=["order", system],
            owner="shop",
        )
    )
