"""Preview of a schedule."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import read_json
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.model.preview import Preview
from onthedot.model.schedule import Schedule
from onthedot.model.struct import Strict

__all__ = ["routes"]


class PreviewRequest(Strict, frozen=True, kw_only=True):
    schedule: Schedule
    after: str | None = None
    count: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10


@operation(
    "POST",
    "/v1/preview",
    "read",
    group="Schedules",
    body=PreviewRequest,
    answers={200: Preview},
    example={"schedule": {"cron": "0 3 * * *", "tz": "Europe/Berlin"}, "count": 5},
)
async def preview(request: Request) -> HttpResponse:
    """Preview a schedule.

    The next fire times, a description in words, and remarks on daylight saving time.
    """
    asked = await read_json(request, PreviewRequest)
    return responses.json(await service_of(request).preview(asked.schedule, asked.after, asked.count))


routes = [preview]
