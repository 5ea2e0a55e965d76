"""Parts of a page that load on their own: a slow or broken one says so in its place, the rest of the page stands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import msgspec

from onthedot.clock import Clock
from onthedot.errors import OnTheDotError

__all__ = ["Part", "load", "load_all", "load_slow"]

LIMIT_SECONDS = 1.0


class Part(msgspec.Struct, frozen=True):
    """What was loaded, or why it was not. `ui.part` shows it. `pending`: of `load_slow`, it is not there yet."""

    value: Any = None
    error: str | None = None
    pending: bool = False


async def load(clock: Clock, what: Awaitable[Any], within: float = LIMIT_SECONDS) -> Part:
    try:
        async with clock.timeout(within):
            return Part(await what)
    except TimeoutError:
        return Part(error=f"it took longer than {within:g} s")
    except OnTheDotError as error:
        return Part(error=str(error))


async def load_slow(clock: Clock, what: Awaitable[Any], within: float) -> Part:
    """For what goes on by itself when nobody waits for it any more, and is there the next time."""
    try:
        async with clock.timeout(within):
            return Part(await what)
    except TimeoutError:
        return Part(pending=True)
    except OnTheDotError as error:
        return Part(error=str(error))


async def load_all(clock: Clock, within: float = LIMIT_SECONDS, **parts: Awaitable[Any]) -> dict[str, Part]:
    """All of them at once, each with the whole time."""
    loaded = await asyncio.gather(*(load(clock, each, within) for each in parts.values()))
    return dict(zip(parts, loaded, strict=True))
