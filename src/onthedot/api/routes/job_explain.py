"""What became of the slots of a job: at an instant, in a range, by days."""

from __future__ import annotations

from urllib.parse import urlencode

import msgspec
from starlette.requests import Request

from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.query_params import instant, integer, read_query, text
from onthedot.api.http.responses import HttpResponse
from onthedot.api.routes.job_routes import on_job
from onthedot.errors import Invalid
from onthedot.model.instant import format_instant
from onthedot.model.preview import Explanation
from onthedot.model.slots import ExplainedSlots, JobCalendar

__all__ = ["routes"]

SLOTS = (
    instant("at", "The instant to explain; default: now"),
    instant("since", "Explain each slot from this instant on; default: 7 days before `until`"),
    instant("until", "Explain each slot up to this instant; default: 7 days after `since`"),
    integer("limit", "With `since` or `until`: number of slots", 1, 1000, 1000),
)
DAYS = (
    instant("since", "From the day of this instant on; default: 90 days before `until`"),
    instant("until", "Up to the day of this instant; default: 90 days after `since`, or 30 days from now"),
    text("tz", "Time zone of the days; default: that of the schedule", longest=100),
)


@on_job("GET", "explain", "read", query=SLOTS, answers={200: Explanation | ExplainedSlots})
async def explain_job(request: Request, job_id: int) -> HttpResponse:
    """Explain a job at an instant or in a range.

    Why it fired, did not fire, or will fire at that instant. With `since` or `until`: what became of each slot of that
    range, the newest first.
    """
    asked = read_query(request.scope["query_string"], SLOTS)
    at, since, until = asked["at"], asked["since"], asked["until"]
    if since is None and until is None:
        moment = format_instant(context_of(request).clock.now_ms() if at is None else at)
        return responses.json(await service_of(request).explain(tenant_of(request), job_id, moment))
    if at is not None:
        accepted = "either at, or since and until"
        raise Invalid.one("at", "can't be combined with since or until", given=format_instant(at), accepted=accepted)
    found = await service_of(request).explain_slots(tenant_of(request), job_id, since, until, asked["limit"])
    if found.next is None:
        return responses.json(found)
    query = urlencode({"since": found.since, "until": found.next, "limit": asked["limit"]})
    following = f"{request.scope['path']}?{query}"
    return responses.json(
        msgspec.structs.replace(found, next=following), headers={"link": f'<{following}>; rel="next"'}
    )


@on_job("GET", "calendar", "read", query=DAYS, answers={200: JobCalendar})
async def job_calendar(request: Request, job_id: int) -> HttpResponse:
    """Read the calendar of a job.

    Runs and planned slots of each day, of at most 400 days. The newest 50,000 runs are counted.
    """
    asked = read_query(request.scope["query_string"], DAYS)
    return responses.json(await service_of(request).job_calendar(tenant_of(request), job_id, **asked))


routes = [*explain_job, *job_calendar]
