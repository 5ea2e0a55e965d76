"""The page of one job: what it is, when it fires next, how it went, why it did or did not run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, get_args

import msgspec
from starlette.requests import Request

from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.http.path_ids import job_id_of
from onthedot.api.http.query_params import choice, flag, text
from onthedot.api.http.responses import HttpResponse
from onthedot.api.routes.shown_jobs import shown
from onthedot.clock import Clock
from onthedot.errors import Invalid, NotFound
from onthedot.model.instant import format_instant, parse_rfc3339
from onthedot.model.job import JobView
from onthedot.model.ping import Ping
from onthedot.model.preview import Explanation
from onthedot.model.run import RunStatus, RunView, TriggerKind
from onthedot.service import Service
from onthedot.service.previews import SKIPPED
from onthedot.store import RunFilter
from onthedot.timing.zones import zone
from onthedot.web import words
from onthedot.web.charts import BarChart, bar_chart, strip_bars
from onthedot.web.day_slots import DaySlot, day_bounds, day_slots, read_day, with_reasons
from onthedot.web.definition import definition, loose_job
from onthedot.web.deleted_job import deleted_job
from onthedot.web.form.reading import pretty
from onthedot.web.heat_map import HeatMap, first_and_last, heat_map
from onthedot.web.local_time import FireTime, fire_times, in_zone, read_instant
from onthedot.web.paced import Paced
from onthedot.web.page import asked_of, is_refresh, page, show
from onthedot.web.parts import load_all, load_slow
from onthedot.web.run_story import TRIGGERS, trigger_words

__all__ = ["routes"]

FIRINGS = 10
CHARTED = 100
LISTED = 25
VERSIONS = 20
DAY_SLOTS = 1000
DAY_RUNS = 200
INCIDENTS = 10
CALENDAR_SECONDS = 0.1
"""Of a job with tens of thousands of runs it takes longer: it goes on, and is shown when it is there."""
ASKED = (
    text("q", "Runs whose error, or whose reason for not being carried out, contains this text", longest=200),
    choice("status", "Runs with this status", get_args(RunStatus)),
    choice("trigger", "Runs started by this", get_args(TriggerKind)),
    flag("late", "Whether they started late", default=None),
    text("since", "Runs scheduled for this time or later: with an offset, or in the time zone of the job", longest=50),
    text(
        "until", "Runs scheduled for this time or earlier: with an offset, or in the time zone of the job", longest=50
    ),
    text("cursor", "Cursor of the next page of runs", longest=1000),
    text("day", "Show the firings of this day, in the time zone of the job", longest=10),
    text("at", "Why it ran, or did not run, at this time: with an offset, or in the time zone of the job", longest=50),
)
FILTERS = ("q", "status", "trigger", "late", "since", "until")
"""Of these, those of the list of runs."""

_paced = Paced()


class JobRunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the list of runs, as text."""

    id: str
    at: str
    status: str
    reason: str | None
    trigger: str
    started: str | None
    duration: int | None
    lateness: int | None
    node: str | None
    tries: int


class FiringRow(msgspec.Struct, frozen=True, kw_only=True):
    """One of the next firings, or a slot to come that was skipped."""

    time: FireTime
    skipped: bool
    skipped_by: str | None


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The last runs as charts."""

    strip: Any
    strip_words: str
    durations: BarChart
    lateness: BarChart
    runs: int


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Why the job ran, or did not run, at an instant. `fill`: it can be run for that instant now."""

    asked: Explanation
    local: str
    fill: bool


class DayAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the firings of a day. `hidden`: so many more, which are not shown."""

    date: str
    title: str
    since: str
    until: str
    slots: list[DaySlot]
    hidden: int
    missing: int


@page("/jobs/{job_id}", query=ASKED)
async def job(request: Request) -> HttpResponse:
    """The page of a job."""
    asked = asked_of(request, ASKED)
    service, tenant = service_of(request), tenant_of(request)
    try:
        found = await shown(request, await service.get_job(tenant, job_id_of(request)))
    except NotFound:
        gone = None if is_refresh(request) else await deleted_job(request, job_id_of(request))
        if gone is None:
            raise
        return gone
    wanted = _wanted(found, asked)
    clock, fresh = context_of(request).clock, not is_refresh(request)
    now, of_job = clock.now_ms(), (id(service), tenant, found.id)
    calendar = _paced.going_on(clock, of_job, lambda: _calendar(service, tenant, found, now), fresh=fresh)
    days = asyncio.ensure_future(load_slow(clock, calendar, CALENDAR_SECONDS))
    parts = await load_all(
        clock,
        firings=_firings(service, tenant, found),
        history=_history(service, tenant, found),
        runs=_runs(service, tenant, wanted),
        chain=service.chain_of(tenant, found.id),
        answer=_answer(service, tenant, found, asked["at"], now),
        day=_chosen_day(clock, service, tenant, found, asked["day"], fresh),
        warnings=_warnings(service, tenant, found),
        paused_by=_paused_by(service, tenant, found),
        pings=_pings(service, found),
        incidents=service.list_incidents(tenant, job=str(found.id), limit=INCIDENTS),
    )
    return await show(
        request,
        "job.html",
        job=found,
        title=words.title(found),
        asked=asked,
        at="/jobs/" + str(found.id),
        facts=definition(found),
        written=pretty(loose_job(found)),
        statuses=[(status, words.status_words(status).capitalize()) for status in get_args(RunStatus)],
        triggers=TRIGGERS,
        filters=_as_text({name: asked[name] for name in FILTERS}),
        no_filters=dict.fromkeys(FILTERS),
        is_filtered=any(asked[name] is not None for name in FILTERS),
        typed={name: _typed(asked[name], found.schedule.tz) for name in ("at", "since", "until")},
        calendar=await days,
        **parts,
    )


async def _pings(service: Service, job: JobView) -> list[Ping]:
    return [] if job.target.report_within is None else await service.recent_pings(job.id)


async def _firings(service: Service, tenant: int, job: JobView) -> list[FiringRow]:
    ahead = await service.upcoming_slots(tenant, job.id, FIRINGS)
    skipped = {each.slot: words.actor_words(each.actor, each.actor_kind) for each in ahead.skipped}
    times = fire_times(sorted({*ahead.fires, *skipped}), job.schedule.tz)
    return [FiringRow(time=each, skipped=each.at in skipped, skipped_by=skipped.get(each.at)) for each in times]


async def _history(service: Service, tenant: int, job: JobView) -> History:
    page = await service.list_runs(tenant, RunFilter(job_id=job.id, limit=CHARTED))
    runs = [run for run in reversed(page.items) if run.status != "PENDING"]
    results = [(run.status, _in_short(run)) for run in runs]
    return History(
        strip=strip_bars(results),
        strip_words=_strip_words([status for status, _ in results[-20:]]),
        durations=_chart(runs, [run.duration_ms for run in runs]),
        lateness=_chart(runs, [run.lateness_ms for run in runs]),
        runs=sum(1 for run in runs if run.duration_ms is not None),
    )


def _in_short(run: RunView) -> str:
    told = f"{words.utc(run.scheduled_for)}: {words.status_words(run.status)}"
    reason = _reason(run)
    return told if reason is None else f"{told}, {reason}"


def _strip_words(statuses: Sequence[str]) -> str:
    if not statuses:
        return "No runs yet"
    counts = {status: statuses.count(status) for status in dict.fromkeys(statuses)}
    told = ", ".join(f"{count} {words.status_words(status)}" for status, count in counts.items())
    return f"The last {words.count_words(len(statuses), 'run')}: {told}"


def _chart(runs: Sequence[RunView], values: Sequence[int | None]) -> BarChart:
    size, unit = _unit(max((value for value in values if value is not None), default=0))
    return bar_chart(
        [
            (words.utc(run.scheduled_for), round(value / size, 2), "bad" if run.status == "FAILED" else "")
            for run, value in zip(runs, values, strict=True)
            if value is not None
        ],
        unit=unit,
    )


def _unit(most: int) -> tuple[int, str]:
    for limit, size, unit in ((2000, 1, " ms"), (120_000, 1000, " s"), (7_200_000, 60_000, " min")):
        if most < limit:
            return size, unit
    return 3_600_000, " h"


def _wanted(job: JobView, asked: Mapping[str, Any]) -> RunFilter:
    """Which runs the list shows. Times are those of the job's zone, as everywhere on its page."""
    given = {name: asked[name] for name in ("q", "status", "trigger", "late", "cursor")}
    for name in ("since", "until"):
        if asked[name] is not None:
            given[name] = parse_rfc3339(read_instant(name, asked[name], job.schedule.tz))
    return RunFilter(job_id=job.id, limit=LISTED, **given)


async def _runs(service: Service, tenant: int, wanted: RunFilter) -> Any:
    page = await service.list_runs(tenant, wanted)
    names = await service.node_names(run.node for run in page.items)
    return [_row(run, names) for run in page.items], page.next


def _row(run: RunView, nodes: Mapping[str, str]) -> JobRunRow:
    return JobRunRow(
        id=run.id,
        at=run.scheduled_for,
        status=run.status,
        reason=_reason(run),
        trigger=trigger_words(run),
        started=run.started_at,
        duration=run.duration_ms,
        lateness=run.lateness_ms,
        node=words.node_name(run.node, nodes),
        tries=run.tries,
    )


