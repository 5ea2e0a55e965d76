"""Pages and their actions: how they are declared, and how they answer.

A page is a GET that shows a template. An action is the POST of a form: it calls a verb of the service and redirects to
a page, with a one-time message. Both work without scripts.
"""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request

from onthedot.api.context import base_of, principal_of, service_of
from onthedot.api.http import responses
from onthedot.api.http.query_params import Param, read_query
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import KIB, Access, Endpoint, operation
from onthedot.web.links import is_local
from onthedot.web.live_parts import LiveParts, PartKey
from onthedot.web.notice import Notice, forget_notice, notice_cookie, notice_of
from onthedot.web.problem_page import problem_page
from onthedot.web.templating import FREEZE, load, render

__all__ = ["FORM", "action", "asked_of", "done", "is_refresh", "page", "show"]

FORM = ("application/x-www-form-urlencoded",)
LIVE = "x-onthedot-live"
"""The header with which the script of a page asks for the part of it that changes."""
WORTH_COMPRESSING = 2048
PageFunction = Callable[[Request], Awaitable[HttpResponse]]

_parts = LiveParts()


def page(path: str, *, query: tuple[Param, ...] = (), access: Access = "read") -> Callable[[PageFunction], Endpoint]:
    """Declare a page. `query`: all its parameters; read them with `asked_of`."""

    def declare(function: PageFunction) -> Endpoint:
        async def shown(request: Request) -> HttpResponse:
            request.scope[FREEZE] = await service_of(request).current_freeze()
            if LIVE not in request.headers:
                return await function(request)
            return await _parts.answer(request, _key_of(request), lambda: function(request))

        shown.__name__, shown.__doc__ = function.__name__, function.__doc__
        return operation(
            "GET",
            path,
            access,
            query=query,
            answers={200: "text/html"},
            page=True,
            problem_page=problem_page,
            listed=False,
        )(shown)

    return declare


def action(path: str, *, access: Access = "write", limit: int = 256 * KIB) -> Callable[[PageFunction], Endpoint]:
    """Declare what the form of a page does; read its fields with `forms.read_form`, answer with `done`."""

    def declare(function: PageFunction) -> Endpoint:
        return operation(
            "POST",
            path,
            access,
            answers={303: None},
            media=FORM,
            limit=limit,
            page=True,
            problem_page=problem_page,
            listed=False,
        )(function)

    return declare


def asked_of(request: Request, params: tuple[Param, ...]) -> dict[str, Any]:
    """The parameters of a page by name, or Invalid. Empty ones count as not given: a form sends them too."""
    raw: bytes = request.scope["query_string"]
    return read_query(b"&".join(pair for pair in raw.split(b"&") if pair and not pair.endswith(b"=")), params)


async def show(request: Request, template: str, /, status: Any = 200, **values: Any) -> HttpResponse:
    """The template as a page; if its script asks, only the part that changes."""
    await load(template)
    if LIVE in request.headers:
        return compressed(request, responses.html(render(request, template, part=True, **values), status))
    notice = notice_of(request)
    headers = {} if notice is None else {"set-cookie": forget_notice(request)}
    text = render(request, template, notice=notice, **values)
    return compressed(request, responses.html(text, status, headers))


def is_refresh(request: Request) -> bool:
    """Whether the script of the page asks: what stands in an element with `data-keep` need not be loaded."""
    return LIVE in request.headers


def done(request: Request, message: str, to: str, *, bad: bool = False, undo: str | None = None) -> HttpResponse:
    """Go to a page of ours that tells what was done. `to` may be what a form said: elsewhere is never gone to. `undo`:
    the path of an action without fields that takes it back; the message gets a button for it."""
    notice = Notice("bad" if bad else "good", message, undo)
    return responses.redirect(to if is_local(to) else "/", {"set-cookie": notice_cookie(request, notice)})


def compressed(request: Request, response: HttpResponse) -> HttpResponse:
    """A page of a hundred rows is 150 KB of much the same; it takes 1 ms to make 12 KB of it."""
    response.headers["vary"] = "accept-encoding"
    if len(response.body) > WORTH_COMPRESSING and _takes_gzip(request):
        response.body = gzip.compress(response.body, compresslevel=1, mtime=0)
        response.headers["content-encoding"] = "gzip"
    return response


def _key_of(request: Request) -> PartKey:
    """All that the changing part of a page may depend on."""
    principal = principal_of(request)
    address = base_of(request), request.scope["path"], request.scope["query_string"]
    return principal.tenant, principal.scope, principal.key_id is None, *address, _takes_gzip(request)


def _takes_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")
