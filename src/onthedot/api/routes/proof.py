"""The proof that every slot was decided once."""

from __future__ import annotations

from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.model.proof import Proof

__all__ = ["routes"]


@operation("GET", "/v1/proof", "read", group="Cluster", answers={200: Proof})
async def proof(request: Request) -> HttpResponse:
    """Read the proof.

    Slots of the last 24 hours that should have been decided, computed independently of the scheduler, compared with the
    history: how many were decided, which are missing, which were decided twice.
    """
    return responses.json(await service_of(request).proof(tenant_of(request)))


routes = [proof]
