"""Is this still the database that gave out our numbers? Asked on each new connection.

A standby that is promoted begins a new timeline. With asynchronous replication it may lack what the primary committed
in its last moments, the steps of its sequences too: it would give the same job ids once more. Run ids, and so the key
by which receivers know a repeat, are made of them. So whoever meets a new timeline first leaves a gap in all sequences,
before anything is written there: connections to the old primary are gone, and each new one comes by here.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, NamedTuple

import asyncpg

from onthedot.telemetry import emit

__all__ = ["GAP", "Lineage"]

GAP = 1_000_000
"""Numbers left out: more than a primary could give between its last replicated and its last commit."""

_ASK = """
SELECT system_identifier::text AS system, CASE WHEN pg_is_in_recovery() THEN NULL
    ELSE ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::bigint END AS timeline
FROM pg_control_system()
"""
_LEAVE_GAP = """
SELECT setval(s.name, nextval(s.name) + $1) FROM (VALUES
    ('job_ids'::regclass), ('run_numbers'::regclass),
    (pg_get_serial_sequence('api_keys', 'id')::regclass), (pg_get_serial_sequence('tenants', 'id')::regclass)
) s (name)
"""
_NOW = "floor(extract(epoch from clock_timestamp()) * 1000)::bigint"


class Timeline(NamedTuple):
    """Of one PostgreSQL system: its number rises with each promotion."""

    system: str
    number: int

    def __str__(self) -> str:
        return f"{self.system}/{self.number}"


class Lineage:
    """What this process has seen last. Where PostgreSQL does not tell (a cloud's own, perhaps), nothing is noticed."""

    def __init__(self) -> None:
        self._known: Timeline | None = None

    async def check(self, connection: Any) -> None:
        found = await _ask(connection)
        if found is None or found == self._known:
            return
        try:
            async with connection.transaction():
                if not await connection.fetchval("SELECT to_regclass('lineage') IS NOT NULL"):
                    return  # not migrated yet: asked again when it is
                before = await _noted(connection, found)
        except asyncpg.InsufficientPrivilegeError:
            return  # nor may it use the other tables, and those say what to do about it
        self._known = found
        if before is not None:
            emit("store.failover", before=before, now=str(found), gap=GAP)


async def _ask(connection: Any) -> Timeline | None:
    """None: a standby, or one that does not say."""
    apart = connection.transaction() if connection.is_in_transaction() else nullcontext()  # an error ends no other
    try:
        async with apart:
            row = await connection.fetchrow(_ASK)
    except (asyncpg.InsufficientPrivilegeError, asyncpg.FeatureNotSupportedError, asyncpg.UndefinedFunctionError):
        return None
    return None if row is None or row["timeline"] is None else Timeline(row["system"], row["timeline"])


async def _noted(connection: Any, found: Timeline) -> str | None:
    """What it was before, if this is new; once, whoever comes first. The others wait for the row meanwhile."""
    if await connection.fetchval("SELECT 1 FROM lineage WHERE system = $1 AND timeline = $2", *found):
        return None
    if await connection.fetchval(
        "INSERT INTO lineage (id, system, timeline) VALUES (1, $1, $2) ON CONFLICT DO NOTHING RETURNING timeline",
        *found,
    ):
        return None
    there = await connection.fetchrow("SELECT system, timeline FROM lineage FOR UPDATE")
    before = Timeline(there["system"], there["timeline"])
    if before == found:
        return None
    await connection.fetch(_LEAVE_GAP, GAP)
    await connection.execute(
        f"UPDATE lineage SET system = $1, timeline = $2, previous = $3, changed_at = {_NOW}",  # noqa: S608
        *found,
        str(before),
    )
    return str(before)
