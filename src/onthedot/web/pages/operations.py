"""Bulk operations: a list, and the progress of one."""

from __future__ import annotations

from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http.path_ids import operation_id_of
from onthedot.api.http.query_params import text
from onthedot.api.http.responses import HttpResponse
from onthedot.model.bulk import DEAD_VERBS, BulkOperation
from onthedot.web import words
from onthedot.web.forms import read_form
from onthedot.web.page import action, asked_of, done, page, show

__all__ = ["routes", "state_words", "title_of"]

ASKED = (text("cursor", "Cursor of the next page", longest=1000),)
_STATES = {"running": "running", "done": "finished", "aborted": "aborted", "stopped": "stopped"}


def title_of(operation: BulkOperation) -> str:
    """Pause 1,200 jobs."""
    what = "dead letter" if operation.verb in DEAD_VERBS else "job"
    count = words.count_words(operation.total, what)
    more = "" if operation.total_exact else " or more"
    return f"{operation.verb.capitalize()} {count}{more}"


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
    return show(
        request,
        "operations.html",
        asked=asked,
        rows=[(each, title_of(each), state_words(each)) for each in found.items],
        next=found.next,
    )


@page("/operations/{operation_id}")
async def operation_page(request: Request) -> HttpResponse:
    """The progress of an operation."""
    asked_of(request, ())
    found = await service_of(request).get_operation(tenant_of(request), operation_id_of(request))
    return show(
        request,
        "operation.html",
        operation=found,
        title=title_of(found),
        state=state_words(found),
        percent=_percent(found),
        of_letters=found.verb in DEAD_VERBS,
        asked_for=[*(found.filter or {}).items()],
        params=[*found.params.items()],
    )


@action("/operations/{operation_id}/abort")
async def abort(request: Request) -> HttpResponse:
    """Abort the operation."""
    await read_form(request)
    operation_id = operation_id_of(request)
    await service_of(request).abort_operation(tenant_of(request), operation_id)
    return done(request, "Aborted. What is done stays done", f"/operations/{operation_id}")


routes = [operations, operation_page, abort]
