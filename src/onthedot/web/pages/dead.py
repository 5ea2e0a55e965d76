"""The page of dead letters: grouped by cause and hour; driven again a few first, edited, or discarded with a note."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from starlette.requests import Request

from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.http.path_ids import RUN_ID_PATTERN
from onthedot.api.http.query_params import choice, flag, instant, integer, text
from onthedot.api.http.responses import HttpResponse
from onthedot.errors import Invalid
from onthedot.model.bulk import BulkCount, BulkFilter, BulkRequest
from onthedot.model.dead import DeadGroup, DeadLetterView
from onthedot.model.duration import HOUR
from onthedot.model.instant import format_instant
from onthedot.store import LetterFilter
from onthedot.web import words
from onthedot.web.forms import RATE_MOST, Form, read_form
from onthedot.web.job_titles import titles_of
from onthedot.web.page import action, asked_of, done, page, show
from onthedot.web.parts import load
from onthedot.web.typed_count import check_typed, must_be_typed

__all__ = ["routes"]

SHOWN = 50
GROUPS, GROUPS_MOST = 8, 200
"""Groups that are shown at first, and those that are shown at all."""
JOB = integer("job_id", "Id of the job", 1, 2**63 - 1)
WHICH = ("job_id", "cause", "since", "until")
ASKED = (
    JOB,
    text("cause", "Dead letters with exactly this cause", longest=200),
    instant("since", "Dead letters that failed at this instant or later"),
    instant("until", "Dead letters that failed at this instant or earlier"),
    flag("discarded", "Those that were discarded, instead of those that are open"),
    choice("groups", "How many groups to show; default: the newest 8", ("all",)),
    text("cursor", "Cursor of the next page", longest=1000),
)
FIELDS = ("id", "all", *WHICH, "confirmed", "first", "rate", "stop_at_failures", "note", "typed", "shown")
LIMITS = {"first": (1, 1000), "rate": (1, RATE_MOST), "stop_at_failures": (1, 1000)}


@page("/dead", query=ASKED)
async def dead(request: Request) -> HttpResponse:
    """The page of dead letters."""
    asked = asked_of(request, ASKED)
    service, tenant = service_of(request), tenant_of(request)
    wanted = LetterFilter(**{name: asked[name] for name in WHICH})
    found = await service.list_dead(tenant, wanted, SHOWN, asked["cursor"], bool(asked["discarded"]))
    groups = None
    if not asked["discarded"] and not asked["cursor"] and found.items:
        of_job = LetterFilter(job_id=asked["job_id"])
        groups = await load(context_of(request).clock, service.group_dead(tenant, of_job, HOUR))
    titles = await titles_of(context_of(request).clock, service, tenant, found.items)
    shown = (groups.value.items if groups and groups.value else [])[: GROUPS_MOST if asked["groups"] else GROUPS]
    # groups are of other pages of the list, too
    others = sorted({each.job_id for each in shown if each.job_id is not None} - titles.keys())
    names = (await load(context_of(request).clock, service.job_names(tenant, others))).value or {}
    return await show(
        request,
        "dead.html",
        asked=asked,
        titles=titles,
        groups=groups,
        group_rows=_rows(shown, found.items, asked, {**names, **titles}),
        most_groups=GROUPS_MOST,
        is_chosen=asked["cause"] is not None or asked["since"] is not None or asked["until"] is not None,
        which={name: value for name, value in _fields(asked).items() if value is not None},
        letters=found.items,
        next=found.next,
    )


class GroupRow(msgspec.Struct, frozen=True, kw_only=True):
    """`jobs`: names as far as they are known, or how many."""

    group: DeadGroup
    jobs: str
    chosen: bool


def _rows(
    groups: list[DeadGroup], letters: list[DeadLetterView], asked: dict[str, Any], titles: dict[int, str]
) -> list[GroupRow]:
    return [GroupRow(group=each, jobs=_jobs(each, letters, titles), chosen=_chosen_is(each, asked)) for each in groups]


def _jobs(group: DeadGroup, letters: list[DeadLetterView], titles: dict[int, str]) -> str:
    if group.job_id is not None:
        return titles.get(group.job_id) or f"Job {group.job_id}"
    at = [each for each in letters if each.cause == group.cause and _within(each.finished_at, group)]
    names = list(dict.fromkeys(titles[each.job_id] for each in at))
    if len(names) < min(group.jobs, 3):
        return words.count_words(group.jobs, "job")
    more = group.jobs - len(names[:3])
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")


def _within(at: str | None, group: DeadGroup) -> bool:
    return at is not None and group.first_at <= at <= group.last_at


def _chosen_is(group: DeadGroup, asked: dict[str, Any]) -> bool:
    since = None if asked["since"] is None else format_instant(asked["since"])
    return asked["cause"] == group.cause and since == group.first_at


def _fields(asked: dict[str, Any]) -> dict[str, Any]:
    """The filters as a form or an address has them."""
    times = {name: None if asked[name] is None else format_instant(asked[name]) for name in ("since", "until")}
    return {"job_id": asked["job_id"], "cause": asked["cause"], **times}


class Chosen(msgspec.Struct, frozen=True):
    """Which dead letters a form means: `ids`, or all that match."""

    ids: list[str] | None
    filter: BulkFilter

    def request(self, verb: Any, params: dict[str, Any] | None = None, rate: int | None = None) -> BulkRequest:
        if self.ids is not None:
            return BulkRequest(verb=verb, ids=[*self.ids], params=params, rate=rate)
        return BulkRequest(verb=verb, filter=self.filter, params=params, rate=rate)


@action("/dead/redrive")
async def redrive(request: Request) -> HttpResponse:
    """Ask how, then drive the chosen dead letters again as an operation."""
    return await _act(request, "redrive")


@action("/dead/discard")
async def discard(request: Request) -> HttpResponse:
    """Ask why, then close the chosen dead letters: a few at once, many as an operation."""
    return await _act(request, "discard")


async def _act(request: Request, verb: str) -> HttpResponse:
    form = await read_form(request, *FIELDS)
    chosen = _chosen(form)
    service, tenant = service_of(request), tenant_of(request)
    if chosen.ids == []:
        return done(request, "Select dead letters first", form.back("/dead"), bad=True)
    count = await service.count_operation(tenant, chosen.request(verb))
    if not count.total:
        return done(request, "No dead letters match any more", form.back("/dead"), bad=True)
    if not form.flag("confirmed"):
        return await _ask(request, form, verb, chosen, count)
    try:
        check_typed(form, count.total)
        if verb == "discard" and chosen.ids is not None:
            closed = await service.discard(tenant, chosen.ids, note=_note(form))
            return done(request, f"Discarded {words.count_words(len(closed), 'dead letter')}", form.back("/dead"))
        started = await service.start_operation(tenant, _request_of(form, verb, chosen))
    except Invalid as error:
        return await _ask(request, form.refuse(_at_fields(error)), verb, chosen, count, 422)
    doing = "Discarding" if verb == "discard" else "Redriving"
    return done(request, f"{doing} {_how_many(count)}", f"/operations/{started.id}")


@action("/dead/redrive-one")
async def redrive_one(request: Request) -> HttpResponse:
    """Drive one dead letter again, and show its new run."""
    form = await read_form(request, "id")
    new = await service_of(request).redrive(tenant_of(request), ids=_ids(form)[:1] or [""])
    if not new:
        return done(request, "It was redriven or removed meanwhile", form.back("/dead"), bad=True)
    return done(request, f"Redrove {form.text('id')}: this is the new run", f"/runs/{new[0]}")


def _chosen(form: Form) -> Chosen:
    if not form.flag("all"):
        return Chosen(_ids(form), BulkFilter())
    job_id = form.number("job_id", 1, 2**63 - 1)
    cause, since, until = form.given("cause"), form.given("since"), form.given("until")
    return Chosen(None, BulkFilter(job_id=job_id, cause=cause, since=since, until=until))


def _how_many(count: BulkCount) -> str:
    told = words.count_words(count.total, "dead letter")
    return told if count.total_exact else told.replace(" dead", " or more dead")


def _ids(form: Form) -> list[str]:
    given = list(dict.fromkeys(form.many("id")))
    wrong = next((each for each in given if not re.fullmatch(RUN_ID_PATTERN, each, re.ASCII)), None)
    if wrong is not None:
        raise Invalid.one("id", "not the id of a run", given=wrong[:100], accepted="ids of dead letters")
    return given


def _note(form: Form) -> str | None:
    note = form.given("note")
    if note is not None and len(note) > 1000:
        raise Invalid.one("note", "too long", given=len(note), accepted="at most 1,000 characters")
    return note


def _request_of(form: Form, verb: str, chosen: Chosen) -> BulkRequest:
    if verb == "discard":
        note = _note(form)
        return chosen.request(verb, {} if note is None else {"note": note})
    given = {name: form.number(name, *limits) for name, limits in LIMITS.items()}
    params = {name: given[name] for name in ("first", "stop_at_failures") if given[name] is not None}
    return chosen.request(verb, params, given["rate"])


def _at_fields(error: Invalid) -> Invalid:
    """The API's words at the fields of the form, which has no `params`."""
    return Invalid([msgspec.structs.replace(each, path=each.path.removeprefix("params.")) for each in error.problems])


async def _ask(
    request: Request, form: Form, verb: str, chosen: Chosen, count: BulkCount, status: int = 200
) -> HttpResponse:
    said = chosen.filter
    return await show(
        request,
        f"dead_{verb}.html",
        status=status,
        form=form,
        chosen=chosen,
        which=[(name, getattr(said, name)) for name in WHICH if getattr(said, name) is not None],
        count=count,
        what=_how_many(count),
        typed=must_be_typed(count.total),
        return_to=form.back("/dead"),
        action=f"/dead/{verb}",
        go=verb.capitalize(),
        tone="danger" if verb == "discard" else "go",
    )


routes = [dead, redrive, discard, redrive_one]
