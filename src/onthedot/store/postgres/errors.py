"""Which errors mean "the database is away, try again", which "run the transaction again", and which "mend it first"."""

from __future__ import annotations

import ssl

from asyncpg import exceptions as pg

from onthedot.errors import StoreError, StoreUnavailable
from onthedot.store.postgres.address import Address

__all__ = ["AWAY", "final", "forbidden", "in_words", "is_again", "no_schema", "refused", "unavailable"]

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

_NO_TLS = "rejected SSL upgrade"  # asyncpg has no class of its own for it
_BROKEN_OFF = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)  # a server that went down meanwhile


def is_again(error: BaseException) -> bool:
    """Two nodes that make the same table at once also collide, in PostgreSQL's own catalogue."""
    if isinstance(error, pg.UniqueViolationError):
        return str(error.constraint_name).startswith("pg_")
    return isinstance(error, AGAIN)


def unavailable(error: BaseException) -> StoreUnavailable:
    return StoreUnavailable(f"can't reach the PostgreSQL store: {in_words(error)}")


def in_words(error: BaseException) -> str:
    """An OSError of asyncio's carries one text for each address of a host, and a time-out none at all."""
    if isinstance(error, TimeoutError) and not error.strerror:
        return str(error) or "timed out"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return str(error) or type(error).__name__


def final(error: BaseException) -> bool:
    """Of a connection that did not come about: waiting would not mend it."""
    if isinstance(error, ssl.SSLError):
        return not isinstance(error, _BROKEN_OFF)
    if isinstance(error, AWAY):
        return _NO_TLS in str(error)
    return isinstance(error, (pg.PostgresError, pg.InterfaceError, ValueError))


def refused(address: Address, error: BaseException) -> StoreError:
    """What to do about an error that is final."""
    advice = ""
    if _NO_TLS in str(error):
        advice = ". sslmode requires TLS, which this server does not support: turn `ssl` on there, or omit sslmode"
    elif isinstance(error, ssl.SSLCertVerificationError):
        advice = ". Set ?sslrootcert= to the CA that signed the server's certificate, or use sslmode=require"
    elif isinstance(error, pg.InvalidPasswordError):
        advice = ". Check the user and password in STORE (or PGPASSWORD, ~/.pgpass)"
    elif isinstance(error, pg.InvalidCatalogNameError):
        advice = ". Create the database (CREATE DATABASE), or correct its name in STORE"
    elif isinstance(error, pg.InvalidAuthorizationSpecificationError):
        advice = ". Check the user in STORE and pg_hba.conf on the server"
    elif isinstance(error, pg.InsufficientPrivilegeError):
        advice = ". As the owner of the database or a superuser, run: GRANT CONNECT ON DATABASE … TO …"
    return StoreError(f"can't open the PostgreSQL store {address.shown()}: {in_words(error)}{advice}")


def forbidden(error: BaseException, role: str, database: str, schema: str) -> StoreError:
    """The role may not do what the store needs: what to GRANT, and where."""
    role, schema = _quoted(role), _quoted(schema)
    where = f"in schema {schema} of database {_quoted(database)} ({error})"
    if "schema" in str(error):
        return StoreError(
            f"role {role} is not allowed to create tables {where}.\n"
            "As the owner of the schema or a superuser, run:\n"
            f"  GRANT USAGE, CREATE ON SCHEMA {schema} TO {role};\n"
            "or create a schema for it and add ?schema=onthedot to STORE:\n"
            f"  CREATE SCHEMA onthedot AUTHORIZATION {role};"
        )
    return StoreError(
        f"role {role} is not allowed to use the tables {where}.\n"
        "Another role owns them: connect as that role, use another schema with ?schema=, or as a superuser, run:\n"
        f"  ALTER TABLE {schema}.… OWNER TO {role};   -- for each table and sequence"
    )


def no_schema(role: str, database: str, schema: str) -> StoreError:
    return StoreError(
        f"schema {_quoted(schema)} does not exist in database {_quoted(database)}, "
        f"and role {_quoted(role)} is not allowed to create it.\n"
        "As the owner of the database or a superuser, run:\n"
        f"  CREATE SCHEMA {_quoted(schema)} AUTHORIZATION {_quoted(role)};"
    )


def _quoted(name: str) -> str:
    """As SQL wants it: quoted only where it must be."""
    plain = name.isascii() and name.replace("_", "a").isalnum() and name == name.lower() and not name[0].isdigit()
    return name if plain else '"' + name.replace('"', '""') + '"'
