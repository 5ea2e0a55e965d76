"""Acts on jobs of the jobs page, those that were selected or all that match: first a question with their number, then
a bulk operation."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from starlette.requests import Request

from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.http.query_params import read_query
from onthedot.api.http.responses import HttpResponse
from onthedot.errors import Invalid, NotFound
from onthedot.model.bulk import BulkCount, BulkFilter, BulkRequest, BulkVerb
from onthedot.web import words
from onthedot.web.forms import RATE_MOST, Form, read_form
from onthedot.web.page import action, done, show
from onthedot.web.pages.jobs import ASKED
from onthedot.web.pause_choice import PAUSE_FIELDS, PAUSES, pause_end
from onthedot.web.typed_count import check_typed, must_be_typed

__all__ = ["routes"]

MOST = 100
FIELDS = ("verb", "id", "all", "filter", "confirmed", "add", "remove", "rate", "typed", "shown", *PAUSE_FIELDS)
PLACES = ("sort", "cursor")  # of the address, which do not say which jobs


class SelectionVerb(msgspec.Struct, frozen=True):
    label: str
    doing: str
    means: str
    tone: str = "go"


VERBS: dict[BulkVerb, SelectionVerb] = {
    "pause": SelectionVerb(
        "Pause",
        "Pausing",
        "They do not fire until they are resumed. Those that are paused already are left as they are.",
    ),
    "resume": SelectionVerb("Resume", "Resuming", "They fire again from their next slot on."),
    "run": SelectionVerb("Run", "Running", "Each runs once now, beside its schedule."),
    "tag": SelectionVerb("Tag", "Tagging", "Tags are added to each, and removed from each that has them."),
    "delete": SelectionVerb(
        "Delete",
        "Deleting",
        "They do not fire any more, and runs that wait are removed. A deleted job can be brought back for ten minutes.",
        "danger",
    ),
}


class Selection(msgspec.Struct, frozen=True):
    """Either `ids`, or the filters of the jobs page as `query`, its address."""

    ids: list[int] | None
    query: str
    asked: dict[str, Any]

    def request(self, verb: BulkVerb, params: dict[str, Any] | None = None, rate: int | None = None) -> BulkRequest:
        if self.ids is not None:
            return BulkRequest(verb=verb, ids=[*self.ids], params=params, rate=rate)
        return BulkRequest(verb=verb, filter=_bulk_filter(self.asked), params=params, rate=rate)


@action("/jobs/selected")
async def selected_jobs(request: Request) -> HttpResponse:
    """Ask, then start an operation."""
    form = await read_form(request, *FIELDS)
    verb = form.text("verb")
    if verb not in VERBS:
        raise Invalid.one("verb", "unknown", given=verb[:100], accepted=", ".join(VERBS))
    chosen = _selection(form)
    if chosen.ids == []:
        return done(request, "Select jobs first", form.back("/jobs"), bad=True)
    service, tenant = service_of(request), tenant_of(request)
    probe = chosen.request(verb, {"add": ["any"]} if verb == "tag" else None)  # to count; a tag needs a name
    count = await service.count_operation(tenant, probe)
    if not count.total:
        return done(request, "No jobs match any more", form.back("/jobs"), bad=True)
    if not form.flag("confirmed"):
        return await _ask(request, form, verb, chosen, count)
    try:
        check_typed(form, count.total)
        params = _params(form, verb, context_of(request).clock.now_ms())
        started = await service.start_operation(tenant, chosen.request(verb, params, form.number("rate", 1, RATE_MOST)))
    except Invalid as error:
        return await _ask(request, form.refuse(_at_fields(error)), verb, chosen, count, 422)
    return done(request, f"{VERBS[verb].doing} {_how_many(count)}", f"/operations/{started.id}")


def _selection(form: Form) -> Selection:
    if not form.flag("all"):
        return Selection(_ids(form), "", {})
    query = form.text("filter")
    known = b"&".join(pair for pair in query.encode().split(b"&") if pair and not pair.endswith(b"="))
    return Selection(None, query, read_query(known, ASKED))


def _bulk_filter(asked: dict[str, Any]) -> BulkFilter:
    """What the page shows: it hides ended jobs unless they are asked for."""
    named = {name: value for name, value in asked.items() if name not in (*PLACES, "status")}
    status = None if asked["status"] == "all" else asked["status"]
    return BulkFilter(**named, status=status, ended=False if asked["status"] is None else None)


def _params(form: Form, verb: BulkVerb, now: int) -> dict[str, Any]:
    if verb == "pause":
        said = {"note": form.given("note"), "until": pause_end(form, "UTC", now)}
        return {name: value for name, value in said.items() if value is not None}
    if verb == "tag":
        return {name: list(dict.fromkeys(_tags(form.text(name)))) for name in ("add", "remove")}
    return {}


def _tags(text: str) -> list[str]:
    return [tag.strip() for tag in text.split(",") if tag.strip()]


def _at_fields(error: Invalid) -> Invalid:
    """The API's words at the fields of the form: `params.add[1]` is the field `add`, `params` of a tag too."""
    return Invalid(
        [
            msgspec.structs.replace(each, path=re.sub(r"\[\d+\]$", "", each.path.removeprefix("params.")) or "add")
            if each.path != "params"
            else msgspec.structs.replace(each, path="add", accepted="tags to add, or to remove")
            for each in error.problems
        ]
    )


async def _ask(
    request: Request, form: Form, verb: BulkVerb, chosen: Selection, count: BulkCount, status: int = 200
) -> HttpResponse:
    names = []
    for item in count.sample:
        try:
            names.append(words.title(await service_of(request).get_job(tenant_of(request), int(item.id))))
        except NotFound:
            continue
    return await show(
        request,
        "selected_jobs.html",
        status=status,
        form=form,
        verb=VERBS[verb],
        chosen=chosen,
        count=count,
        typed=must_be_typed(count.total),
        names=names,
        question=f"{VERBS[verb].label} {_how_many(count)}?",
        told=[words.asked_words(name, value) for name, value in chosen.asked.items() if _tells(name, value)],
        pauses=PAUSES,
        return_to=form.back("/jobs"),
        action="/jobs/selected",
        go=f"{VERBS[verb].label} {_how_many(count)}",
        tone=VERBS[verb].tone,
    )


def _tells(name: str, value: object) -> bool:
    return value is not None and name not in PLACES


def _how_many(count: BulkCount) -> str:
    told = words.count_words(count.total, "job")
    return told if count.total_exact else told.replace(" jobs", " or more jobs")


def _ids(form: Form) -> list[int]:
    given = list(dict.fromkeys(form.many("id")))
    if len(given) > MOST:
        raise Invalid.one("id", "too many jobs", given=len(given), accepted=f"up to {MOST}")
    wrong = next((each for each in given if not re.fullmatch(r"[0-9]{1,18}", each)), None)
    if wrong is not None:
        raise Invalid.one("id", "not the id of a job", given=wrong[:100], accepted="an integer")
    return [int(each) for each in given]


routes = [selected_jobs]
