"""Every exception On the Dot raises on purpose.

OnTheDotError
├── Unreadable               the input is not even JSON, YAML or TOML            HTTP 400
├── Invalid                  readable, but wrong: one FieldProblem per field     HTTP 422
│   ├── NotAvailable         a known kind that is not built or not installed     HTTP 422
│   └── IdempotencyMismatch  the same Idempotency-Key with another body          HTTP 422
├── Unauthorized             no key, or not a valid one                          HTTP 401
├── Forbidden                a valid key without the scope                       HTTP 403
├── NotFound                 no such job, run, timer, key …                      HTTP 404
├── Conflict                 the state does not allow it, or the key is taken    HTTP 409
├── VersionMismatch          If-Match names another version                      HTTP 412
├── TooLarge                 the body or batch is over its limit                 HTTP 413
├── Abandoned                nobody waits for the answer, or it took too long     HTTP 503
├── Unreachable              client: no server answers at that address
├── ServerFailed             client: the server answered with an error of its own
├── SettingsError            a setting that is unknown or impossible
└── StoreError
    ├── StoreUnavailable     the database is away: try again                     HTTP 503
    ├── StoreAhead           the database was migrated by a newer version
    ├── StoreInUse           another process holds the SQLite file
    ├── StoreMissing         there is no such file, and it was not to be made
    ├── StoreMoved           the SQLite file was removed or replaced while it was open
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
    "OnTheDotError",
    "ServerFailed",
    "SettingsError",
    "StoreAhead",
    "StoreError",
    "StoreInUse",
    "StoreMissing",
    "StoreMoved",
    "StoreUnavailable",
    "StoreUnsafe",
    "TooLarge",
    "Unauthorized",
    "Unreachable",
    "Unreadable",
    "VersionMismatch",
]


class FieldProblem(msgspec.Struct, frozen=True, kw_only=True):
    """One wrong field: where it is, what is wrong, what was given, what would be accepted.

    All four are always there, so that a client need not ask: `given` is null for what is missing, and for secrets.
    """

    path: str
    message: str
    given: Any = None
    accepted: str | None = None


class OnTheDotError(Exception):
    """Something On the Dot refuses to do; the message says what and what to do about it."""


class Unreadable(OnTheDotError):
    """The input can't be read."""


class Invalid(OnTheDotError):
    """The input is readable but wrong. Carries one problem per field."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{p.path}: {p.message}" for p in self.problems))

    @classmethod
    def one(cls, path: str, message: str, *, given: Any = None, accepted: str | None = None) -> Invalid:
        return cls([FieldProblem(path=path, message=message, given=given, accepted=accepted)])


class NotAvailable(Invalid):
    """A kind we know of, but that is not built or not installed here."""


class IdempotencyMismatch(Invalid):
    """The same Idempotency-Key was used before with another body."""


class Unauthorized(OnTheDotError):
    """No API key was given, or it is unknown, expired or revoked."""


class Forbidden(OnTheDotError):
    """The API key is valid but lacks the scope for this."""


class NotFound(OnTheDotError):
    """There is no such thing."""


class Conflict(OnTheDotError):
    """The present state does not allow it."""


class VersionMismatch(OnTheDotError):
    """Someone else changed it since the version named in If-Match."""


class TooLarge(OnTheDotError):
    """The body or the batch is over its limit."""


class Abandoned(OnTheDotError):
    """The client is gone, or its request took too long: nothing was written."""


class Unreachable(OnTheDotError):
    """No server answers at that address."""


class ServerFailed(OnTheDotError):
    """The server answered with an error of its own, or in a way that nobody expects."""


class SettingsError(OnTheDotError):
    """A setting is unknown or impossible."""


class StoreError(OnTheDotError):
    """The store can't do its work."""


class StoreUnavailable(StoreError):
    """The database can't be reached right now."""


class NoRoom(StoreUnavailable):
    """This machine has run out of descriptors or memory, and can't even read the rules of a time zone."""


class StoreAhead(StoreError):
    """The database was migrated by a newer version of On the Dot."""


class StoreInUse(StoreError):
    """Another process holds the SQLite file."""


class StoreMissing(StoreError):
    """There is no such SQLite file yet."""


class StoreMoved(StoreError):
    """The SQLite file was removed or replaced while it was open."""


class StoreUnsafe(StoreError):
    """The database may lose acknowledged writes."""
