"""The HTTP API for asyncio programs.

    async with AsyncClient("http://127.0.0.1:8000") as client:
        job = await client.create_job(JobSpec(...))

Creates and actions send a generated Idempotency-Key, so that a request can be retried safely after a lost response.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

from onthedot.client.asynchronous.alerts import AsyncAlerts
from onthedot.client.asynchronous.cluster import AsyncCluster
from onthedot.client.asynchronous.dead_letters import AsyncDeadLetters
from onthedot.client.asynchronous.job_slots import AsyncJobSlots
from onthedot.client.asynchronous.jobs import AsyncJobs
from onthedot.client.asynchronous.keys import AsyncKeys
from onthedot.client.asynchronous.operations import AsyncOperations
from onthedot.client.asynchronous.runs import AsyncRuns
from onthedot.client.asynchronous.schedules import AsyncSchedules
from onthedot.client.asynchronous.scripts import AsyncScripts
from onthedot.client.transport import Transport
from onthedot.clock import Clock

__all__ = ["AsyncClient"]


class AsyncClient(
    AsyncJobs,
    AsyncJobSlots,
    AsyncRuns,
    AsyncDeadLetters,
    AsyncOperations,
    AsyncSchedules,
    AsyncCluster,
    AsyncAlerts,
    AsyncKeys,
    AsyncScripts,
):
    """A client for the HTTP API. Raises the exceptions of `onthedot.errors`; Unreachable if it can't connect."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        key: str | None = None,
        *,
        timeout: float = 30.0,
        tries: int = 4,
        clock: Clock | None = None,
        ca: str | Path | None = None,
    ) -> None:
        """`ca`: a PEM file with the authorities that may have signed the server's certificate; None: the system's."""
        self._http = Transport(url, key, timeout=timeout, tries=tries, clock=clock, ca=ca)

    @property
    def url(self) -> str:
        return self._http.url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.close()
