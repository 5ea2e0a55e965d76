"""Acts on the jobs that were selected on the jobs page: first a question with their number, then one verb for each."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http.responses import HttpResponse
from onthedot.errors import Conflict, Invalid, NotFound
from onthedot.service import Service
from onthedot.web import words
from onthedot.web.forms import Form, read_form
from onthedot.web.page import action, done, show

__all__ = ["routes"]

SHOWN = 10
"""Names in the question, and jobs in the answer that the verb was not carried out for."""
MOST = 100
Act = Callable[[Service, int, int, Form], Awaitable[Any]]


class SelectionVerb(msgspec.Struct, frozen=True):
    label: str
    past: str
    means: str
    act: Act
    tone: str = "go"


async def _pause(service: Service, tenant: int, job_id: int, form: Form) -> None:
    await service.pause_job(tenant, job_id, note=form.given("note"), until=form.given("until"))


VERBS = {
    "pause": SelectionVerb("Pause", "Paused", "They do not fire until they are resumed.", _pause),
    "resume": SelectionVerb(
        "Resume",
        "Resumed",
        "They fire again from their next slot on.",
        lambda service, tenant, job_id, _: service.resume_job(tenant, job_id),
    ),
    "run": SelectionVerb(
        "Run",
        "Started",
        "Each runs once now, beside its schedule.",
        lambda service, tenant, job_id, _: service.run_job(tenant, job_id),
    ),
    "delete": SelectionVerb(
        "Delete",
        "Deleted",
        "They do not fire any more, and runs that wait are removed. A deleted job can be brought back for ten minutes.",
        lambda service, tenant, job_id, _: service.delete_job(tenant, job_id),
        "danger",
    ),
}


@action("/jobs/selected")
async def selected_jobs(request: Request) -> HttpResponse:
    """Ask, then carry out what was asked for each selected job."""
    form = await read_form(request, "verb", "id", "confirmed", "note", "until")
    verb = VERBS.get(form.text("verb"))
    if verb is None:
        raise Invalid.one("verb", "unknown", given=form.text("verb")[:100], accepted=", ".join(VERBS))
    ids = _ids(form)
    if not ids:
        return done(request, "Select jobs first", form.back("/jobs"), bad=True)
    if not form.flag("confirmed"):
        return await _ask(request, form, verb, ids)
    return await _carry_out(request, form, verb, ids)


async def _ask(request: Request, form: Form, verb: SelectionVerb, ids: list[int], status: int = 200) -> HttpResponse:
    names = []
    for job_id in ids[:SHOWN]:
        try:
            names.append(words.title(await service_of(request).get_job(tenant_of(request), job_id)))
        except NotFound:
            names.append(f"Job {job_id} (deleted meanwhile)")
    return show(
        request,
        "selected_jobs.html",
        status=status,
        form=form,
        verb=verb,
        ids=ids,
        names=names,
        question=f"{verb.label} {words.count_words(len(ids), 'job')}?",
        return_to=form.back("/jobs"),
        action="/jobs/selected",
        go=verb.label,
        tone=verb.tone,
    )


async def _carry_out(request: Request, form: Form, verb: SelectionVerb, ids: list[int]) -> HttpResponse:
    refused: list[str] = []
    for job_id in ids:
        try:
            await verb.act(service_of(request), tenant_of(request), job_id, form)
        except Invalid as error:  # what was typed is wrong: of no job was it carried out
            return await _ask(request, form.refuse(error), verb, ids, 422)
        except (Conflict, NotFound) as error:
            refused.append(f"job {job_id}: {error}")
    message = f"{verb.past} {words.count_words(len(ids) - len(refused), 'job')}"
    if refused:
        message += f"; not {', '.join(refused[:SHOWN])}{' …' if len(refused) > SHOWN else ''}"
    return done(request, message, form.back("/jobs"), bad=bool(refused))


def _ids(form: Form) -> list[int]:
    given = list(dict.fromkeys(form.many("id")))
    if len(given) > MOST:
        raise Invalid.one("id", "too many jobs", given=len(given), accepted=f"up to {MOST}")
    wrong = next((each for each in given if not re.fullmatch(r"[0-9]{1,18}", each)), None)
    if wrong is not None:
        raise Invalid.one("id", "not the id of a job", given=wrong[:100], accepted="an integer")
    return [int(each) for each in given]


routes = [selected_jobs]
