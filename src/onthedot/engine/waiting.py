"""Two ways of waiting that stopping is made of."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from onthedot.clock import Clock

__all__ = ["at_most", "first_of"]


async def at_most(clock: Clock, seconds: float, what: Awaitable[object]) -> None:
    """Wait for it, but no longer than this."""
    try:
        async with clock.timeout(seconds):
            await what
    except TimeoutError:
        pass


async def first_of(*what: Awaitable[object]) -> None:
    """Until one of them is through; the others are cancelled."""
    tasks = [asyncio.ensure_future(item) for item in what]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
