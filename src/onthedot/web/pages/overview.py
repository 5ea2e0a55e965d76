"""The overview: is everything firing on time?

Nothing here counts a big table: charts come from what a duty has counted, lists are the first of an index, and numbers
end at `LOOKED_AT`; that of dead letters at 10,000, as often as its price allows. Each part has its own time limit.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.requests import Request

from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.http.query_params import flag
from onthedot.api.http.responses import HttpResponse
from onthedot.clock import Clock
from onthedot.model.dead import DeadGroups, DeadLetterView
from onthedot.model.duration import DAY, HOUR, MINUTE
from onthedot.model.instant import format_instant, parse_rfc3339
from onthedot.model.run import RunView
from onthedot.model.series import StatsPoint, StatsSeries
from onthedot.model.upcoming import Forecast
from onthedot.service import Service
from onthedot.store import JobFilter, LetterFilter, Page, RunFilter
from onthedot.web import words
from onthedot.web.charts import BarChart, LineChart, bar_chart, busiest_of, line_chart, result_chart
from onthedot.web.concerns import BoundedCount, concerns_of
from onthedot.web.job_titles import titles_of
from onthedot.web.paced import Paced
from onthedot.web.page import asked_of, is_refresh, page, show
from onthedot.web.parts import Part, load_all, load_slow
from onthedot.web.templating import FREEZE

__all__ = ["dead_letters_of", "failures_of", "routes", "span_of"]

LOOKED_AT = 100
COUNTED_DEAD = 10_000
SHOWN = 6
ASKED = (flag("wall", "For a screen on a wall: large, without navigation"),)
FORECAST_SECONDS = 0.1
"""It is computed once a minute, and with many jobs for seconds: it goes on, and is shown when it is there."""
UNTOLD = "no reason was recorded"

_paced = Paced()


class ChartedSpan(msgspec.Struct, frozen=True, kw_only=True):
    """What ended in the last hour or day: the charts, and their sums."""

    since: str
    counted_until: str | None
    fired: int
    failed: int
    results: BarChart
    lateness: LineChart
    fires: bool  # whether anything fired at all
    behind: bool  # nobody counts: the numbers are old


class Ahead(msgspec.Struct, frozen=True, kw_only=True):
    """The coming hour."""

    chart: BarChart
    starts: int
    busiest: str | None  # when, RFC 3339
    most: int
    complete: bool
    jobs: int


class DeadCause(msgspec.Struct, frozen=True):
    """Dead letters of one cause. `last`: the newest of them, if it is among the newest of all."""

    reason: str
    count: int
    at: str
    last: DeadLetterView | None


class DeadLetterSummary(msgspec.Struct, frozen=True):
    """How many, and the commonest causes."""

    total: BoundedCount = BoundedCount(0)
    causes: Sequence[DeadCause] = ()


class Cause(msgspec.Struct, frozen=True):
    """Why runs failed, how many of the newest did for the same reason, and the newest of these."""

    reason: str
    count: int
    last: RunView


@page("/", query=ASKED)
async def overview(request: Request) -> HttpResponse:
    """The overview page."""
    asked = asked_of(request, ASKED)
    service, tenant, clock = service_of(request), tenant_of(request), context_of(request).clock
    coming = await service.list_jobs(tenant, JobFilter(sort="next", ended=False, limit=SHOWN))
    now = clock.now_ms()
    soon = asyncio.ensure_future(load_slow(clock, service.forecast(tenant, 1), FORECAST_SECONDS))
    parts = await load_all(
        clock,
        minutes=service.stats_series(tenant, "minute", now - HOUR - 2 * MINUTE),
        hours=service.stats_series(tenant, "hour", now - DAY),
        backlog=service.backlog(),
        failing=service.list_jobs(tenant, JobFilter(failing=True, ended=False, limit=LOOKED_AT)),
        late=service.list_jobs(tenant, JobFilter(late=True, ended=False, limit=LOOKED_AT)),
        failures=service.list_runs(tenant, RunFilter(status="FAILED", limit=LOOKED_AT // 2)),
        dead=_dead(clock, service, tenant, fresh=not is_refresh(request)),
        proof=service.proof(tenant),
        destinations=service.list_destinations(tenant),
        nodes=service.list_nodes(),
    )
    failed = parts["failures"].value.items if parts["failures"].value else []
    listed = [*failed, *(each.last for each in (parts["dead"].value or DeadLetterSummary()).causes if each.last)]
    titles = await titles_of(clock, service, tenant, listed)
    failing, late = _count(parts["failing"]), _count(parts["late"])
    known = {name: parts[name].value for name in ("nodes", "backlog", "destinations", "proof")}
    return await show(
        request,
        "overview.html",
        wall=asked["wall"],
        coming=sorted((job for job in coming.items if job.next_run), key=lambda job: job.next_run or ""),
        has_jobs=bool(coming.items),
        concerns=concerns_of(paused=request.scope.get(FREEZE) is not None, failing=failing, late=late, **known),
        unknown=sorted(name for name, part in parts.items() if part.error is not None),
        failing=failing,
        late=late,
        spans=[
            ("Last hour", "per minute", _drawn(parts["minutes"], span_of, now, "minute")),
            ("Last day", "per hour", _drawn(parts["hours"], span_of, now, "hour")),
        ],
        ahead=_drawn(await soon, _ahead),
        failures=_drawn(parts["failures"], lambda found: failures_of(found.items)),
        title=words.title,
        titles=titles,
        **{name: parts[name] for name in ("backlog", "dead", "proof", "nodes")},
    )


def _drawn(part: Part, draw: Any, *more: Any) -> Part:
    """The part with what is shown of it, or its error."""
    return part if part.error is not None or part.pending else Part(draw(part.value, *more))


def _of_page(found: Page[Any]) -> BoundedCount:
    return BoundedCount(len(found.items), found.next is not None)


def _count(part: Part) -> BoundedCount | None:
    return None if part.error is not None else _of_page(part.value)


def span_of(series: StatsSeries, now: int, step: str) -> ChartedSpan:
    """Up to what is counted: minutes that nobody has counted yet are not minutes in which nothing fired."""
    until = parse_rfc3339(series.counted_until or "")
    points = [each for each in series.items if until is None or (parse_rfc3339(each.at) or 0) < until]
    points = points[-60:] if step == "minute" else points[-24:]
    labels = [_label(point) for point in points]
    ends = {"first": f"{len(points)} {'min' if step == 'minute' else 'h'} ago", "last": "now"}
    results = result_chart([(label, each.firings, each.failed) for label, each in zip(labels, points, strict=True)])
    late = line_chart(
        labels,
        [
            ("p99", "", [each.lateness_p99_ms for each in points]),
            ("p50", "quiet", [each.lateness_p50_ms for each in points]),
        ],
        unit=" ms",
    )
    most = max((each.lateness_p99_ms or 0 for each in points), default=0)
    return ChartedSpan(
        since=points[0].at if points else series.since,
        counted_until=series.counted_until,
        fired=sum(each.firings for each in points),
        failed=sum(each.failed for each in points),
        results=msgspec.structs.replace(results, **ends),
        lateness=msgspec.structs.replace(late, labels=[ends["first"], ends["last"]], top=words.how_long(most)),
        fires=any(each.firings for each in points),
        behind=until is not None and now - until > 5 * MINUTE,
    )


def _label(point: StatsPoint) -> str:
    return f"{point.at[:10]} {point.at[11:16]} UTC"


def _ahead(forecast: Forecast) -> Ahead:
    starts = forecast.starts[:60]
    most = max(starts, default=0)
    since = parse_rfc3339(forecast.since) or 0
    marked = busiest_of(starts)
    points = [
        (f"{format_instant(since + number * MINUTE)[11:16]} UTC", float(count), "busy" if number == marked else "")
        for number, count in enumerate(starts)
    ]
    chart = bar_chart(points, height=60)
    return Ahead(
        chart=msgspec.structs.replace(chart, first="now", last="in 1 h"),
        starts=sum(starts),
        busiest=None if marked is None else format_instant(since + marked * MINUTE),
        most=most,
        complete=forecast.complete,
        jobs=forecast.jobs,
    )


async def _dead(clock: Clock, service: Service, tenant: int, *, fresh: bool) -> DeadLetterSummary:
    newest = (await service.list_dead(tenant, limit=LOOKED_AT)).items
    if not newest:
        return DeadLetterSummary()
    key = id(service), tenant
    groups = await _paced.get(clock, key, lambda: service.group_dead(tenant, LetterFilter()), fresh=fresh)
    return dead_letters_of(groups, newest)


def dead_letters_of(groups: DeadGroups, newest: Sequence[DeadLetterView]) -> DeadLetterSummary:
    """`newest`: in order, the newest first."""
    total = sum(group.count for group in groups.items)
    last = {letter.cause: letter for letter in reversed(newest)}
    common = sorted(groups.items, key=lambda group: -group.count)[:SHOWN]
    return DeadLetterSummary(
        BoundedCount(min(total, COUNTED_DEAD), more=not groups.exact),
        [DeadCause(group.cause, group.count, group.last_at, last.get(group.cause)) for group in common],
    )


def failures_of(runs: Sequence[RunView]) -> list[Cause]:
    """What failed last, the latest first: a job that fails again and again for the same reason stands once. They come
    by the time that they were due, and a run may fail long after that."""
    ended = sorted(runs, key=lambda run: run.finished_at or run.scheduled_for)
    counts = Counter((run.job_id, _reason(run)) for run in reversed(ended))
    newest = {(run.job_id, _reason(run)): run for run in ended}
    return [Cause(key[1], count, newest[key]) for key, count in counts.items()][:SHOWN]


def _reason(run: RunView) -> str:
    return run.error or run.reason or UNTOLD


routes = [overview]
