"""How actors are spoken to: bounded mailboxes, so that whoever is slow slows down who sends and nothing is dropped.

`Signal` holds one wake-up and merges the rest. `Mailbox` holds n messages and makes the sender wait; messages that are
signals by nature (room that came free) are merged in it by `merge`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Mailbox", "Signal"]

T = TypeVar("T")


class Signal:
    """Size 1, merges: set twice is set once. The wake-up survives a waiter that was cancelled in between."""

    __slots__ = ("_is_set", "_waiter")

    def __init__(self) -> None:
        self._is_set = False
        self._waiter: asyncio.Future[None] | None = None

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self) -> None:
        """Until it is set; takes the wake-up. One waiter at a time: an actor has one loop."""
        while not self._is_set:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._is_set = False


class Mailbox(Generic[T]):
    """Size n, the sender waits. One reader: an actor has one loop."""

    __slots__ = ("_enough", "_items", "_reader", "_senders", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self._items: deque[T] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._enough: Callable[[T], bool] | None = None
        self._senders: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        return len(self._items)

    @property
    def full(self) -> bool:
        return len(self._items) >= self.size

    @property
    def overflowing(self) -> bool:
        """So much went past the bound that nothing more should be begun which ends in here."""
        return len(self._items) > 2 * self.size

    def offer(self, item: T) -> bool:
        """The fast path of `put`: at once or not at all. Those who already wait go first."""
        if len(self._items) >= self.size or self._senders:
            return False
        self._items.append(item)
        if self._reader is not None:
            self._wake(item)
        return True

    async def put(self, item: T) -> None:
        while not self.offer(item):
            turn = self.turn()
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._let_in()  # the turn was given to one who no longer wants it
                raise
            finally:
                if turn in self._senders:
                    self._senders.remove(turn)
            if not self.full:
                self._append(item)
                return

    def turn(self) -> asyncio.Future[None]:
        """Done when there is room for one more, in the order in which they were asked for. For who can't wait in a
        task; whoever has it puts at once, past the bound if others were faster."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._senders.append(turn)
        return turn

    def put_over(self, item: T) -> None:
        """Past the bound. Only for messages whose number is bounded by what they are about, such as runs given back:
        each of them makes room, and a waiting sender would delay the firing of others."""
        self._append(item)

    def merge(self, item: T) -> None:
        """For signals: at most one equal message waits."""
        if item not in self._items:
            self._append(item)

    async def take(self) -> T:
        while not self._items:
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        item = self._items.popleft()
        self._let_in()
        return item

    async def until(self, enough: Callable[[T], bool]) -> None:
        """Wait until one comes of which `enough` says so. Takes nothing, and nobody is woken for the others."""
        self._enough, self._reader = enough, asyncio.get_running_loop().create_future()
        try:
            await self._reader
        finally:
            self._enough = self._reader = None

    def take_all(self, most: int | None = None) -> list[T]:
        """What waits now, without waiting for more."""
        if most is None or most >= len(self._items):
            taken = list(self._items)
            self._items.clear()
        else:
            taken = [self._items.popleft() for _ in range(most)]
        self._let_in()
        return taken

    def _append(self, item: T) -> None:
        self._items.append(item)
        if self._reader is not None:
            self._wake(item)

    def _wake(self, item: T) -> None:
        assert self._reader is not None
        if not self._reader.done() and (self._enough is None or self._enough(item)):
            self._reader.set_result(None)

    def _let_in(self) -> None:
        free = self.size - len(self._items)
        while free > 0 and self._senders:
            turn = self._senders.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1
