"""A client of the HTTP API that asks until it is answered, at whichever API node answers."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Sequence
from typing import Any, Self

import aiohttp
import msgspec

from proof.chaos.versions import Request
from proof.checker.events import Crashed, History

__all__ = ["Answer", "Asking"]

NOT_NOW = (502, 503, 504)
PATIENCE = 6.0
HURRIED = 0.04
"""The share of requests whose client hangs up at once, or after a moment, and asks again."""
_ON_A_JOB = re.compile(r"^/v1/jobs/(\d+)")
_ON_A_RUN = re.compile(r"^/v1/runs/(\d+)-")


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
        self.given_up = 0
        self.requests: list[Request] = []  # that may change a job
        self._rng = rng
        self._history = history
        self._now = now
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE))
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def ask(
        self, method: str, path: str, body: Any = None, key: str | None = None, *, if_match: int | None = None
    ) -> Answer:
        """Until there is an answer that decides: not a broken connection, and not a 503."""
        headers = {"content-type": "application/json"}
        if key is not None:
            headers["idempotency-key"] = key
        if if_match is not None:
            headers["if-match"] = f'"{if_match}"'
        sent = 0
        while True:
            sent += 1
            self.asked += 1
            began = self._now()
            status, answer = await self._once(method, path, body, headers)
            self._note(method, path, body, began, status)
            if status == 500:
                self._history.append(Crashed(at=self._now(), node="api", error=f"{method} {path}: 500 {answer}"))
            if status and status not in NOT_NOW:
                return Answer(status, answer, sent)
            await asyncio.sleep(self._rng.uniform(0.05, 0.5 * min(sent, 6)))

    async def try_once(self, method: str, path: str, patience: float) -> int:
        """Asked once, and given up after so many seconds: 0, if there was no answer by then."""
        self.asked += 1
        began = self._now()
        status, _ = await self._once(method, path, None, {"content-type": "application/json"}, patience)
        self._note(method, path, None, began, status)
        return status

    async def _once(
        self, method: str, path: str, body: Any, headers: dict[str, str], patience: float = PATIENCE
    ) -> tuple[int, Any]:
        assert self._session is not None
        data = None if body is None else msgspec.json.encode(body)
        url = self._rng.choice(self.urls) + path
        if method != "GET" and patience == PATIENCE and self._rng.random() < HURRIED:
            self.given_up += 1
            patience = self._rng.choice((0.002, 0.005, 0.02, 0.3))
        within = aiohttp.ClientTimeout(total=patience)
        try:
            async with self._session.request(method, url, data=data, headers=headers, timeout=within) as answer:
                raw = await answer.read()
                self.unavailable += answer.status in NOT_NOW
                return answer.status, msgspec.json.decode(raw) if raw else None
        except (aiohttp.ClientError, TimeoutError, OSError):
            self.unanswered += 1
            return 0, None

    def _note(self, method: str, path: str, body: Any, began: int, status: int) -> None:
        if method == "GET":
            return
        found = _ON_A_JOB.match(path) or _ON_A_RUN.match(path)
        job, marks = int(found[1]) if found else 0, _marks_of(path, body)
        if job or marks:
            self.requests.append(Request(job=job, began=began, ended=self._now(), status=status, marks=marks))


def _marks_of(path: str, body: Any) -> list[int | None]:
    """Of the jobs that this request makes, one, a batch or a file of them."""
    if path == "/timers":
        return [None]
    if path not in ("/v1/jobs", "/v1/jobs/batch", "/v1/jobs/sync"):
        return []
    specs = body if isinstance(body, list) else body.get("jobs", [body])
    return [spec["params"]["mark"] for spec in specs]
