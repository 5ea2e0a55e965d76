"""The changing part of a page, made once for all who look at the same page at the same time.

Two hundred open dashboards ask for it whenever a run ends; it is made at most once a second for each address, and who
has it already gets 304.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256

import msgspec
from starlette.requests import Request

from onthedot.api.context import context_of
from onthedot.api.http.responses import HttpResponse

__all__ = ["FRESH_SECONDS", "LiveParts", "PartKey"]

FRESH_SECONDS = 0.9
KEPT_MOST = 256
PartKey = tuple[object, ...]
"""All that a part may depend on: who asks, and for what."""
Make = Callable[[], Awaitable[HttpResponse]]


class _Kept(msgspec.Struct):
    made_at: float
    pending: asyncio.Future[tuple[HttpResponse, str]]


class LiveParts:
    def __init__(self) -> None:
        self._kept: dict[tuple[int, PartKey], _Kept] = {}

    async def answer(self, request: Request, key: PartKey, make: Make) -> HttpResponse:
        made, tag = await self._part(request, key, make)
        if made.status != 200:
            return made
        headers = {**made.headers, "etag": tag, "cache-control": "no-store"}
        if request.headers.get("if-none-match") == tag:
            return HttpResponse(b"", 304, headers)
        return HttpResponse(made.body, 200, headers, made.media)

    async def _part(self, request: Request, key: PartKey, make: Make) -> tuple[HttpResponse, str]:
        now = context_of(request).clock.monotonic()
        whose = id(request.app), key
        kept = self._kept.get(whose)
        if kept is None or now - kept.made_at > FRESH_SECONDS:
            self._forget(now)
            kept = self._kept[whose] = _Kept(now, asyncio.ensure_future(_made(make)))
        try:
            return await asyncio.shield(kept.pending)
        except BaseException:
            if self._kept.get(whose) is kept:
                del self._kept[whose]
            raise

    def _forget(self, now: float) -> None:
        """What is old; all of it if there is too much, so that nobody fills the memory with addresses."""
        if len(self._kept) >= KEPT_MOST:
            self._kept = {key: kept for key, kept in self._kept.items() if now - kept.made_at <= FRESH_SECONDS}
        if len(self._kept) >= KEPT_MOST:
            self._kept.clear()


async def _made(make: Make) -> tuple[HttpResponse, str]:
    made = await make()
    return made, f'"{sha256(made.body).hexdigest()[:16]}"'
