"""The runs page: current and past runs, newest first, by any filter that the API has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import msgspec
from starlette.requests import Request

from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.http.path_ids import run_named
from onthedot.api.http.query_params import choice, flag, instant, integer, text
from onthedot.api.http.responses import HttpResponse
from onthedot.model.instant import format_instant, parse_rfc3339
from onthedot.model.node import NodeView
from onthedot.model.run import RunStatus, RunView, TriggerKind
from onthedot.store import RunFilter
from onthedot.web import words
from onthedot.web.job_titles import titles_of
from onthedot.web.page import asked_of, page, show
from onthedot.web.parts import load
from onthedot.web.run_story import TRIGGERS, trigger_words, waiting_words

__all__ = ["RunRow", "routes", "run_row"]

PAGE = 100
ASKED = (
    text("q", "Text in the error", longest=200),
    choice("status", "Status", get_args(RunStatus)),
    text("key", "Key of the job", longest=200),
    integer("job_id", "Id of the job", 1, 2**63 - 1),
    choice("trigger", "What started it", get_args(TriggerKind)),
    text("node", "Id of the node", longest=100),
    flag("late", "Whether it started late", default=None),
    run_named("compare", "Id of a run: each row offers to be compared with it"),
    flag("due", "Only runs that are due and wait to be started", default=None),
    instant("since", "Scheduled for this instant or later"),
    instant("until", "Scheduled for this instant or earlier"),
    text("cursor", "Cursor of the next page", longest=1000),
)
LATE_MS = 1000


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table, as text."""

    id: str
    job_id: int
    title: str
    key: str | None
    status: str
    reason: str | None
    trigger: str
    scheduled_for: str
    lateness: int | None
    is_late: bool
    duration: int | None
    tries: int
    node: str | None


@page("/runs", query=ASKED)
async def runs(request: Request) -> HttpResponse:
    """The runs page."""
    asked = asked_of(request, ASKED)
    service, tenant = service_of(request), tenant_of(request)
    clock = context_of(request).clock
    now = clock.now_ms()
    wanted = _wanted(asked, now)
    found = await service.list_runs(tenant, wanted, asked["key"])
    listed = [run for run in found.items if not asked["due"] or _is_due(run, now)]
    live = (await load(clock, service.list_nodes())).value or []
    names = (await load(clock, service.node_names([asked["node"], *(run.node for run in listed)]))).value or {}
    titles = await titles_of(clock, service, tenant, listed)
    return await show(
        request,
        "runs.html",
        asked=asked,
        given=_as_given(request),
        rows=[run_row(run, names, titles[run.job_id]) for run in listed],
        next=found.next,
        further={"until": format_instant(wanted.until or now)} if asked["due"] else {},
        job_title=_of_one(titles, asked["job_id"]),
        is_filtered=any(value is not None for value in asked.values()),
        statuses=[(status, words.status_words(status).capitalize()) for status in get_args(RunStatus)],
        triggers=TRIGGERS,
        nodes=_choices(live, names, asked["node"]),
    )


def _wanted(asked: Mapping[str, Any], now: int) -> RunFilter:
    given = {name: value for name, value in asked.items() if name not in ("key", "due", "compare")}
    if asked["due"]:
        given["status"] = asked["status"] or "PENDING"
        given["until"] = now if asked["until"] is None else asked["until"]
    return RunFilter(**given, limit=PAGE)


def _is_due(run: RunView, now: int) -> bool:
    """Scheduled for an instant that has passed may be more: what jitter delays, is to be tried again, or is parked."""
    due = run.status == "PENDING" and run.reason is None and run.next_attempt_at is None
    return due and (parse_rfc3339(run.due_at) or 0) <= now


def _of_one(titles: Mapping[int, str], job_id: int | None) -> str:
    return "" if job_id is None else titles.get(job_id, f"job {job_id}")


def _as_given(request: Request) -> dict[str, str]:
    """Instants as they stand in the address."""
    return {name: request.query_params.get(name, "") for name in ("since", "until")}


def _choices(live: Sequence[NodeView], names: Mapping[str, str], chosen: str | None) -> list[tuple[str, str]]:
    """The nodes that are there, and the one that is chosen if it is another."""
    known = [(node.id, node.name) for node in live]
    gone = chosen is not None and all(chosen != node.id for node in live)
    return [*known, (chosen, f"{names.get(chosen, chosen)} (stopped)")] if chosen is not None and gone else known


def run_row(run: RunView, nodes: Mapping[str, str], title: str) -> RunRow:
    return RunRow(
        id=run.id,
        job_id=run.job_id,
        title=title,
        key=None if run.key == title else run.key,
        status=run.status,
        reason=_reason(run),
        trigger=trigger_words(run),
        scheduled_for=run.scheduled_for,
        lateness=run.lateness_ms,
        is_late=(run.lateness_ms or 0) > LATE_MS,
        duration=run.duration_ms,
        tries=run.tries,
        node=words.node_name(run.node, nodes),
    )


def _reason(run: RunView) -> str | None:
    """In one line; a list of a hundred errors of a thousand characters is nobody's reading."""
    waiting = waiting_words(run)
    text: Any = f"It {waiting}" if waiting else run.error or (run.reason if run.status != "DONE" else None)
    if run.status == "SKIPPED" and (run.slots or 1) > 1:
        text = f"{text} ({run.slots:,} slots)"
    line = next((line.strip() for line in (text or "").splitlines() if line.strip()), None)
    return line if line is None or len(line) <= 300 else line[:299] + "…"


routes: list[Any] = [runs]
