"""Names into addresses, with a deadline and a share for each tenant.

The system's resolver can't be told to stop: a name whose servers do not answer keeps its thread for half a minute. So
nobody waits for it longer than ten seconds, its thread is left to end by itself, and there are only so many of either
kind. A tenant whose names all hang has a few look-ups under way at a time and queues behind itself: those of others go
on.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from onthedot.telemetry import emit

__all__ = ["Lookups", "NoAnswer"]

T = TypeVar("T")
SECONDS = 10.0
AT_ONCE = 16
SHARE = 4
LEFT_MOST = 48  # threads that nobody waits for any more
LEFT_SHARE = 12


class NoAnswer(Exception):
    """It took too long, or too many have before it."""


class Lookups(Generic[T]):
    """`look_up` blocks; it runs in threads of its own."""

    def __init__(self, look_up: Callable[[str], T]) -> None:
        self._look_up = look_up
        self._under_way: dict[int, int] = {}
        self._left: dict[int, int] = {}
        self._waiting: dict[int, deque[asyncio.Future[None]]] = {}

    @property
    def left(self) -> int:
        """Threads that nobody waits for any more."""
        return sum(self._left.values())

    async def find(self, name: str, tenant: int) -> T:
        """Raises what the look-up raised, or NoAnswer."""
        await self._turn(tenant)
        try:
            if self._left.get(tenant, 0) >= LEFT_SHARE or self.left >= LEFT_MOST:
                raise NoAnswer("too many DNS lookups have timed out")
            found: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            threading.Thread(target=self._work, args=(name, tenant, found), name="onthedot-dns", daemon=True).start()
            try:
                async with asyncio.timeout(SECONDS):
                    return await found
            except TimeoutError:
                emit("lookup.abandoned", tenant=tenant, host=name)
                raise NoAnswer(f"DNS lookup timed out after {SECONDS:.0f} s") from None
            finally:
                if not found.done() or found.cancelled():
                    self._left[tenant] = self._left.get(tenant, 0) + 1
        finally:
            self._leave(tenant)

    async def _turn(self, tenant: int) -> None:
        if self._may(tenant) and tenant not in self._waiting:
            self._enter(tenant)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it had its turn, and can't use it any more
                self._leave(tenant)
            else:
                self._forget(tenant, turn)
            raise

    def _may(self, tenant: int) -> bool:
        return self._under_way.get(tenant, 0) < SHARE and sum(self._under_way.values()) < AT_ONCE

    def _enter(self, tenant: int) -> None:
        self._under_way[tenant] = self._under_way.get(tenant, 0) + 1

    def _leave(self, tenant: int) -> None:
        self._under_way[tenant] -= 1
        if not self._under_way[tenant]:
            del self._under_way[tenant]
        for waiting in list(self._waiting):  # in turn: who was let in goes to the end
            if self._may(waiting):
                queue = self._waiting.pop(waiting)
                turn = queue.popleft()
                if queue:
                    self._waiting[waiting] = queue
                self._enter(waiting)
                turn.set_result(None)

    def _forget(self, tenant: int, turn: asyncio.Future[None]) -> None:
        queue = self._waiting.get(tenant)
        if queue is not None and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._waiting[tenant]

    def _work(self, name: str, tenant: int, found: asyncio.Future[T]) -> None:
        try:
            result: Any = self._look_up(name)
            error: Exception | None = None
        except Exception as raised:
            result, error = None, raised
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            found.get_loop().call_soon_threadsafe(self._told, tenant, found, result, error)

    def _told(self, tenant: int, found: asyncio.Future[T], result: T, error: Exception | None) -> None:
        if found.done():  # nobody waited for it any more
            self._left[tenant] -= 1
            if not self._left[tenant]:
                del self._left[tenant]
        elif error is not None:
            found.set_exception(error)
        else:
            found.set_result(result)
