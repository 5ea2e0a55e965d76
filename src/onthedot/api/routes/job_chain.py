"""The jobs before and after a job in chains."""

from __future__ import annotations

from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.responses import HttpResponse
from onthedot.api.routes.job_routes import on_job
from onthedot.model.chains import ChainNeighbours

__all__ = ["routes"]


@on_job("GET", "chain", "read", answers={200: ChainNeighbours})
async def chain_of_job(request: Request, job_id: int) -> HttpResponse:
    """Read the neighbours of a job in chains.

    The jobs that its end starts, and the jobs whose ends start it.
    """
    return responses.json(await service_of(request).chain_of(tenant_of(request), job_id))


routes = [*chain_of_job]
