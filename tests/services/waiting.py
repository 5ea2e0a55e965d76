"""Waiting until something is so: the one place in the tests where time passes by itself.

A test that sleeps is slow each time, and wrong on the day the machine is slower. Here it looks at once, then again
after pauses that grow, and the deadline is an end for what went wrong, never a measure. `tests/unit/test_no_sleeps.py`
watches that nobody else sleeps.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar, overload

__all__ = ["looks", "until", "until_blocking"]

T = TypeVar("T")

WITHIN = 30.0
# What is near is seen at once; what is far is not asked for so often that the asking slows it down.
FIRST_PAUSE, LONGEST_PAUSE, GROWTH = 0.003, 0.05, 1.4


@overload
async def until(look: Callable[[], Awaitable[T]], what: str = ..., within: float = ...) -> T: ...
@overload
async def until(look: Callable[[], T], what: str = ..., within: float = ...) -> T: ...
async def until(look: Callable[[], Any], what: str = "what the test waits for", within: float = WITHIN) -> Any:
    """Give what `look` found, as soon as it is something; the deadline says what was waited for."""
    if found := await _seen(look):
        return found
    for pause in _pauses(within):
        await asyncio.sleep(pause)
        if found := await _seen(look):
            return found
    raise AssertionError(f"not within {within:.0f} s: {what}")


def until_blocking(look: Callable[[], T], what: str, within: float = WITHIN) -> T:
    """The same where no loop runs."""
    for _ in looks(within):
        if found := look():
            return found
    raise AssertionError(f"not within {within:.0f} s: {what}")


def looks(within: float) -> Iterator[None]:
    """A turn now, and more until the deadline, the last one after it: for who has more to say than yes or no."""
    yield
    for pause in _pauses(within):
        time.sleep(pause)
        yield


async def _seen(look: Callable[[], Any]) -> Any:
    seen = look()
    return await seen if isinstance(seen, Awaitable) else seen


def _pauses(within: float) -> Iterator[float]:
    deadline, pause = time.monotonic() + within, FIRST_PAUSE
    while (left := deadline - time.monotonic()) > 0:
        yield min(pause, left)
        pause = min(pause * GROWTH, LONGEST_PAUSE)
