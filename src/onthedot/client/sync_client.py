"""The HTTP API for programs without asyncio.

    with Client("http://127.0.0.1:8000") as client:
        job = client.create_job(JobSpec(...))

The methods are documented in AsyncClient.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Self

from onthedot.client.async_client import AsyncClient
from onthedot.client.blocking.alerts import BlockingAlerts
from onthedot.client.blocking.cluster import BlockingCluster
from onthedot.client.blocking.dead_letters import BlockingDeadLetters
from onthedot.client.blocking.job_slots import BlockingJobSlots
from onthedot.client.blocking.jobs import BlockingJobs
from onthedot.client.blocking.keys import BlockingKeys
from onthedot.client.blocking.operations import BlockingOperations
from onthedot.client.blocking.runs import BlockingRuns
from onthedot.client.blocking.schedules import BlockingSchedules
from onthedot.client.blocking.scripts import BlockingScripts
from onthedot.clock import Clock

__all__ = ["Client"]


class Client(
    BlockingJobs,
    BlockingJobSlots,
    BlockingRuns,
    BlockingDeadLetters,
    BlockingOperations,
    BlockingSchedules,
    BlockingCluster,
    BlockingAlerts,
    BlockingKeys,
    BlockingScripts,
):
    """A blocking client for the HTTP API. Do not use it inside a running event loop; use AsyncClient there."""

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
        self._async = AsyncClient(url, key, timeout=timeout, tries=tries, clock=clock, ca=ca)
        self._runner = asyncio.Runner()

    @property
    def url(self) -> str:
        return self._async.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._run(self._async.close())
        self._runner.close()
