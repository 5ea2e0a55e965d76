"""The schema that the tables live in, and whether our role may make them there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import asyncpg

from onthedot.errors import StoreError
from onthedot.store.driver import Transaction
from onthedot.store.postgres.address import Address
from onthedot.store.postgres.errors import forbidden, no_schema

__all__ = ["FORBIDDEN", "Room"]

FORBIDDEN = (asyncpg.InsufficientPrivilegeError, asyncpg.InvalidSchemaNameError)


class Room:
    def __init__(self, address: Address, transaction: Callable[[], AbstractAsyncContextManager[Transaction]]) -> None:
        self._address = address
        self._transaction = transaction

    async def make(self) -> None:
        """The schema that the address names, if it is not there and we may make it."""
        if self._address.schema is None:
            return
        async with self._transaction() as tx:
            if await tx.sql("SELECT 1 FROM pg_namespace WHERE nspname = $1", self._address.schema):
                return
        try:
            async with self._transaction() as tx:
                await tx.sql(f"CREATE SCHEMA IF NOT EXISTS {self._address.search_path}")
        except asyncpg.InsufficientPrivilegeError as error:
            raise no_schema(*await self._who()) from error
        except asyncpg.UniqueViolationError:
            pass  # another node made it at the same moment

    async def check(self) -> None:
        """Raises what `migrate` would, without making anything."""
        async with self._transaction() as tx:
            (row,) = await tx.sql(
                "SELECT n.oid IS NOT NULL AS there, coalesce(has_schema_privilege(n.oid, 'CREATE'), false) AS may,"
                " has_database_privilege(current_database(), 'CREATE') AS may_make"
                " FROM (SELECT coalesce($1::text, current_schema()::text)) s (name)"
                " LEFT JOIN pg_namespace n ON n.nspname = s.name",
                self._address.schema,
            )
        if self._address.schema is not None and not row["there"]:
            if not row["may_make"]:
                raise no_schema(*await self._who())
        elif not row["may"]:
            raise forbidden(PermissionError("permission denied for schema"), *await self._who())

    async def forbidden(self, error: BaseException) -> StoreError:
        return forbidden(error, *await self._who())

    async def _who(self) -> tuple[str, str, str]:
        """Role, database, and the schema that tables are made in."""
        async with self._transaction() as tx:
            (row,) = await tx.sql(
                "SELECT current_user::text AS role, current_database()::text AS place,"
                " coalesce($1::text, current_schema()::text, 'public') AS schema",
                self._address.schema,
            )
        return row["role"], row["place"], row["schema"]
