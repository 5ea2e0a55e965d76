"""Errors as RFC 9457 problem documents: the same for a request and for a message, and none contains a stack trace."""

from __future__ import annotations

import logging
import secrets
from http import HTTPStatus

import msgspec

from onthedot import errors
from onthedot.errors import Conflict, FieldProblem, Invalid, OnTheDotError

__all__ = ["Problem", "describe_error", "describe_status"]

_log = logging.getLogger("onthedot.api")


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error: `type` for programs, `title` and `detail` for people, `errors` with one entry per invalid field."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldProblem] = msgspec.field(default_factory=list)


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
    errors.ObjectStoreUnavailable: (503, "object-store-unavailable"),
    errors.StoreUnavailable: (503, "store-unavailable"),
    errors.StoreError: (503, "store-unavailable"),
}
_TITLES = {
    "unreadable": "The request body can't be parsed",
    "invalid": "Validation failed",
    "not-available": "Not available in this installation",
    "idempotency-mismatch": "Idempotency-Key was used before with a different request",
    "version-mismatch": "Version conflict: the job changed since you read it",
    "too-late": "Not carried out: the client disconnected or the request took too long",
    "object-store-unavailable": "The object store is not available",
    "store-unavailable": "The database is not available",
}


def describe_error(error: Exception) -> Problem:
    """An error of which we know nothing is an internal one."""
    if isinstance(error, OnTheDotError):
        status, kind = next((_STATUS[c] for c in type(error).__mro__ if c in _STATUS), (500, "internal"))
        if status != 500:
            detail = str(error) or (type(error).__doc__ or "").strip()
            fields = list(error.problems) if isinstance(error, (Conflict, Invalid)) else []
            return describe_status(status, kind, detail, fields)
    return _unexpected(error)


def describe_status(status: int, kind: str, detail: str, fields: list[FieldProblem] | None = None) -> Problem:
    phrase = HTTPStatus(status).phrase
    kind = kind or phrase.lower().replace(" ", "-")
    return Problem(
        type=f"urn:onthedot:problem:{kind}",
        title=_TITLES.get(kind, phrase),
        status=status,
        detail=detail[:2000],
        errors=fields or [],
    )


def _unexpected(error: Exception) -> Problem:
    """An internal error: the client gets a reference, the log has the details under the same reference."""
    reference = secrets.token_hex(6)
    _log.error("internal server error, reference %s", reference, exc_info=error)
    return describe_status(500, "internal", f"Internal server error (reference {reference}; see the server log)")
