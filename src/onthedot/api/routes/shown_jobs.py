"""Jobs as whoever asks may see them: one that runs elsewhere has the URL at which it reports."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request

from onthedot.api.auth import may
from onthedot.api.context import base_of, principal_of, service_of
from onthedot.model.job import JobView

__all__ = ["shown", "shown_all"]


async def shown(request: Request, job: JobView) -> JobView:
    return job if job.target.report_within is None else (await shown_all(request, [job]))[0]


async def shown_all(request: Request, jobs: Sequence[JobView]) -> list[JobView]:
    reveal = may(principal_of(request), "write")
    return await service_of(request).with_ping(jobs, base_of(request), reveal=reveal)
