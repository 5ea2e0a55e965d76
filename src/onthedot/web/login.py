"""Login to the dashboard with an API key.

A login starts a session that is separate from the key: a random token, stored as a hash, in a cookie that scripts can't
read and other sites can't send. A session ends on logout, after twelve hours without use, after seven days in any case,
and when its key is revoked or expires, on every node.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs

from starlette.requests import Request

from onthedot.api.auth import COOKIE, session_of
from onthedot.api.context import address_of, base_of, scheme_of, service_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import read_body
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import KIB, operation
from onthedot.errors import Unauthorized
from onthedot.model.duration import SECOND
from onthedot.store import SESSION_LONGEST
from onthedot.telemetry import emit
from onthedot.web.templating import render

__all__ = ["routes"]

SESSION_SECONDS = SESSION_LONGEST // SECOND
FORM = ("application/x-www-form-urlencoded",)


@operation("GET", "/login", "public", answers={200: "text/html"}, listed=False)
async def login_page(request: Request) -> HttpResponse:
    """Show the login form."""
    if await service_of(request).is_open():
        return responses.redirect("/")
    return responses.html(_page(request, None))


@operation("POST", "/login", "public", answers={303: None}, media=FORM, limit=4 * KIB, listed=False)
async def login(request: Request) -> HttpResponse:
    """Start a session with the submitted key."""
    form = parse_qs((await read_body(request)).decode("utf-8", "replace"), max_num_fields=10)
    key = form.get("key", [""])[0].strip()
    if not re.fullmatch(r"otd_[A-Za-z0-9_-]{1,200}", key):
        emit("login.refused", address=address_of(request), key=None)
        return responses.html(_page(request, "not a valid API key: API keys start with otd_"), 401)
    try:
        session, principal = await service_of(request).log_in(key)
    except Unauthorized as error:
        emit("login.refused", address=address_of(request), key=f"{key[:8]}…")
        return responses.html(_page(request, str(error)), 401)
    emit("login.done", address=address_of(request), key_id=principal.key_id)
    return responses.redirect("/", {"set-cookie": cookie(session.token, SESSION_SECONDS, scheme_of(request))})


@operation("POST", "/logout", "public", answers={303: None}, listed=False)
async def logout(request: Request) -> HttpResponse:
    """End the session, in the browser and in the database."""
    session = session_of(request)
    if session is not None and await service_of(request).log_out(session):
        emit("logout", address=address_of(request))
    return responses.redirect("/login", {"set-cookie": cookie("", 0, scheme_of(request))})


def _page(request: Request, wrong: str | None) -> str:
    return render("login.html", wrong=wrong, base=base_of(request))


def cookie(value: str, seconds: int, scheme: str) -> str:
    secure = "; Secure" if scheme == "https" else ""
    return f"{COOKIE}={value}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Strict{secure}"


routes = [login_page, login, logout]
