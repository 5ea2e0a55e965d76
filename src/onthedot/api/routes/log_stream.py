"""The log of a run as server-sent events: `log` with each new piece of text, `end` with the status of the run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from onthedot.clock import Clock
from onthedot.errors import NotFound, StoreUnavailable
from onthedot.model.log_text import added
from onthedot.service import Service

__all__ = ["LogStream"]

LOOK_AGAIN = 0.5
QUIET_SECONDS = 15.0
_LIVE = ("PENDING", "EXECUTING")
_encode = msgspec.json.Encoder().encode


class LogStream:
    """Any node serves it: the store has what the run's node has heard so far."""

    def __init__(self, service: Service, clock: Clock, tenant: int, run_id: str) -> None:
        self._service = service
        self._clock = clock
        self._tenant = tenant
        self._run_id = run_id
        self._closed = asyncio.Event()

    def close(self) -> None:
        self._closed.set()

    async def pieces(self) -> AsyncIterator[bytes]:
        seen, said_at = "", self._clock.monotonic()
        while not self._closed.is_set():
            try:
                # the status first: what is read after a run's end is its whole log
                status = (await self._service.get_run(self._tenant, self._run_id)).status
                text = await self._service.run_logs(self._tenant, self._run_id) or ""
            except NotFound:  # its history went with the retention
                return
            except StoreUnavailable:
                status, text = "PENDING", seen
            if new := added(seen, text):
                seen, said_at = text, self._clock.monotonic()
                yield _event(b"log", {"text": new})
            if status not in _LIVE:
                yield _event(b"end", {"status": status})
                return
            if self._clock.monotonic() - said_at > QUIET_SECONDS:
                said_at = self._clock.monotonic()
                yield b": still here\n\n"  # so that proxies keep the connection, and a dead one is noticed
            await self._pause()

    async def _pause(self) -> None:
        try:
            async with self._clock.timeout(LOOK_AGAIN):
                await self._closed.wait()
        except TimeoutError:
            return


def _event(name: bytes, fields: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name, _encode(fields))
