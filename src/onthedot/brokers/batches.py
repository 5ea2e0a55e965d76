"""Sends together what comes while a request is on its way: a round trip for each message would be the limit."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from onthedot.brokers.message import Message
from onthedot.brokers.publisher import Confirmed, PublishFailed

__all__ = ["Batches"]

SendBatch = Callable[[list[Message]], Awaitable[Sequence[Confirmed | PublishFailed]]]
"""One answer for each message, in order; what it raises is the answer to all of them."""


class Batches:
    def __init__(self, send: SendBatch, *, most: int, at_once: int = 1) -> None:
        self._send, self._most, self._at_once = send, most, at_once
        self._waiting: deque[tuple[Message, asyncio.Future[Confirmed]]] = deque()
        self._senders: set[asyncio.Task[None]] = set()

    async def confirmed(self, message: Message) -> Confirmed:
        """Cancelled before it was sent, it is not sent."""
        answer: asyncio.Future[Confirmed] = asyncio.get_running_loop().create_future()
        self._waiting.append((message, answer))
        if len(self._senders) < self._at_once:
            sender = asyncio.get_running_loop().create_task(self._send_all())
            self._senders.add(sender)
            sender.add_done_callback(self._senders.discard)
        return await answer

    async def close(self) -> None:
        for sender in [*self._senders]:
            sender.cancel()
        if self._senders:
            await asyncio.wait(self._senders)
        for _, answer in self._waiting:
            _fail(answer, PublishFailed("the connection was closed before the message was sent"))
        self._waiting.clear()

    async def _send_all(self) -> None:
        while batch := self._next():
            try:
                answers = await self._send([message for message, _ in batch])
            except BaseException as error:
                failed = (
                    error if isinstance(error, PublishFailed) else PublishFailed(f"{type(error).__name__}: {error}")
                )
                for _, answer in batch:
                    _fail(answer, failed)
                if not isinstance(error, Exception):
                    raise
                continue
            for (_, answer), found in zip(batch, answers, strict=True):
                if isinstance(found, PublishFailed):
                    _fail(answer, found)
                elif not answer.done():
                    answer.set_result(found)

    def _next(self) -> list[tuple[Message, asyncio.Future[Confirmed]]]:
        batch: list[tuple[Message, asyncio.Future[Confirmed]]] = []
        while self._waiting and len(batch) < self._most:
            one = self._waiting.popleft()
            if not one[1].done():
                batch.append(one)
        return batch


def _fail(answer: asyncio.Future[Confirmed], why: PublishFailed) -> None:
    """Each its own exception: one that is raised at many places collects all their tracebacks."""
    if not answer.done():
        answer.set_exception(type(why)(*why.args))
