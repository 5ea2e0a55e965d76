"""Errors as RFC 9457 problem documents. Whatever goes wrong, a client gets this shape and never a stack trace."""

from __future__ import annotations

import logging
import secrets
from http import HTTPStatus
from typing import Any

import msgspec
from litestar.exceptions import HTTPException
from litestar.response.base import ASGIResponse

from onthedot import errors
from onthedot.errors import FieldProblem, Invalid, OnTheDotError
from onthedot.model.decoding import encode_json

__all__ = ["PROBLEM_MEDIA", "HttpProblem", "Problem", "answer_problem", "problem_of"]

PROBLEM_MEDIA = "application/problem+json"
_log = logging.getLogger("onthedot.api")


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong: `type` for programs, `title` and `detail` for people, `errors` for each wrong field."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldProblem] = msgspec.field(default_factory=list)


class HttpProblem(Exception):
    """Something only HTTP knows: 405, 408, 415, 429 …"""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers or {}


# The nearest class in a raised error's family tree decides.
_STATUS: dict[type[OnTheDotError], tuple[int, str]] = {
    errors.Unreadable: (400, "unreadable"),
    errors.Unauthorized: (401, "unauthorized"),
    errors.Forbidden: (403, "forbidden"),
    errors.NotFound: (404, "not-found"),
    errors.Conflict: (409, "conflict"),
    errors.VersionMismatch: (412, "version-mismatch"),
    errors.TooLarge: (413, "too-large"),
    errors.Abandoned: (503, "too-late"),
    errors.Invalid: (422, "invalid"),
    errors.NotAvailable: (422, "not-available"),
    errors.IdempotencyMismatch: (422, "idempotency-mismatch"),
    errors.StoreUnavailable: (503, "store-unavailable"),
    errors.StoreError: (503, "store-unavailable"),
}
_HEADERS: dict[int, dict[str, str]] = {
    401: {"www-authenticate": 'Bearer realm="onthedot"'},
    429: {"retry-after": "1"},
    503: {"retry-after": "1"},
}
_TITLES = {
    "unreadable": "The body can't be read",
    "invalid": "Something in it is wrong",
    "not-available": "Not available here",
    "idempotency-mismatch": "This Idempotency-Key was used with another body",
    "version-mismatch": "Somebody else changed it",
    "too-late": "Not carried out: it would have been too late",
    "store-unavailable": "The database can't be reached",
}


def problem_of(error: Exception) -> tuple[Problem, dict[str, str]]:
    """The document and the headers that go with it."""
    if isinstance(error, OnTheDotError):
        status, kind = next((_STATUS[c] for c in type(error).__mro__ if c in _STATUS), (500, "internal"))
        if status != 500:
            detail = str(error) or (type(error).__doc__ or "").strip()
            fields = list(error.problems) if isinstance(error, Invalid) else []
            return _problem(status, kind, detail, fields), _HEADERS.get(status, {})
    if isinstance(error, HttpProblem):
        return _problem(error.status, "", str(error)), {**_HEADERS.get(error.status, {}), **error.headers}
    if isinstance(error, HTTPException) and error.status_code < 500:
        return _of_router(error)
    return _unexpected(error)


def answer_problem(error: Exception) -> ASGIResponse:
    problem, headers = problem_of(error)
    return ASGIResponse(
        body=encode_json(problem), status_code=problem.status, media_type=PROBLEM_MEDIA, headers=headers
    )


def _problem(status: int, kind: str, detail: str, fields: list[FieldProblem] | None = None) -> Problem:
    phrase = HTTPStatus(status).phrase
    kind = kind or phrase.lower().replace(" ", "-")
    return Problem(
        type=f"urn:onthedot:problem:{kind}",
        title=_TITLES.get(kind, phrase),
        status=status,
        detail=detail[:2000],
        errors=fields or [],
    )


def _of_router(error: HTTPException) -> tuple[Problem, dict[str, str]]:
    headers = {name.lower(): str(value) for name, value in (error.headers or {}).items()}
    if "allow" in headers:
        headers["allow"] = ", ".join(sorted(set(headers["allow"].split(", ")) - {"OPTIONS"}))
    detail = {
        404: "there is nothing at this address; /docs lists what there is",
        405: f"this address does not take that method, but {headers.get('allow', 'others')}",
    }.get(error.status_code, error.detail or HTTPStatus(error.status_code).phrase)
    return _problem(error.status_code, "", detail), headers


def _unexpected(error: Exception) -> tuple[Problem, dict[str, str]]:
    """A fault of ours. The client gets a reference, the log gets the rest under the same reference."""
    reference = secrets.token_hex(6)
    _log.error("unexpected error %s", reference, exc_info=error)
    return _problem(500, "internal", f"an error on our side; the log has it under {reference}"), {}


def fields_of(error: OnTheDotError) -> dict[str, Any]:
    """An error as one item's answer in a batch."""
    problem, _ = problem_of(error)
    item: dict[str, Any] = {"status": problem.status, "detail": problem.detail}
    if problem.errors:
        item["errors"] = problem.errors
    return item
