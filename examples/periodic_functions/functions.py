"""Functions worth watching: short ones every few seconds, long ones to cancel, one that fails now and then.

They run in worker processes. What they print and log is each run's log (logs/<job key>/<run id>.log, or `onthedot runs
logs <run id>`); what they return is in the run's outcome.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time

log = logging.getLogger(__name__)


def sleep_2_mins() -> None:
    """Long enough to be watched, cancelled or killed half-way: `onthedot runs list`.

    Its period is longer still: a machine with one core has two processes for functions, and others need one too.
    """
    _sleep(120)


def sleep_5_mins() -> None:
    _sleep(300)


def sleep_10_secs() -> None:
    _sleep(10)


def _sleep(seconds: int) -> None:
    print(f"going to sleep for {seconds} s")
    for left in range(seconds, 0, -10):
        time.sleep(min(left, 10))
        log.info("%d s left", max(0, left - 10))
    print("awake again")


def tick() -> str:
    """The time it was meant for, and the time it is."""
    meant = os.environ["ONTHEDOT_SCHEDULED_FOR"]
    print(f"tick: meant for {meant}")
    return meant


def greet(name: str = "world", times: int = 1) -> str:
    """Params of the job come as keyword arguments."""
    greeting = f"Hello, {name}!"
    for _ in range(times):
        print(greeting)
    return greeting


def count_primes(below: int = 200_000) -> dict[str, int]:
    """Some real work for a processor; the node's own loop does not notice."""
    sieve = bytearray([1]) * below
    sieve[:2] = b"\0\0"
    for n in range(2, int(below**0.5) + 1):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, below, n)))
    found = sum(sieve)
    print(f"{found} primes below {below}")
    return {"below": below, "primes": found}


async def many_naps(naps: int = 20, longest: float = 0.2) -> int:
    """Async functions are awaited: these naps are taken at the same time."""
    await asyncio.gather(*(asyncio.sleep(random.uniform(0, longest)) for _ in range(naps)))
    print(f"took {naps} naps in the time of one")
    return naps


def flaky(rate: float = 0.3) -> str:
    """Fails now and then, to show retries: the run's attempts tell what happened."""
    if random.random() < rate:
        log.warning("bad luck this time (attempt %s)", os.environ["ONTHEDOT_ATTEMPT"])
        raise RuntimeError("bad luck")
    return "lucky"
