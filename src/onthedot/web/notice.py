"""The one-time message: what an action did, told on the page that follows it.

It travels in a cookie, so that the address of the page stays clean and a reload does not say it again.
"""

from __future__ import annotations

from typing import Literal
from urllib.parse import quote, unquote

import msgspec
from starlette.requests import Request

from onthedot.api.context import root_of, scheme_of
from onthedot.web.links import is_local

__all__ = ["NOTICE_COOKIE", "Notice", "forget_notice", "notice_cookie", "notice_of"]

NOTICE_COOKIE = "otd_notice"
LONGEST = 600
SECONDS = 60


class Notice(msgspec.Struct, frozen=True):
    """`undo`: the path of the action that takes back what was done."""

    tone: Literal["good", "bad"]
    text: str
    undo: str | None = None


def notice_cookie(request: Request, notice: Notice) -> str:
    value = f"{notice.tone}:{quote(notice.text[:LONGEST], safe='')}:{quote(notice.undo or '', safe='')}"
    return _cookie(request, value, SECONDS)


def forget_notice(request: Request) -> str:
    return _cookie(request, "", 0)


def notice_of(request: Request) -> Notice | None:
    tone, text, undo = (*request.cookies.get(NOTICE_COOKIE, "").split(":", 2), "", "")[:3]
    if not text:
        return None
    path = unquote(undo, errors="replace")
    told = unquote(text, errors="replace")[:LONGEST]
    return Notice("bad" if tone == "bad" else "good", told, path if is_local(path) else None)


def _cookie(request: Request, value: str, seconds: int) -> str:
    secure = "; Secure" if scheme_of(request) == "https" else ""
    path = root_of(request) or "/"
    return f"{NOTICE_COOKIE}={value}; Max-Age={seconds}; Path={path}; HttpOnly; SameSite=Strict{secure}"
