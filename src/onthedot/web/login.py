"""Logging in to the pages with an API key.

The key itself is the session: it sits in a cookie that no script can read and no other site's page can send, each
request looks it up like a key in the header, so revoking the key ends the session on every node, and nothing that lies
in the database could be used to forge one.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs

from litestar.response.base import ASGIResponse

from onthedot.api import answers
from onthedot.api.auth import COOKIE
from onthedot.api.bodies import read_body
from onthedot.api.context import service_of
from onthedot.api.operations import KIB, Req, operation
from onthedot.errors import Unauthorized
from onthedot.web.templating import render

__all__ = ["routes"]

SESSION_SECONDS = 12 * 3600
FORM = ("application/x-www-form-urlencoded",)


@operation("GET", "/login", "public", answers={200: "text/html"}, listed=False)
async def login_page(request: Req) -> ASGIResponse:
    """Ask for a key."""
    if await service_of(request).is_open():
        return answers.redirect("/")
    return answers.html(render("login.html", wrong=None))


@operation("POST", "/login", "public", answers={303: None}, media=FORM, limit=4 * KIB, listed=False)
async def login(request: Req) -> ASGIResponse:
    """Take the key."""
    form = parse_qs((await read_body(request)).decode("utf-8", "replace"), max_num_fields=10)
    key = form.get("key", [""])[0].strip()
    if not re.fullmatch(r"otd_[A-Za-z0-9_-]{1,200}", key):
        return answers.html(render("login.html", wrong="that is no API key: they begin with otd_"), 401)
    try:
        await service_of(request).authenticate(key)
    except Unauthorized as error:
        return answers.html(render("login.html", wrong=str(error)), 401)
    return answers.redirect("/", {"set-cookie": cookie(key, SESSION_SECONDS, request.scope["scheme"])})


@operation("POST", "/logout", "public", answers={303: None}, listed=False)
async def logout(request: Req) -> ASGIResponse:
    """Forget the key."""
    return answers.redirect("/login", {"set-cookie": cookie("", 0, request.scope["scheme"])})


def cookie(value: str, seconds: int, scheme: str) -> str:
    secure = "; Secure" if scheme == "https" else ""
    return f"{COOKIE}={value}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Strict{secure}"


routes = [login_page, login, logout]
