"""What a route says of itself: who may call it, what it takes, what it answers.

One declaration serves the guard (no scope declared: denied), the body reader (its limit), and the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp

from onthedot.api.http.problems import Problem
from onthedot.api.http.query_params import Param
from onthedot.model.key import Scope

__all__ = [
    "KIB",
    "MIB",
    "OPERATION",
    "Access",
    "Endpoint",
    "Handler",
    "Method",
    "Operation",
    "operation",
    "operation_of",
]

KIB, MIB = 1024, 1024 * 1024
Access = Literal["public"] | Scope
Handler = Callable[[Request], Awaitable[ASGIApp]]
"""Takes the request and returns the response."""
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]
OPERATION = "onthedot.operation"
"""Where a request's scope has the operation that serves it."""


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
    without_store: bool = False  # answers while the store is away, to whoever it knew a moment ago
    limit: int = MIB
    example: Any = None
    page: bool = False  # for a person in a browser: without a key, to the login page
    problem_page: Callable[[Request, Problem], str] | None = (
        None  # how it says what went wrong; None: as a problem document
    )
    listed: bool = True  # in the OpenAPI document


class Endpoint(msgspec.Struct, frozen=True):
    """A declared operation and the function that carries it out."""

    operation: Operation
    function: Handler


def operation(
    method: Method, path: str, access: Access, *, group: str = "", answers: dict[int, Any], **more: Any
) -> Callable[[Handler], Endpoint]:
    """Make an endpoint of a function; its docstring's first line becomes the summary, the rest the description."""

    def declare(function: Handler) -> Endpoint:
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
        return Endpoint(declared, function)

    return declare


def operation_of(connection: HTTPConnection) -> Operation:
    """The operation that serves this request; set by the router."""
    declared: Operation = connection.scope[OPERATION]
    return declared
