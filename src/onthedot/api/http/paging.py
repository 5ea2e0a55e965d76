"""Paginated lists: a page of items and the URL of the next page. Only the store can read a cursor."""

from __future__ import annotations

from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode

import msgspec
from starlette.requests import Request

from onthedot.api.context import root_of
from onthedot.api.http import responses
from onthedot.api.http.query_params import Param, integer, text
from onthedot.api.http.responses import HttpResponse
from onthedot.model.job import JobView
from onthedot.model.run import RunView
from onthedot.store import Page

__all__ = ["PAGING", "JobList", "RunList", "page_answer"]

T = TypeVar("T")
PAGING: tuple[Param, ...] = (
    integer("limit", "Maximum number of items; a page also ends when it has 8 MiB", 1, 500, 50),
    text("cursor", "Cursor of the next page, taken from `next`; valid only with the same filters", longest=1000),
)


class JobList(msgspec.Struct, frozen=True):
    """`next` is the URL of the next page, null on the last page."""

    items: list[JobView]
    next: str | None


class RunList(msgspec.Struct, frozen=True):
    """`next` is the URL of the next page, null on the last page."""

    items: list[RunView]
    next: str | None


def page_answer(request: Request, page: Page[Any]) -> HttpResponse:
    following = None
    if page.next is not None:
        asked = [(name, value) for name, value in parse_qsl(request.scope["query_string"].decode()) if name != "cursor"]
        path = root_of(request) + request.scope["path"]
        following = f"{path}?{urlencode([*asked, ('cursor', page.next)])}"
    headers = None if following is None else {"link": f'<{following}>; rel="next"'}
    return responses.json({"items": page.items, "next": following}, headers=headers)
