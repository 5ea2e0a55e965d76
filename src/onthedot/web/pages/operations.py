"""Bulk operations: a list, and the progress of one."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http.path_ids import operation_id_of
from onthedot.api.http.query_params import text
from onthedot.api.http.responses import HttpResponse
from onthedot.model.bulk import DEAD_VERBS, BulkOperation
from onthedot.model.decoding import encode_json
from onthedot.model.instant import parse_rfc3339
from onthedot.web import words
from onthedot.web.forms import read_form
from onthedot.web.page import action, asked_of, done, page, show

__all__ = ["routes", "state_words", "title_of"]

ASKED = (text("cursor", "Cursor of the next page", longest=1000),)
_PAGE_FILTERS = ("q", "tag", "status", "target", "schedule", "owner", "last_status", "failing", "late", "never_ran")
_STATES = {"running": "running", "paused": "paused", "done": "finished", "aborted": "aborted", "stopped": "stopped"}


def title_of(operation: BulkOperation) -> str:
    """Pause 1,200 jobs."""
    what = "dead letter" if operation.verb in DEAD_VERBS else "firing" if _by_slot(operation) else "job"
    count = words.count_words(operation.total, what)
    more = "" if operation.total_exact else " or more"
    return f"{operation.verb.capitalize()} {count}{more}"


def _by_slot(operation: BulkOperation) -> bool:
    """The backfill of one job, which counts its firings."""
    return operation.params.get("by_slot") is True


def state_words(operation: BulkOperation) -> str:
    return _STATES[operation.state]


def _percent(operation: BulkOperation) -> int | None:
    """None: how many there are is not known yet."""
    if operation.state == "done":
        return 100
    if not operation.total_exact or not operation.total:
        return None
    return min(100, 100 * (operation.done + operation.failed + operation.skipped) // operation.total)


@page("/operations", query=ASKED)
async def operations(request: Request) -> HttpResponse:
    """The list of operations."""
    asked = asked_of(request, ASKED)
    found = await service_of(request).list_operations(tenant_of(request), cursor=asked["cursor"])
    return await show(
        request,
        "operations.html",
        asked=asked,
        rows=[(each, title_of(each), state_words(each)) for each in found.items],
        next=found.next,
    )


WHY_SKIPPED = {
    "pause": "paused already, or ended",
    "resume": "not paused",
    "tag": "nothing to change",
    "backfill": "nothing missing",
    "redrive": "no dead letter any more",
    "discard": "no dead letter any more",
}


@page("/operations/{operation_id}")
async def operation_page(request: Request) -> HttpResponse:
    """The progress of an operation."""
    asked_of(request, ())
    service, tenant = service_of(request), tenant_of(request)
    found = await service.get_operation(tenant, operation_id_of(request))
    return await show(
        request,
        "operation.html",
        operation=found,
        title=title_of(found),
        state=state_words(found),
        percent=_percent(found),
        of_letters=found.verb in DEAD_VERBS,
        by_slot=_by_slot(found),
        why_skipped=WHY_SKIPPED.get(found.verb),
        shows=_shows(found),
        asked_for=_told(found.filter or {}),
        params=_told(found.params),
    )


def _told(said: dict[str, Any]) -> list[tuple[str, str]]:
    """What was asked for, as words: "" failing, "" not ended, `start` 2026-11-18 02:00:00 UTC, `add` etl, nightly."""
    told = [words.asked_words(name, _value_words(value)) for name, value in said.items() if name != "by_slot"]
    return [(name, value) for name, value in told if value]


def _value_words(value: object) -> object:
    if isinstance(value, list):
        return ", ".join(str(each) for each in value)
    if isinstance(value, dict):
        return encode_json(value).decode()
    return words.utc(value) if isinstance(value, str) and parse_rfc3339(value) is not None else value


def _shows(operation: BulkOperation) -> tuple[str, dict[str, Any]] | None:
    """The list of what it is for, as path and query."""
    if operation.verb in DEAD_VERBS:
        said = {name: value for name, value in (operation.filter or {}).items() if name in ("job_id", "cause")}
        return "/dead", said
    if operation.filter is None:
        return None
    kept = {name: value for name, value in operation.filter.items() if name in _PAGE_FILTERS}
    return "/jobs", kept if "status" in kept or operation.filter.get("ended") is False else {**kept, "status": "all"}


@action("/operations/{operation_id}/abort")
async def abort(request: Request) -> HttpResponse:
    """Abort the operation."""
    await read_form(request)
    operation_id = operation_id_of(request)
    await service_of(request).abort_operation(tenant_of(request), operation_id)
    return done(request, "Aborted. What is done stays done", f"/operations/{operation_id}")


@action("/operations/{operation_id}/pause")
async def pause(request: Request) -> HttpResponse:
    """Pause the operation."""
    await read_form(request)
    operation_id = operation_id_of(request)
    await service_of(request).pause_operation(tenant_of(request), operation_id)
    return done(request, "Paused. It goes on when it is resumed", f"/operations/{operation_id}")


@action("/operations/{operation_id}/resume")
async def resume(request: Request) -> HttpResponse:
    """Resume the operation."""
    await read_form(request)
    operation_id = operation_id_of(request)
    await service_of(request).resume_operation(tenant_of(request), operation_id)
    return done(request, "Resumed", f"/operations/{operation_id}")


routes = [operations, operation_page, abort, pause, resume]
