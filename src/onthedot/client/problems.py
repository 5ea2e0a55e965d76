"""Turns a problem document into the exception that the server raised, so that clients can catch the same errors."""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot import errors
from onthedot.errors import Conflict, FieldProblem, Invalid, OnTheDotError

__all__ = ["error_of", "is_problem"]

_BY_TYPE: dict[str, type[OnTheDotError]] = {
    "unreadable": errors.Unreadable,
    "unauthorized": errors.Unauthorized,
    "forbidden": errors.Forbidden,
    "not-found": errors.NotFound,
    "conflict": errors.Conflict,
    "version-mismatch": errors.VersionMismatch,
    "too-large": errors.TooLarge,
    "invalid": errors.Invalid,
    "not-available": errors.NotAvailable,
    "idempotency-mismatch": errors.IdempotencyMismatch,
    "store-unavailable": errors.StoreUnavailable,
}
_BY_STATUS: dict[int, type[OnTheDotError]] = {
    400: errors.Unreadable,
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    412: errors.VersionMismatch,
    413: errors.TooLarge,
    422: errors.Invalid,
    503: errors.StoreUnavailable,
}


class _Problem(msgspec.Struct, frozen=True):
    type: str = ""
    detail: str = ""
    errors: list[FieldProblem] = msgspec.field(default_factory=list)


def is_problem(body: bytes) -> bool:
    """Whether the server said it, and not something else at its address."""
    try:
        return bool(msgspec.json.decode(body, type=_Problem).type)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def error_of(status: int, body: bytes) -> OnTheDotError:
    """Choose the exception by problem type, or by status if a proxy sent the response."""
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        problem = _Problem()
    kind: Any = _BY_TYPE.get(problem.type.rpartition(":")[2]) or _BY_STATUS.get(status, errors.ServerFailed)
    detail = problem.detail or f"the server returned status {status}: {body[:200].decode(errors='replace')}"
    if issubclass(kind, Invalid):
        return kind(problem.errors or [FieldProblem(path="$", message=detail)])  # type: ignore[no-any-return]
    if issubclass(kind, Conflict):
        return kind(detail, problem.errors)  # type: ignore[no-any-return]
    return kind(detail)  # type: ignore[no-any-return]
