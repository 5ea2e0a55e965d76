"""Lists: a page of items and where the next one is. The cursor is the store's and means nothing to anybody else."""

from __future__ import annotations

from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode

import msgspec
from starlette.requests import Request

from onthedot.api.http import responses
from onthedot.api.http.query_params import Param, text, whole
from onthedot.api.http.responses import HttpResponse
from onthedot.model.job import JobView
from onthedot.model.run import RunView
from onthedot.store import Page

__all__ = ["PAGING", "JobList", "RunList", "page_answer"]

T = TypeVar("T")
PAGING: tuple[Param, ...] = (
    whole("limit", "How many at most", 1, 500, 50),
    text("cursor", "Where to go on: taken from `next`, and good only with the same filters", longest=1000),
)


class JobList(msgspec.Struct, frozen=True):
    """`next` is the address of the next page, null on the last one."""

    items: list[JobView]
    next: str | None


class RunList(msgspec.Struct, frozen=True):
    """`next` is the address of the next page, null on the last one."""

    items: list[RunView]
    next: str | None


def page_answer(request: Request, page: Page[Any]) -> HttpResponse:
    following = None
    if page.next is not None:
        asked = [(name, value) for name, value in parse_qsl(request.scope["query_string"].decode()) if name != "cursor"]
        following = f"{request.scope['path']}?{urlencode([*asked, ('cursor', page.next)])}"
    headers = None if following is None else {"link": f'<{following}>; rel="next"'}
    return responses.json({"items": page.items, "next": following}, headers=headers)
