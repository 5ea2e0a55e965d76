"""The page of dead letters: grouped by cause and hour, and driven again one, some or all, a few first."""

from __future__ import annotations

import re

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http.path_ids import RUN_ID_PATTERN
from onthedot.api.http.query_params import integer, text
from onthedot.api.http.responses import HttpResponse
from onthedot.errors import Invalid
from onthedot.model.bulk import BulkFilter, BulkRequest
from onthedot.model.dead import DeadLetterView
from onthedot.store import LetterFilter, Page
from onthedot.web import words
from onthedot.web.dead_groups import group_letters
from onthedot.web.forms import Form, read_form
from onthedot.web.page import action, asked_of, done, page, show

__all__ = ["routes"]

GROUPED = 500
"""The newest, which are grouped. So many are one page of the API."""
SHOWN = 50
JOB = integer("job_id", "Id of the job", 1, 2**63 - 1)
ASKED = (JOB, text("group", "Group of cause and hour", longest=16))
FIELDS = ("id", "group", "job_id", "all", "confirmed", "first", "rate", "stop_at_failures")
LIMITS = {"first": (1, 1000), "rate": (1, 10_000), "stop_at_failures": (1, 1000)}


@page("/dead", query=ASKED)
async def dead(request: Request) -> HttpResponse:
    """The page of dead letters."""
    asked = asked_of(request, ASKED)
    found = await _newest(request, asked["job_id"])
    groups = group_letters(found.items)
    chosen = next((group for group in groups if group.id == asked["group"]), None)
    letters = found.items if chosen is None else chosen.letters
    return show(
        request,
        "dead.html",
        asked=asked,
        groups=groups,
        chosen=chosen,
        is_gone=asked["group"] is not None and chosen is None,
        letters=letters[:SHOWN],
        hidden=len(letters) - len(letters[:SHOWN]),
        total=len(found.items),
        has_older=found.next is not None,
    )


async def _newest(request: Request, job_id: int | None) -> Page[DeadLetterView]:
    return await service_of(request).list_dead(tenant_of(request), LetterFilter(job_id=job_id), limit=GROUPED)


class Chosen(msgspec.Struct, frozen=True):
    """Which dead letters a form means: `ids`, or all (of a job)."""

    ids: list[str] | None
    job_id: int | None
    what: str


@action("/dead/redrive")
async def redrive(request: Request) -> HttpResponse:
    """Ask how, then drive the chosen dead letters again as an operation; a single one at once."""
    form = await read_form(request, *FIELDS)
    chosen = await _chosen(request, form)
    if chosen.ids is not None and not chosen.ids:
        return done(request, "Select dead letters first", form.back("/dead"), bad=True)
    if not form.flag("confirmed"):
        return _ask(request, form, chosen)
    service, tenant = service_of(request), tenant_of(request)
    try:
        wanted = _request_of(form, chosen)
        started = await service.start_operation(tenant, wanted)
    except Invalid as error:
        return _ask(request, form.refuse(_at_fields(error)), chosen, 422)
    return done(request, f"Redriving {chosen.what}", f"/operations/{started.id}")


@action("/dead/redrive-one")
async def redrive_one(request: Request) -> HttpResponse:
    """Drive one dead letter again, and show its new run."""
    form = await read_form(request, "id")
    new = await service_of(request).redrive(tenant_of(request), ids=_ids(form)[:1] or [""])
    if not new:
        return done(request, "It was redriven or removed meanwhile", form.back("/dead"), bad=True)
    return done(request, f"Redrove {form.text('id')}: this is the new run", f"/runs/{new[0]}")


async def _chosen(request: Request, form: Form) -> Chosen:
    job_id = _number(form, "job_id", 1, 2**63 - 1)
    if form.given("group") is not None:
        groups = group_letters((await _newest(request, job_id)).items)
        group = next((each for each in groups if each.id == form.text("group")), None)
        ids = [] if group is None else [run.id for run in group.letters]
        return Chosen(ids, None, _count(ids))
    if form.flag("all"):
        return Chosen(None, job_id, "all dead letters" if job_id is None else f"all dead letters of job {job_id}")
    ids = _ids(form)
    return Chosen(ids, None, _count(ids))


def _count(ids: list[str]) -> str:
    return words.count_words(len(ids), "dead letter")


def _ids(form: Form) -> list[str]:
    given = list(dict.fromkeys(form.many("id")))
    wrong = next((each for each in given if not re.fullmatch(RUN_ID_PATTERN, each, re.ASCII)), None)
    if wrong is not None:
        raise Invalid.one("id", "not the id of a run", given=wrong[:100], accepted="ids of dead letters")
    return given


def _number(form: Form, name: str, low: int, high: int) -> int | None:
    given = form.given(name)
    if given is None:
        return None
    if not re.fullmatch(r"[0-9]{1,19}", given, re.ASCII) or not low <= int(given) <= high:
        raise Invalid.one(name, "not a valid number", given=given[:100], accepted=f"an integer from {low} to {high}")
    return int(given)


def _request_of(form: Form, chosen: Chosen) -> BulkRequest:
    given = {name: _number(form, name, *limits) for name, limits in LIMITS.items()}
    params = {name: given[name] for name in ("first", "stop_at_failures") if given[name] is not None}
    ids: list[int | str] | None = None if chosen.ids is None else [*chosen.ids]
    wanted = BulkFilter(job_id=chosen.job_id) if ids is None else None
    return BulkRequest(verb="redrive", ids=ids, filter=wanted, params=params, rate=given["rate"])


def _at_fields(error: Invalid) -> Invalid:
    """The API's words at the fields of the form, which has no `params`."""
    return Invalid([msgspec.structs.replace(each, path=each.path.removeprefix("params.")) for each in error.problems])


def _ask(request: Request, form: Form, chosen: Chosen, status: int = 200) -> HttpResponse:
    return show(
        request,
        "dead_redrive.html",
        status=status,
        form=form,
        chosen=chosen,
        return_to=form.back("/dead"),
        action="/dead/redrive",
        go="Redrive",
        tone="go",
    )


routes = [dead, redrive, redrive_one]
