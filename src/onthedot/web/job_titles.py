"""What lists of runs call their jobs. A run knows the id and the key of its job; people know its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from onthedot.clock import Clock
from onthedot.service import Service
from onthedot.web.parts import load

__all__ = ["OfJob", "titles_of"]


class OfJob(Protocol):
    @property
    def job_id(self) -> int: ...

    @property
    def key(self) -> str | None: ...


async def titles_of(clock: Clock, service: Service, tenant: int, runs: Sequence[OfJob]) -> dict[int, str]:
    """By the id of the job: its name, or else its key. If names can't be read, keys have to do."""
    found = await load(clock, service.job_names(tenant, list({run.job_id for run in runs})))
    names: dict[int, str] = found.value or {}
    return {run.job_id: names.get(run.job_id) or run.key or f"Job {run.job_id}" for run in runs}
