"""The page of what is to come: the next firings of all jobs, and starts per minute of the next day."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from starlette.requests import Request

from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.http.query_params import choice, instant, text
from onthedot.api.http.responses import HttpResponse
from onthedot.errors import Invalid
from onthedot.model.duration import DAY, HOUR, MINUTE
from onthedot.model.instant import format_instant, parse_rfc3339
from onthedot.model.upcoming import BusyMinute, Forecast, ForecastJob
from onthedot.web import words
from onthedot.web.charts import BarChart, bar_chart, busiest_of
from onthedot.web.forms import read_form
from onthedot.web.page import action, asked_of, done, page, show
from onthedot.web.parts import Part, load_slow

__all__ = ["routes"]

PAGE = 100
WITHIN = {"hour": HOUR, "day": DAY, "week": 7 * DAY}
ASKED = (
    choice("within", "How far to look ahead; default: day", WITHIN),
    instant("until", "The end of what is listed; a cursor belongs to it"),
    text("cursor", "Cursor of the next page", longest=1000),
)
FORECAST_SECONDS = 0.1
"""It is computed once a minute, and with many jobs for seconds: it goes on, and is shown when it is there."""
BUCKET = 10  # minutes of one bar


class NextDay(msgspec.Struct, frozen=True):
    """The forecast as a chart. `usual`: what starts in each of the busiest minutes. `above`: how many minutes have more
    starts than any of the last day."""

    chart: BarChart
    forecast: Forecast
    usual: list[ForecastJob]
    starts: int
    above: int


@page("/upcoming", query=ASKED)
async def upcoming(request: Request) -> HttpResponse:
    """The page of upcoming firings."""
    asked = asked_of(request, ASKED)
    service, tenant, clock = service_of(request), tenant_of(request), context_of(request).clock
    until = asked["until"] or clock.now_ms() + WITHIN[asked["within"] or "day"]
    found = await service.upcoming(tenant, until, PAGE, asked["cursor"])
    ahead = await load_slow(clock, service.forecast(tenant), FORECAST_SECONDS)
    return await show(
        request,
        "upcoming.html",
        asked=asked,
        found=found,
        ahead=ahead if ahead.pending or ahead.error is not None else Part(next_day(ahead.value)),
        spans=[("hour", "Next hour"), ("week", "Next 7 days")],
    )


@action("/upcoming/skip")
async def skip(request: Request) -> HttpResponse:
    """Leave out the next firing of a job."""
    form = await read_form(request, "job_id", "slot")
    given = form.text("job_id")
    if not (given.isascii() and given.isdigit() and 0 < len(given) < 19):
        raise Invalid.one("job_id", "not a job id", given=given[:100], accepted="the id of a job")
    job = await service_of(request).skip_slot(tenant_of(request), int(given), form.text("slot"))
    said = f"{words.title(job)} does not fire at {words.utc(form.text('slot'))}. Its next run is {_next(job.next_run)}."
    return done(request, said, form.back("/upcoming"))


def _next(at: str | None) -> str:
    return "none" if at is None else words.utc(at)


def next_day(forecast: Forecast) -> NextDay:
    """A bar is the busiest minute of ten: an average would hide what nodes have to cope with."""
    since = parse_rfc3339(forecast.since) or 0
    highest = [max(forecast.starts[first : first + BUCKET]) for first in range(0, len(forecast.starts), BUCKET)]
    marked = busiest_of(highest)
    points: list[tuple[str, float, str]] = []
    for number, most in enumerate(highest):
        at = format_instant(since + number * BUCKET * MINUTE)
        points.append((f"{at[:10]} {at[11:16]} UTC", float(most), "busy" if number == marked else ""))
    measured = forecast.measured_per_minute
    chart = bar_chart(points)
    return NextDay(
        usual=_usual(forecast.busiest),
        chart=msgspec.structs.replace(chart, first="now", last=f"in {len(forecast.starts) // 60} h"),
        forecast=forecast,
        starts=sum(forecast.starts),
        above=sum(1 for each in forecast.starts if each > measured) if measured else 0,
    )


def _usual(busiest: Sequence[BusyMinute]) -> list[ForecastJob]:
    """Jobs that start in each of these minutes, and as often: said once, they don't hide what makes one busier."""
    first, others = busiest[:1], busiest[1:]
    return [job for minute in first for job in minute.jobs if others and all(job in each.jobs for each in others)]


routes = [upcoming, skip]
