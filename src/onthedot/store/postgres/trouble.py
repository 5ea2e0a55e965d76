"""Which errors mean "the database is away, try again", and which mean "run the transaction again"."""

from __future__ import annotations

from asyncpg import exceptions as pg

from onthedot.errors import StoreUnavailable

__all__ = ["AWAY", "is_again", "unavailable"]

AWAY: tuple[type[BaseException], ...] = (
    pg.PostgresConnectionError,
    pg.CannotConnectNowError,
    pg.AdminShutdownError,
    pg.CrashShutdownError,
    pg.InsufficientResourcesError,  # too many connections, disk full, out of memory
    pg.QueryCanceledError,  # a statement_timeout on the server
    pg.LockNotAvailableError,
    pg.ReadOnlySQLTransactionError,  # a failover left us on the standby
    pg.InternalClientError,
    OSError,
    TimeoutError,
)

AGAIN: tuple[type[BaseException], ...] = (
    pg.DeadlockDetectedError,
    pg.SerializationError,
    pg.InvalidCachedStatementError,  # a migration changed a table under a prepared statement
    pg.OutdatedSchemaCacheError,
    pg.IdleInTransactionSessionTimeoutError,  # this process was too busy to go on in time; the server rolled it back
)


def is_again(error: BaseException) -> bool:
    """Two nodes that make the same table at once also collide, in PostgreSQL's own catalogue."""
    if isinstance(error, pg.UniqueViolationError):
        return str(error.constraint_name).startswith("pg_")
    return isinstance(error, AGAIN)


def unavailable(error: BaseException) -> StoreUnavailable:
    return StoreUnavailable(f"the PostgreSQL store can't be reached: {str(error) or type(error).__name__}")