def _reason(run: RunView) -> str | None:
    if run.status == "SKIPPED" and run.reason == "skipped":
        said = run.outcome or {}
        return f"left out by {words.actor_words(said.get('actor'), said.get('actor_kind')) or 'a user'}"
    if run.status == "SKIPPED":
        told = SKIPPED.get(run.reason or "", run.reason or "")
        if run.until is not None and run.until != run.scheduled_for:
            slots = "more than 10,000 firings" if run.slots is None else words.count_words(run.slots, "firing")
            told = f"{slots} until {words.utc(run.until)}; {told}"
        return told
    if run.waiting is not None and run.waiting_for is not None:
        return f"waits for {run.waiting_for}"
    return run.error


async def _answer(service: Service, tenant: int, job: JobView, at: str | None, now: int) -> Answer | None:
    if at is None:
        return None
    moment = read_instant("at", at, job.schedule.tz)
    told = await service.explain(tenant, job.id, moment)
    done = told.run is not None and told.run.status not in ("SKIPPED", "FAILED", "CANCELLED")
    fill = told.slot and not done and (parse_rfc3339(moment) or 0) <= now
    return Answer(asked=told, local=in_zone(moment, job.schedule.tz).replace("T", " "), fill=fill)


async def _calendar(service: Service, tenant: int, job: JobView, now: int) -> HeatMap:
    tz = job.schedule.tz
    today = datetime.fromtimestamp(now / 1000, zone(tz)).date()
    first, last = first_and_last(today)
    found = await service.job_calendar(tenant, job.id, day_bounds(first, tz)[0], day_bounds(last, tz)[1], tz)
    return heat_map(found.items, today)


async def _chosen_day(
    clock: Clock, service: Service, tenant: int, job: JobView, asked: str | None, fresh: bool
) -> DayAnswer | None:
    if asked is None:
        return None
    key = id(service), tenant, job.id, asked
    found: DayAnswer = await _paced.get(
        clock, key, lambda: _day(service, tenant, job, asked, clock.now_ms()), fresh=fresh
    )
    return found


async def _day(service: Service, tenant: int, job: JobView, asked: str, now: int) -> DayAnswer:
    day, tz = read_day(asked), job.schedule.tz
    since, until = day_bounds(day, tz)
    found = await service.explain_slots(tenant, job.id, since, until, DAY_SLOTS)
    rows, hidden = day_slots(found.items, tz)
    missing = sum(1 for each in found.items if each.status == "missing" or each.outcome in ("FAILED", "CANCELLED"))
    return DayAnswer(
        date=day.isoformat(),
        title=f"{day:%A}, {day.day} {day:%B %Y}",
        since=in_zone(format_instant(since), tz),
        until=in_zone(format_instant(min(until, max(since, now))), tz),
        slots=with_reasons(rows, await _ended_badly(service, tenant, job.id, rows)),
        hidden=hidden,
        missing=missing if since <= now else 0,
    )


async def _ended_badly(service: Service, tenant: int, job_id: int, rows: Sequence[DaySlot]) -> list[RunView]:
    """The runs of those rows that failed or were cancelled: a slot does not tell why."""
    found: list[RunView] = []
    statuses: tuple[RunStatus, ...] = ("FAILED", "CANCELLED")
    for status in statuses:
        slots = [parse_rfc3339(row.at) or 0 for row in rows if row.status == status and row.run_id is not None]
        if slots:
            wanted = RunFilter(job_id=job_id, status=status, since=min(slots), until=max(slots), limit=DAY_RUNS)
            found += (await service.list_runs(tenant, wanted)).items
    return found


def _as_text(asked: Mapping[str, Any]) -> dict[str, str | None]:
    """As hidden fields of the other forms have them."""
    return {name: str(value).lower() if isinstance(value, bool) else value for name, value in asked.items()}


def _typed(at: str | None, tz: str) -> str:
    """What the field for the instant shows."""
    if at is None:
        return ""
    try:
        return in_zone(read_instant("at", at, tz), tz)
    except Invalid:
        return at


async def _warnings(service: Service, tenant: int, job: JobView) -> list[str]:
    problem = (await service.problems([job], tenant)).get(job.id)
    missing = (await service.missing_labels([job])).get(job.id, ())
    told = [] if problem is None else [f"Its runs will fail: {problem}"]
    return [*told, f"Its runs wait: no live node has the label {', '.join(missing)}"] if missing else told


async def _paused_by(service: Service, tenant: int, job: JobView) -> str | None:
    if job.state != "paused":
        return None
    versions = (await service.list_versions(tenant, job.id, limit=VERSIONS)).items
    return next((words.actor_words(each.actor, each.actor_kind) for each in versions if each.verb == "pause"), None)


routes = [job]
