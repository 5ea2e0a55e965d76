"""Login to the dashboard with an API key.

A login starts a session that is separate from the key: a random token, stored as a hash, in a cookie that scripts can't
read and other sites can't send. A session ends on logout, after twelve hours without use, after seven days in any case,
and when its key is revoked or expires, on every node.
"""

from __future__ import annotations

import re

from starlette.requests import Request

from onthedot.api.auth import COOKIE, session_of
from onthedot.api.context import address_of, root_of, scheme_of, service_of
from onthedot.api.http import responses
from onthedot.api.http.query_params import flag, text
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import KIB, operation
from onthedot.errors import Unauthorized
from onthedot.model.duration import SECOND
from onthedot.store import SESSION_LONGEST
from onthedot.telemetry import emit
from onthedot.web.forms import read_form
from onthedot.web.links import is_local
from onthedot.web.page import FORM, asked_of
from onthedot.web.problem_page import problem_page
from onthedot.web.templating import load, render

__all__ = ["routes"]

SESSION_SECONDS = SESSION_LONGEST // SECOND
ASKED = (
    text("next", "Path of the page to go to after the login", longest=1000),
    flag("ended", "Whether a session has ended"),
)


@operation(
    "GET", "/login", "public", query=ASKED, answers={200: "text/html"}, problem_page=problem_page, listed=False
)  # fmt: skip
async def login_page(request: Request) -> HttpResponse:
    """Show the login form."""
    asked = asked_of(request, ASKED)
    if await service_of(request).is_open():
        return responses.redirect("/")
    await load("login.html")
    return responses.html(_page(request, None, asked["next"] or "", ended=asked["ended"]))


@operation(
    "POST", "/login", "public", answers={303: None}, media=FORM, limit=4 * KIB, problem_page=problem_page, listed=False
)
async def login(request: Request) -> HttpResponse:
    """Start a session with the submitted key."""
    form = await read_form(request, "key", "next")
    key, following = form.text("key"), form.text("next")
    if not re.fullmatch(r"otd_[A-Za-z0-9_-]{1,200}", key):
        emit("login.refused", address=address_of(request), key=None)
        return responses.html(_page(request, "not a valid API key: API keys start with otd_", following), 401)
    try:
        session, principal = await service_of(request).log_in(key, address_of(request))
    except Unauthorized as error:
        emit("login.refused", address=address_of(request), key=f"{key[:8]}…")
        return responses.html(_page(request, str(error), following), 401)
    emit("login.done", address=address_of(request), key_id=principal.key_id)
    to = following if is_local(following) else "/"
    return responses.redirect(to, {"set-cookie": cookie(request, session.token, SESSION_SECONDS)})


@operation("POST", "/logout", "public", answers={303: None}, problem_page=problem_page, listed=False)
async def logout(request: Request) -> HttpResponse:
    """End the session, in the browser and in the database."""
    session = session_of(request)
    if session is not None and await service_of(request).log_out(session, address_of(request)):
        emit("logout", address=address_of(request))
    return responses.redirect("/login", {"set-cookie": cookie(request, "", 0)})


def _page(request: Request, wrong: str | None, following: str, *, ended: bool = False) -> str:
    return render(request, "login.html", wrong=wrong, next=following if is_local(following) else "", ended=ended)


def cookie(request: Request, value: str, seconds: int) -> str:
    secure = "; Secure" if scheme_of(request) == "https" else ""
    path = root_of(request) or "/"
    return f"{COOKIE}={value}; Max-Age={seconds}; Path={path}; HttpOnly; SameSite=Strict{secure}"


routes = [login_page, login, logout]
