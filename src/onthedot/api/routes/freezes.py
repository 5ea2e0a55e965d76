"""Pausing and resuming the whole installation."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import EmptyBody, read_optional_json
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import KIB, operation
from onthedot.model.freeze import Freeze
from onthedot.model.struct import Strict

__all__ = ["routes"]


class FreezeNote(Strict, frozen=True, kw_only=True):
    """Why the installation is paused."""

    note: Annotated[str, msgspec.Meta(max_length=1000)] | None = None


class InstallationState(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the whole installation is paused, and if so, since when and why."""

    paused: bool
    freeze: Freeze | None


@operation(
    "POST",
    "/v1/pause",
    "admin",
    group="Cluster",
    body=FreezeNote,
    body_required=False,
    answers={200: InstallationState},
    idempotent=True,
    limit=16 * KIB,
    example={"note": "database maintenance"},
)
async def pause_installation(request: Request) -> HttpResponse:
    """Pause the whole installation.

    Within a second no run starts but those that are requested explicitly, on any node, also on nodes that are started
    later. What runs goes on. Only for admins of the default tenant.
    """
    asked = await read_optional_json(request, FreezeNote)
    found = await service_of(request).freeze(tenant_of(request), asked.note, await idempotency_key(request))
    return responses.json(InstallationState(paused=True, freeze=found))


@operation(
    "POST",
    "/v1/resume",
    "admin",
    group="Cluster",
    body=EmptyBody,
    body_required=False,
    answers={200: InstallationState},
    idempotent=True,
    limit=16 * KIB,
)
async def resume_installation(request: Request) -> HttpResponse:
    """Resume the whole installation.

    Slots missed during the pause are not run, they are recorded as skipped with the reason `paused`; one-off runs and
    retries start late. Jobs that were paused individually stay paused.
    """
    await read_optional_json(request, EmptyBody)
    await service_of(request).unfreeze(tenant_of(request), await idempotency_key(request))
    return responses.json(InstallationState(paused=False, freeze=None))


routes = [pause_installation, resume_installation]
