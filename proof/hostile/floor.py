"""How long this machine holds a loop beside which one thread only counts: less can't be asked of any request."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time

import uvloop

from onthedot.launcher.serving import SWITCH_SECONDS
from onthedot.telemetry.stalls import watch_loop

__all__ = ["measure_floor"]

SECONDS = 3.0


def measure_floor(times: int = 5) -> float:
    """Seconds, in a process of its own, as the server is."""
    told = subprocess.run([sys.executable, "-m", __name__, str(times)], capture_output=True, text=True, check=True)
    return float(told.stdout)


async def _longest() -> float:
    longest = 0.0

    def held(seconds: float) -> None:
        nonlocal longest
        longest = max(longest, seconds)

    async with watch_loop(held, quiet_for=10 * SECONDS):
        counting = threading.Thread(target=_count, args=(time.monotonic() + SECONDS,))
        counting.start()
        await asyncio.sleep(SECONDS + 0.1)
        counting.join()
    return longest


def _count(end: float) -> None:
    while time.monotonic() < end:
        pass


if __name__ == "__main__":
    sys.setswitchinterval(SWITCH_SECONDS)
    print(max(uvloop.run(_longest()) for _ in range(int(sys.argv[1]))))
