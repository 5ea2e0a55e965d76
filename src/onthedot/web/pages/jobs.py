"""The jobs page: find jobs, see when they run and how the last runs went, and act on some of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request

from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.query_params import choice, flag, text
from onthedot.api.http.responses import HttpResponse
from onthedot.model.job import JobPause, JobState, JobView
from onthedot.model.run import RecentRun
from onthedot.model.schedule import SCHEDULE_KINDS
from onthedot.model.targets.registry import specs, target_types
from onthedot.store import JobFilter
from onthedot.store.jobs.job_filter import LAST_STATUSES, SORTS
from onthedot.web import words
from onthedot.web.charts import StripBar, strip_bars
from onthedot.web.page import asked_of, page, show
from onthedot.web.parts import load

__all__ = ["JobRow", "filter_of", "routes", "row_of"]

PAGE = 100
SCHEDULES = [("cron", "Cron"), ("every", "Interval"), ("at", "Date and time"), ("in", "Delay")]
ASKED = (
    text("q", "Words in the key, name, tags or target", longest=200),
    choice("status", "State; all: ended jobs, too, which are hidden otherwise", (*get_args(JobState), "all")),
    text("tag", "Tag", longest=100),
    text("owner", "Owner", longest=200),
    choice("target", "Type of target", target_types()),
    choice("schedule", "Type of schedule", SCHEDULE_KINDS),
    choice("last_status", "How the last run ended", LAST_STATUSES),
    flag("failing", "Whether the last run failed", default=None),
    flag("late", "Whether the last run was late, or the next one is", default=None),
    flag("never_ran", "Whether no run has finished", default=None),
    choice("sort", "Order; - reverses it", SORTS),
    text("cursor", "Cursor of the next page", longest=1000),
)
ENDED = flag("ended", "As in the API: true, only ended jobs; false, none, which is the default here", default=None)
STATES = [
    ("active", "Active"),
    ("paused", "Paused"),
    ("quarantined", "Quarantined"),
    ("ended", "Ended"),
    ("all", "All, also ended"),
]


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table, as text."""

    id: int
    title: str
    key: str | None
    tags: list[str]
    owner: str | None
    state: str
    reason: str | None
    pause: JobPause | None
    problem: str | None
    missing: str  # labels that no live node has
    schedule: str
    expression: str
    kind: str
    what: str
    next_run: str | None
    last_run: str | None
    last_status: str | None
    last_reason: str | None
    duration: int | None
    average: float | None
    lateness: int | None
    strip: list[StripBar]
    strip_words: str


@page("/jobs", query=(*ASKED, ENDED))
async def jobs(request: Request) -> HttpResponse:
    """The jobs page."""
    asked = asked_of(request, (*ASKED, ENDED))
    if (ended := asked.pop("ended")) is not None:
        return responses.redirect(_by_state(request, ended=ended))
    service, tenant = service_of(request), tenant_of(request)
    found = await service.list_jobs(tenant, filter_of(asked))
    problems = await service.problems(found.items, tenant)
    missing = await service.missing_labels(found.items)
    recent = await load(context_of(request).clock, service.recent_runs(tenant, [job.id for job in found.items]))
    rows = [
        row_of(job, problems.get(job.id), missing.get(job.id, ()), (recent.value or {}).get(job.id, ()))
        for job in found.items
    ]
    return await show(
        request,
        "jobs.html",
        asked=asked,
        rows=rows,
        recent=recent,
        next=found.next,
        is_filtered=any(value for name, value in asked.items() if name != "sort"),
        states=STATES,
        targets=[(kind, words.kind_words(kind)) for kind in specs()],
        schedules=SCHEDULES,
        results=[(status, words.status_words(status).capitalize()) for status in LAST_STATUSES],
    )


def _by_state(request: Request, *, ended: bool) -> str:
    """The same page with the state that the form has for it."""
    query = [(name, value) for name, value in request.query_params.multi_items() if name != "ended"]
    if ended and not request.query_params.get("status"):
        query.append(("status", "ended"))
    return "/jobs" + (f"?{urlencode(query)}" if query else "")


def filter_of(asked: dict[str, Any]) -> JobFilter:
    """Ended jobs are hidden unless they are asked for."""
    wanted = {**asked, "status": None if asked["status"] == "all" else asked["status"]}
    return JobFilter(**wanted, ended=False if asked["status"] is None else None, limit=PAGE)


def row_of(
    job: JobView, problem: str | None = None, missing: Sequence[str] = (), recent: Sequence[RecentRun] = ()
) -> JobRow:
    """`recent`: its last runs, the newest first."""
    kind, what = words.target_words(job.target)
    status = job.stats.last_status
    return JobRow(
        id=job.id,
        title=words.title(job),
        key=job.key if job.name else None,
        tags=job.tags,
        owner=job.owner,
        state=job.state,
        reason=job.reason,
        pause=job.pause,
        problem=problem,
        missing=", ".join(missing),
        schedule=words.schedule_words(job.schedule),
        expression=words.expression(job.schedule),
        kind=kind,
        what=what,
        next_run=job.next_run,
        last_run=job.last_run,
        last_status=status,
        last_reason=next((run.reason for run in recent if run.status == status), None),
        duration=job.stats.last_duration_ms,
        average=job.stats.avg_duration_ms,
        lateness=job.stats.last_lateness_ms,
        strip=strip_bars([(run.status, _bar_words(run)) for run in reversed(recent)]),
        strip_words=_strip_words(recent),
    )


def _bar_words(run: RecentRun) -> str:
    parts = [words.utc(run.scheduled_for), words.status_words(run.status)]
    if run.duration_ms is not None:
        parts.append(words.how_long(run.duration_ms))
    return ": ".join((", ".join(parts), run.reason)) if run.reason else ", ".join(parts)


def _strip_words(recent: Sequence[RecentRun]) -> str:
    if not recent:
        return "No runs yet"
    counts: dict[str, int] = {}
    for run in recent:
        counts[run.status] = counts.get(run.status, 0) + 1
    told = ", ".join(f"{count} {words.status_words(status)}" for status, count in counts.items())
    return f"Last {words.count_words(len(recent), 'run')}: {told}"


routes = [jobs]
