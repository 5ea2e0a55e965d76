"""Timers: one POST to one URL, once."""

from __future__ import annotations

from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import read_json
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.path_ids import whole_id
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.model.timer import TimerSpec, TimerView

__all__ = ["routes", "timer_created"]


@operation(
    "POST",
    "/timers",
    "write",
    group="Timers",
    body=TimerSpec,
    answers={201: TimerView},
    problems=(409,),
    idempotent=True,
    example={"hours": 0, "minutes": 0, "seconds": 10, "url": "http://127.0.0.1:5003/"},
)
async def create_timer(request: Request) -> HttpResponse:
    """Create a timer.

    When it expires, it sends one POST request to the URL.
    """
    spec = await read_json(request, TimerSpec)
    timer = await service_of(request).create_timer(tenant_of(request), spec, await idempotency_key(request))
    return timer_created(timer)


def timer_created(timer: TimerView) -> HttpResponse:
    return responses.json(timer, 201, {"location": f"/timers/{timer.id}"})


@operation("GET", "/timers/{timer_id}", "read", group="Timers", answers={200: TimerView})
async def get_timer(request: Request) -> HttpResponse:
    """Read a timer.

    `time_left` is in whole seconds, rounded up; 0 once it is due.
    """
    timer_id = whole_id(request, "timer_id", "timer")
    return responses.json(await service_of(request).get_timer(tenant_of(request), timer_id))


routes = [create_timer, get_timer]
