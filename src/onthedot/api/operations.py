"""What a route says of itself: who may call it, what it takes, what it answers.

One declaration serves the guard (no scope declared: denied), the body reader (its limit), and the OpenAPI document.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec
from litestar import Request
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from onthedot.api.http.problems import Problem
from onthedot.api.http.query_params import Param
from onthedot.model.key import Scope

__all__ = ["KIB", "MIB", "Access", "Handler", "Method", "Operation", "Req", "operation", "operation_of"]

KIB, MIB = 1024, 1024 * 1024
Access = Literal["public"] | Scope
Req = Request[Any, Any, Any]
Handler = Callable[[Req], Awaitable[ASGIResponse]]
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """`answers`: status → type of the JSON body, a media type for anything else, or None for no body."""

    method: Method
    path: str
    access: Access
    name: str
    summary: str
    description: str
    group: str
    query: tuple[Param, ...] = ()
    body: Any = None
    body_required: bool = True
    media: tuple[str, ...] = ("application/json",)
    answers: dict[int, Any] = msgspec.field(default_factory=dict)
    problems: tuple[int, ...] = ()
    idempotent: bool = False  # honours Idempotency-Key
    conditional: bool = False  # honours If-Match
    etag: bool = False
    limit: int = MIB
    example: Any = None
    page: bool = False  # for a person in a browser: without a key, to the login page
    problem_page: Callable[[Problem], str] | None = None  # how it says what went wrong; None: as a problem document
    listed: bool = True  # in the OpenAPI document


def operation(
    method: Method, path: str, access: Access, *, group: str = "", answers: dict[int, Any], **more: Any
) -> Callable[[Handler], HTTPRouteHandler]:
    """Make a handler of a function; its docstring's first line becomes the summary, the rest the description."""

    def declare(function: Handler) -> HTTPRouteHandler:
        summary, _, description = (function.__doc__ or "").strip().partition("\n")
        declared = Operation(
            method=method,
            path=path,
            access=access,
            name=function.__name__,
            summary=summary.rstrip("."),
            description=" ".join(description.split()),
            group=group,
            answers=answers,
            **more,
        )
        litestar_path = re.sub(r"\{(\w+)\}", r"{\1:str}", path)
        route = HTTPRouteHandler(litestar_path, http_method=method, status_code=200, opt={"operation": declared})
        return route(function)

    return declare


def operation_of(handler: Any) -> Operation | None:
    found = handler.opt.get("operation")
    return found if isinstance(found, Operation) else None
