"""Slots to come of a job: which there are, skip one, take that back."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import read_json
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.if_match import version_named
from onthedot.api.http.query_params import integer, read_query
from onthedot.api.http.responses import HttpResponse
from onthedot.api.routes.job_routes import on_job
from onthedot.api.routes.shown_jobs import shown
from onthedot.model.job import JobView
from onthedot.model.struct import Strict
from onthedot.model.upcoming_slots import UpcomingSlots

__all__ = ["routes"]

COUNT = (integer("count", "How many slots", 1, 100, 10),)


class SlotToSkip(Strict, frozen=True, kw_only=True):
    """`slot` (RFC 3339): an instant of the schedule that has not come yet."""

    slot: str


_SAID: dict[str, Any] = {
    "body": SlotToSkip,
    "example": {"slot": "2100-01-01T03:00:00Z"},
    "answers": {200: JobView},
    "problems": (409,),
    "idempotent": True,
    "conditional": True,
    "etag": True,
}


@on_job("GET", "upcoming", "read", query=COUNT, answers={200: UpcomingSlots})
async def upcoming_slots(request: Request, job_id: int) -> HttpResponse:
    """List the next slots of a job.

    When it will fire, and which slots to come were skipped, by whom.
    """
    asked = read_query(request.scope["query_string"], COUNT)
    return responses.json(await service_of(request).upcoming_slots(tenant_of(request), job_id, asked["count"]))


@on_job("POST", "skip", "write", **_SAID)
async def skip_slot(request: Request, job_id: int) -> HttpResponse:
    """Skip a slot of a job.

    The job will not fire at this instant of its schedule, which must not have come yet. The slot is in the history from
    now on, SKIPPED with the reason `skipped`, and counts towards `count`. 409 if a node already has its run.
    """
    asked = await read_json(request, SlotToSkip)
    key, version = await idempotency_key(request), await version_named(request, job_id)
    job = await service_of(request).skip_slot(tenant_of(request), job_id, asked.slot, version, key)
    return responses.job_answer(await shown(request, job))


@on_job("POST", "unskip", "write", **_SAID)
async def unskip_slot(request: Request, job_id: int) -> HttpResponse:
    """Take back a skip.

    The job fires at this slot after all. 409 if the slot is not skipped, or has passed.
    """
    asked = await read_json(request, SlotToSkip)
    key, version = await idempotency_key(request), await version_named(request, job_id)
    job = await service_of(request).unskip_slot(tenant_of(request), job_id, asked.slot, version, key)
    return responses.job_answer(await shown(request, job))


routes = [*upcoming_slots, *skip_slot, *unskip_slot]
