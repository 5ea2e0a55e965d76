"""A client of the HTTP API that asks until it is answered, at whichever API node answers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any, Self

import aiohttp
import msgspec

from proof.checker.events import Crashed, History

__all__ = ["Answer", "Asking"]

NOT_NOW = (502, 503, 504)


class Answer(msgspec.Struct, frozen=True):
    status: int
    body: Any
    sent: int  # how often it was asked

    @property
    def good(self) -> bool:
        return 200 <= self.status < 300


class Asking:
    def __init__(self, urls: Sequence[str], rng: random.Random, history: History, now: Any) -> None:
        self.urls = list(urls)
        self.asked = 0
        self.unanswered = 0
        self.unavailable = 0
        self._rng = rng
        self._history = history
        self._now = now
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=6))
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def ask(self, method: str, path: str, body: Any = None, key: str | None = None) -> Answer:
        """Until there is an answer that decides: not a broken connection, and not a 503."""
        headers = {"content-type": "application/json"}
        if key is not None:
            headers["idempotency-key"] = key
        sent = 0
        while True:
            sent += 1
            self.asked += 1
            status, answer = await self._once(method, path, body, headers)
            if status == 500:
                self._history.append(Crashed(at=self._now(), node="api", error=f"{method} {path}: 500 {answer}"))
            if status and status not in NOT_NOW:
                return Answer(status, answer, sent)
            await asyncio.sleep(self._rng.uniform(0.05, 0.5 * min(sent, 6)))

    async def _once(self, method: str, path: str, body: Any, headers: dict[str, str]) -> tuple[int, Any]:
        assert self._session is not None
        data = None if body is None else msgspec.json.encode(body)
        url = self._rng.choice(self.urls) + path
        try:
            async with self._session.request(method, url, data=data, headers=headers) as answer:
                raw = await answer.read()
                self.unavailable += answer.status in NOT_NOW
                return answer.status, msgspec.json.decode(raw) if raw else None
        except (aiohttp.ClientError, TimeoutError, OSError):
            self.unanswered += 1
            return 0, None
