"""What holds the loop is counted and named; a machine that is late is not."""

from __future__ import annotations

import asyncio
import time

import structlog

from onthedot.telemetry.stalls import watch_loop
from tests.services.waiting import until


def burn(seconds: float) -> None:
    """Uses the processor, as a computation does."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def test_what_holds_the_loop_is_counted_and_told_with_its_place():
    stalls: list[float] = []
    with structlog.testing.capture_logs() as logged:
        async with watch_loop(stalls.append):
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_soon(burn, 0.3)
            await until(lambda: any(stall > 0.2 for stall in stalls), "the stall is counted")
            await until(lambda: logged, "the stall is told")
    (told,) = [line for line in logged if line["seconds"] > 0.2]
    assert told["event"] == "event loop blocked"
    assert "test_stalls.py" in told["at"]
    assert "burn" in told["at"]


async def test_waiting_is_not_counted():
    """A process that is stopped, or gets no processor, is late without any doing of ours."""
    stalls: list[float] = []
    async with watch_loop(stalls.append):
        asyncio.get_running_loop().call_soon(time.sleep, 0.2)  # as if the machine had been away
        looked = asyncio.get_running_loop().time() + 0.3
        await until(lambda: asyncio.get_running_loop().time() > looked, "a while has passed")
    assert max(stalls, default=0.0) < 0.1
