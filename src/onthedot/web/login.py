"""Logging in to the pages with an API key.

What it begins is a session of its own, not the key: random, kept as a hash, in a cookie that no script can read and no
other site's page can send. Each request looks it up like a key in the header. It ends by logout, when it was not used
for twelve hours, after seven days in any case, and when its key is revoked or expires, on every node.
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
    """Ask for a key."""
    if await service_of(request).is_open():
        return responses.redirect("/")
    return responses.html(_page(request, None))


@operation("POST", "/login", "public", answers={303: None}, media=FORM, limit=4 * KIB, listed=False)
async def login(request: Request) -> HttpResponse:
    """Take the key."""
    form = parse_qs((await read_body(request)).decode("utf-8", "replace"), max_num_fields=10)
    key = form.get("key", [""])[0].strip()
    if not re.fullmatch(r"otd_[A-Za-z0-9_-]{1,200}", key):
        emit("login.refused", address=address_of(request), key=None)
        return responses.html(_page(request, "that is no API key: they begin with otd_"), 401)
    try:
        session, principal = await service_of(request).log_in(key)
    except Unauthorized as error:
        emit("login.refused", address=address_of(request), key=f"{key[:8]}…")
        return responses.html(_page(request, str(error)), 401)
    emit("login.done", address=address_of(request), key_id=principal.key_id)
    return responses.redirect("/", {"set-cookie": cookie(session.token, SESSION_SECONDS, scheme_of(request))})


@operation("POST", "/logout", "public", answers={303: None}, listed=False)
async def logout(request: Request) -> HttpResponse:
    """End the session, here and in the database."""
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
