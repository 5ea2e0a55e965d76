"""The page of one destination: its circuit breaker, how calls go there on each node, its jobs and their failures."""

from __future__ import annotations

from starlette.requests import Request

from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.http.path_ids import destination_of, job_of_run
from onthedot.api.http.responses import HttpResponse
from onthedot.model.dead import DeadGroup
from onthedot.model.destination import DestinationDetail
from onthedot.service import Service
from onthedot.store import LetterFilter
from onthedot.web.page import asked_of, page, show
from onthedot.web.parts import load_all

__all__ = ["routes"]

GROUPS = 5


@page("/destinations/{destination}")
async def destination(request: Request) -> HttpResponse:
    """The page of a destination."""
    return await _show(request)


@page("/destinations/{scheme}/{host}")
async def destination_with_slashes(request: Request) -> HttpResponse:
    """The same, for proxies that replace `%2F%2F` by a slash."""
    return await _show(request)


async def _show(request: Request) -> HttpResponse:
    asked_of(request, ())
    service, tenant = service_of(request), tenant_of(request)
    found = await service.get_destination(tenant, destination_of(request))
    failed = {job_of_run(run.id) for run in found.failed_runs}
    parts = await load_all(
        context_of(request).clock,
        names=service.node_names(each.node for each in found.nodes),
        titles=service.job_names(tenant, sorted(failed)),
        dead=_dead(service, tenant, found.destination),
    )
    return await show(
        request,
        "destination.html",
        place=found,
        verdict=_verdict(found),
        names=parts["names"].value or {},
        titles={job.id: job.name or job.key or f"Job {job.id}" for job in found.jobs} | (parts["titles"].value or {}),
        dead=parts["dead"],
    )


async def _dead(service: Service, tenant: int, name: str) -> list[DeadGroup]:
    """Causes that name it, the last first."""
    groups = (await service.group_dead(tenant, LetterFilter())).items
    return [each for each in groups if name in each.cause][:GROUPS]


def _verdict(found: DestinationDetail) -> tuple[str, str]:
    """Its tone, and what it is."""
    if found.breaker == "open":
        return (
            "bad",
            f"Its last {found.failures:,} calls failed, so runs wait. One is sent every 10 s to see if it is back.",
        )
    if found.breaker == "half_open":
        return "warn", f"Its last {found.failures:,} calls failed. One run is on its way to see whether it is back."
    if found.failures:
        return "warn", f"Its last {found.failures:,} calls failed. After 10 in a row its runs wait until it answers."
    if not found.nodes:
        return "", "It was not called within the last minute."
    if found.waiting:
        return "warn", "It answers, and has as many calls open as it may: runs wait for their turn."
    return "good", "It answers."


routes = [destination, destination_with_slashes]
