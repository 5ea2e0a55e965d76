"""Messages that were refused, sent to the dead-letter topic with the reason. They are settled when the broker has
confirmed that, and not before: until then they are neither here nor there lost.

One after the other, beside those that are read meanwhile; when too many wait, nothing more is read.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

from onthedot.brokers.link import BrokerLink, reason
from onthedot.brokers.message import Message
from onthedot.brokers.publisher import BrokerRefused, PublishFailed
from onthedot.brokers.reader import Received, TopicReader
from onthedot.model.decoding import encode_json
from onthedot.model.instant import format_instant
from onthedot.service.problems import Problem

__all__ = ["DeadLetterSender", "RefusedMessage", "compose_letter"]

MOST_WAITING = 100
CONFIRMED_WITHIN = 10.0
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
KEPT = (256 * 1024, 16 * 1024, 0)
"""Bytes of the original that are sent along; the next if the broker finds the letter too large."""


class RefusedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """`known_as`: the message's id or place, the same when it is refused again. `size`: of the whole original."""

    received: Received
    size: int
    problem: Problem
    known_as: str
    at: int

    @classmethod
    def of(cls, received: Received, problem: Problem, known_as: str, at: int) -> RefusedMessage:
        """With no more of a large original than a letter has: a hundred of them may wait."""
        kept = msgspec.structs.replace(received, body=received.body[: KEPT[0]])
        return cls(received=kept, size=len(received.body), problem=problem, known_as=known_as, at=at)


class DeadLetterSender:
    def __init__(
        self, intake: str, topic: str, link: BrokerLink, reader: TopicReader, held: Callable[[str | None], None]
    ) -> None:
        """`held` is told why letters wait, and None when they don't."""
        self._intake, self._topic, self._link, self._reader, self._held = intake, topic, link, reader, held
        self._waiting: asyncio.Queue[RefusedMessage] = asyncio.Queue(MOST_WAITING)

    async def put(self, letter: RefusedMessage) -> None:
        """Waits while too many wait."""
        await self._waiting.put(letter)

    async def all_sent(self) -> None:
        await self._waiting.join()

    async def run(self) -> None:
        while True:
            letter = await self._waiting.get()
            await self._send(letter)
            await self._reader.settle([letter.received])
            self._waiting.task_done()

    async def _send(self, letter: RefusedMessage) -> None:
        """Until it is confirmed."""
        pause, size, is_held = FIRST_PAUSE, 0, False
        while True:
            try:
                message = compose_letter(self._intake, self._topic, letter, KEPT[size])
                async with asyncio.timeout(CONFIRMED_WITHIN):
                    await self._link.publish(message, lambda: True)
                break
            except BrokerRefused as error:
                if size + 1 < len(KEPT):
                    size += 1
                    continue
                why = reason(error, self._link.setting)
            except PublishFailed as error:
                why = reason(error, self._link.setting)
            except TimeoutError:
                why = f"no confirmation within {CONFIRMED_WITHIN:g} s"
            is_held = True
            self._held(f"refused messages can't be sent to {self._topic!r}: {why}")
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        if is_held:
            self._held(None)


def compose_letter(intake: str, topic: str, letter: RefusedMessage, most: int) -> Message:
    received = letter.received
    problem = letter.problem
    content = {
        "intake": intake,
        "refused_at": format_instant(letter.at),
        "problem": problem,
        "message": {
            "id": received.id,
            "place": received.place,
            "key": received.key,
            "headers": received.headers,
            "size": letter.size,
            **_body(received.body, most, letter.size),
        },
    }
    known_as = hashlib.sha256(f"{intake}/{letter.known_as}".encode("utf-8", "surrogatepass")).hexdigest()
    return Message(
        id=f"dead-{known_as[:32]}",
        topic=topic,
        key=received.key,
        headers={
            "x-onthedot-intake": intake,
            "x-onthedot-problem": problem.type,
            "x-onthedot-status": str(problem.status),
        },
        content_type="application/json",
        body=encode_json(content),
    )


def _body(body: bytes, most: int, size: int) -> dict[str, Any]:
    """As text if it is one. `truncated`: only its beginning is there."""
    kept, cut = body[:most], {"truncated": True} if size > min(most, len(body)) else {}
    try:
        return {"body": _text(kept, is_cut=bool(cut)), **cut}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(kept).decode(), **cut}


def _text(kept: bytes, *, is_cut: bool) -> str:
    """Perhaps cut within a letter, whose bytes are then left out."""
    try:
        return kept.decode()
    except UnicodeDecodeError as error:
        if not is_cut or error.start < len(kept) - 3:
            raise
        return kept[: error.start].decode()
