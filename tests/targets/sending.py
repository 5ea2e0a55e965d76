"""One call from its start to its end, as the engine would make it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from onthedot.model.run import Outcome
from onthedot.targets import Call, Kind, Targets
from onthedot.targets.contract import Ended, Stop


class NotBegun(Exception):
    """Nothing of the call has left."""


async def send(to: Kind | Targets, call: Call) -> Outcome:
    """Cancelled, it stops the call, and returns when that has ended."""
    kind = to.kind_of(call.target) if isinstance(to, Targets) else to
    ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
    handle = kind.start(call, time.monotonic(), ended.set_result)
    try:
        told = await asyncio.shield(ended)
    except asyncio.CancelledError:
        stop = handle.stop("cancelled")
        if stop is Stop.NOT_BEGUN:
            raise NotBegun from None
        while not ended.done():
            try:
                await asyncio.shield(ended)
            except asyncio.CancelledError:
                handle.stop("cancelled")
        raise
    if told.outcome is None:
        assert told.began is None, "nobody asked it to stop"
        raise NotBegun
    return told.outcome


async def send_until_begun(to: Kind | Targets, make: Callable[[], Call]) -> Outcome:
    """What found nobody to do it comes again, as the engine would see to."""
    for _ in range(1000):
        try:
            return await send(to, make())
        except NotBegun:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise asyncio.CancelledError from None
    raise AssertionError("never begun")
