"""The overview page: jobs with their next and last run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request

from onthedot.api.context import base_of, principal_of, service_of
from onthedot.api.http import responses
from onthedot.api.http.query_params import choice, flag, read_query, text
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.errors import Invalid
from onthedot.model.job import JobState, JobView
from onthedot.model.node import NodeView
from onthedot.service import Service
from onthedot.store import JobFilter, StoreStats
from onthedot.web import words
from onthedot.web.problem_page import problem_page
from onthedot.web.templating import render

__all__ = ["routes"]

PAGE = 100
ASKED = (
    text("q", "Prefix of key or name", longest=200),
    choice("status", "State", get_args(JobState)),
    text("cursor", "Cursor of the next page", longest=1000),
    flag("part", "Return only the job list, for the script of the page"),
)


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table, as text."""

    id: int
    title: str
    key: str | None
    tags: list[str]
    state: str
    reason: str | None
    problem: str | None
    missing: str  # labels that no live node has
    schedule: str
    expression: str
    kind: str
    what: str
    next_run: str | None
    last_run: str | None
    last_status: str | None
    average: str
    lateness: str
    runs: int
    failures: int


@operation(
    "GET",
    "/",
    "read",
    query=ASKED,
    answers={200: "text/html"},
    page=True,
    problem_page=problem_page,
    listed=False,
)
async def overview(request: Request) -> HttpResponse:
    """The overview page."""
    try:
        asked = read_query(_without_blanks(request.scope["query_string"]), ASKED)
        values = await gather(service_of(request), principal_of(request).tenant, asked)
    except Invalid:  # an outdated bookmark or a mistyped address: show all jobs
        return responses.redirect("/")
    values["signed_in"] = principal_of(request).key_id is not None
    values["base"] = base_of(request)
    return responses.html(render("jobs.html" if asked["part"] else "overview.html", **values))


async def gather(service: Service, tenant: int, asked: dict[str, Any]) -> dict[str, Any]:
    wanted = JobFilter(q=asked["q"], status=asked["status"], cursor=asked["cursor"], limit=PAGE)
    page = await service.list_jobs(tenant, wanted)
    problems = await service.problems(page.items, tenant)
    missing = await service.missing_labels(page.items)
    more = {name: asked[name] for name in ("q", "status") if asked[name] is not None}
    return {
        "q": asked["q"] or "",
        "status": asked["status"] or "",
        "states": get_args(JobState),
        "jobs": [row_of(job, problems.get(job.id), missing.get(job.id, ())) for job in page.items],
        "more": None if page.next is None else "/?" + urlencode({**more, "cursor": page.next}),
        "nodes": [_node_words(node) for node in await service.list_nodes()],
        "totals": totals(await service.stats(tenant)),
        "open": await service.is_open(),
    }


def row_of(job: JobView, problem: str | None = None, missing: Sequence[str] = ()) -> JobRow:
    kind, what = words.target_words(job.target)
    return JobRow(
        id=job.id,
        title=words.title(job),
        key=job.key if job.name else None,
        tags=job.tags,
        state=job.state,
        reason=job.reason,
        problem=problem,
        missing=", ".join(missing),
        schedule=words.schedule_words(job.schedule),
        expression=words.expression(job.schedule),
        kind=kind,
        what=what,
        next_run=job.next_run,
        last_run=job.last_run,
        last_status=job.stats.last_status,
        average=words.how_long(job.stats.avg_duration_ms),
        lateness=words.how_long(job.stats.last_lateness_ms),
        runs=job.stats.runs,
        failures=job.stats.failures,
    )


def _node_words(node: NodeView) -> dict[str, Any]:
    return {
        "name": node.name,
        "state": node.state,
        "leader": node.leader,
        "roles": " and ".join(node.roles),
        "labels": ", ".join(node.labels),
        "version": node.version,
        "since": node.started_at,
        "load": f"{node.running:,} running, {node.held:,} claimed ahead, capacity {node.capacity:,}"
        if node.capacity
        else "API only",
        "lateness": words.how_long(node.lateness_ms),
    }


def _without_blanks(raw: bytes) -> bytes:
    """Remove empty fields: a form sends them too."""
    return b"&".join(pair for pair in raw.split(b"&") if pair and not pair.endswith(b"="))


def totals(stats: StoreStats) -> list[tuple[str, str, str]]:
    """Label, value and CSS class of each total."""
    done, failed = stats.last_hour.get("DONE", 0), stats.last_hour.get("FAILED", 0)
    numbers = [
        ("job" if sum(stats.jobs.values()) == 1 else "jobs", sum(stats.jobs.values()), ""),
        ("active", stats.jobs.get("active", 0), ""),
        ("running", stats.running, ""),
        ("done in the last hour", done, ""),
        ("failed", failed, "bad" if failed else ""),
        ("dead letter" if stats.dead == 1 else "dead letters", stats.dead, "bad" if stats.dead else ""),
    ]
    return [(name, f"{number:,}", tone) for name, number, tone in numbers]


routes = [overview]
