"""Pausing and resuming the whole installation: the questions before, and what their forms do."""

from __future__ import annotations

from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http.query_params import text
from onthedot.api.http.responses import HttpResponse
from onthedot.errors import Invalid
from onthedot.web.forms import Form, read_form
from onthedot.web.links import is_local
from onthedot.web.page import action, asked_of, done, page, show

__all__ = ["routes"]

BACK = (text("back", "The page to return to", longest=1500),)
NOTE_LONGEST = 1000


@page("/pause-all", query=BACK, access="admin")
async def ask_pause(request: Request) -> HttpResponse:
    """The question before everything is paused."""
    return await _ask_pause(request, Form(), asked_of(request, BACK)["back"])


@action("/pause-all", access="admin")
async def pause_all(request: Request) -> HttpResponse:
    """Pause the whole installation."""
    form = await read_form(request, "note")
    note = form.given("note")
    if note is not None and len(note) > NOTE_LONGEST:
        wrong = Invalid.one("note", "too long", given=len(note), accepted="at most 1,000 characters")
        return await _ask_pause(request, form.refuse(wrong), form.back("/nodes"), 422)
    await service_of(request).freeze(tenant_of(request), note)
    return done(request, "Everything is paused: no scheduled run starts until somebody resumes it", form.back("/nodes"))


@page("/resume-all", query=BACK, access="admin")
async def ask_resume(request: Request) -> HttpResponse:
    """The question before everything is resumed."""
    return await show(
        request,
        "resume_all.html",
        action="/resume-all",
        tone="go",
        return_to=_local(asked_of(request, BACK)["back"], "/"),
    )


@action("/resume-all", access="admin")
async def resume_all(request: Request) -> HttpResponse:
    """Resume the whole installation."""
    form = await read_form(request)
    was = await service_of(request).unfreeze(tenant_of(request))
    said = "Everything is resumed: jobs fire again" if was else "It was resumed meanwhile"
    return done(request, said, form.back("/"))


async def _ask_pause(request: Request, form: Form, back: str | None, status: int = 200) -> HttpResponse:
    return await show(
        request,
        "pause_all.html",
        status=status,
        form=form,
        action="/pause-all",
        go="Pause everything",
        tone="danger",
        return_to=_local(back, "/nodes"),
    )


def _local(back: str | None, otherwise: str) -> str:
    return back if back is not None and is_local(back) else otherwise


routes = [ask_pause, pause_all, ask_resume, resume_all]
