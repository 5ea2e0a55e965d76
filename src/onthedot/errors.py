"""All exceptions that On the Dot raises.

OnTheDotError
├── Unreadable               the input is not valid JSON, YAML or TOML           HTTP 400
├── Invalid                  validation failed: one FieldProblem per field       HTTP 422
│   ├── NotAvailable         a feature that is not built or not installed        HTTP 422
│   └── IdempotencyMismatch  the same Idempotency-Key with a different body      HTTP 422
├── Unauthorized             no API key, or an invalid one                       HTTP 401
├── Forbidden                the API key lacks the scope                         HTTP 403
├── NotFound                 no such job, run, timer, key …                      HTTP 404
├── Conflict                 not possible in this state, or the key is taken     HTTP 409
├── VersionMismatch          If-Match does not match the current version         HTTP 412
├── TooLarge                 the body or batch exceeds its limit                 HTTP 413
├── Abandoned                the client disconnected, or the request timed out   HTTP 503
├── Unreachable              client: can't connect to the server
├── ServerFailed             client: the server returned an unexpected response
│   └── NotOnTheDot          client: something else answers at the address
├── SettingsError            a setting is unknown or not valid
├── ObjectStoreUnavailable   the object store can't be read or written           HTTP 503
│   └── ObjectMissing        the object store has no such object
└── StoreError
    ├── StoreUnavailable     the database can't be reached; retry                HTTP 503
    │   └── NoRoom           this machine is out of descriptors or memory        HTTP 503
    ├── StoreAhead           the database was migrated by a newer version
    ├── StoreInUse           another process has the SQLite file open
    ├── StoreMissing         the SQLite file does not exist
    ├── StoreRelocated       the store is being moved to another database, or was
    ├── StoreMoved           the SQLite file was removed or replaced while open
    └── StoreUnsafe          fsync or synchronous_commit is off
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

__all__ = [
    "Abandoned",
    "Conflict",
    "FieldProblem",
    "Forbidden",
    "IdempotencyMismatch",
    "Invalid",
    "NotAvailable",
    "NotFound",
    "NotOnTheDot",
    "ObjectMissing",
    "ObjectStoreUnavailable",
    "OnTheDotError",
    "ServerFailed",
    "SettingsError",
    "StoreAhead",
    "StoreError",
    "StoreInUse",
    "StoreMissing",
    "StoreMoved",
    "StoreRelocated",
    "StoreUnavailable",
    "StoreUnsafe",
    "TooLarge",
    "Unauthorized",
    "Unreachable",
    "Unreadable",
    "VersionMismatch",
]


NOTED_MOST = 10


class FieldProblem(msgspec.Struct, frozen=True, kw_only=True):
    """One invalid field: its path, what is wrong, what was given and what is accepted.

    All four are always present. `given` is null for missing fields and for secrets.
    """

    path: str
    message: str
    given: Any = None
    accepted: str | None = None


class OnTheDotError(Exception):
    """Base class. The message says what is wrong and, where possible, how to fix it."""


class Unreadable(OnTheDotError):
    """The input can't be parsed."""


class Invalid(OnTheDotError):
    """Validation failed. `problems` has one entry per field."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{p.path}: {p.message}" for p in self.problems))
        for problem in self.problems[:NOTED_MOST]:  # a traceback shows them; whoever formats the error has the problems
            if problem.accepted is not None:
                given = "" if problem.given is None else f" (given: {problem.given!r})"
                self.add_note(f"{problem.path}: accepted: {problem.accepted}{given}")

    @classmethod
    def one(cls, path: str, message: str, *, given: Any = None, accepted: str | None = None) -> Invalid:
        return cls([FieldProblem(path=path, message=message, given=given, accepted=accepted)])


class NotAvailable(Invalid):
    """A feature that is not built into this version, or not installed."""


class IdempotencyMismatch(Invalid):
    """The same Idempotency-Key was used before with a different body."""


class Unauthorized(OnTheDotError):
    """The API key is missing, unknown, expired or revoked."""


class Forbidden(OnTheDotError):
    """The API key is valid but lacks the required scope."""


class NotFound(OnTheDotError):
    """Not found."""


class Conflict(OnTheDotError):
    """Not possible in the current state. `problems` has one entry per field, where fields are the reason."""

    def __init__(self, message: str = "", problems: Sequence[FieldProblem] = ()) -> None:
        self.problems = tuple(problems)
        super().__init__(message)


class VersionMismatch(OnTheDotError):
    """Version conflict: the object changed since the version in If-Match."""


class TooLarge(OnTheDotError):
    """The body or the batch exceeds its limit."""


class Abandoned(OnTheDotError):
    """The client disconnected or the request timed out; nothing was written."""


class Unreachable(OnTheDotError):
    """Can't connect to the server."""


class ServerFailed(OnTheDotError):
    """The server returned an error or an unexpected response."""


class NotOnTheDot(ServerFailed):
    """Something else than an On the Dot server answers at the address."""


class SettingsError(OnTheDotError):
    """A setting is unknown or not valid."""


class ObjectStoreUnavailable(OnTheDotError):
    """The object store can't be reached, read or written."""


class ObjectMissing(ObjectStoreUnavailable):
    """The object store has no such object."""


class StoreError(OnTheDotError):
    """An error of the store."""


class StoreUnavailable(StoreError):
    """The database can't be reached."""


class NoRoom(StoreUnavailable):
    """This machine is out of file descriptors or memory and can't load time zone data."""


class StoreAhead(StoreError):
    """The database was migrated by a newer version of On the Dot."""


class StoreInUse(StoreError):
    """Another process has the SQLite file open."""


class StoreMissing(StoreError):
    """The SQLite file does not exist."""


class StoreRelocated(StoreError):
    """The store is being moved to another database with `onthedot migrate-store`, or was."""


class StoreMoved(StoreError):
    """The SQLite file was removed or replaced while it was open."""


class StoreUnsafe(StoreError):
    """The database settings allow it to lose acknowledged writes."""
