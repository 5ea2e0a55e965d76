"""Migrations as one SQL script, for databases whose tables only an administrator may change."""

from __future__ import annotations

from collections.abc import Sequence

from onthedot.store.migrate import Migration
from onthedot.store.queries import Queries
from onthedot.version import __version__

__all__ = ["migration_script"]

_NOW = {
    "postgres": "floor(extract(epoch from clock_timestamp()) * 1000)::bigint",
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
}
_BEGIN = {"postgres": "BEGIN;", "sqlite": "BEGIN IMMEDIATE;"}
_HOW = {
    "postgres": (
        "-- Run it as the role that On the Dot connects as (SET ROLE if need be): that role must own the tables.",
        "-- psql -v ON_ERROR_STOP=1 -f FILE DATABASE",
    ),
    "sqlite": ("-- Stop On the Dot first, then: sqlite3 -bail onthedot.db < FILE",),
}


def migration_script(dialect: str, migrations: Sequence[Migration], *, schema: str | None = None) -> str:
    """Each migration is one transaction that first writes its number, so that it can't be applied twice. `schema`: the
    quoted name of the schema that the store URL sets."""
    queries = Queries(dialect, _NOW[dialect])
    lines = [f"-- On the Dot {__version__}: {len(migrations)} migration{'s' if len(migrations) != 1 else ''}."]
    if not migrations:
        return f"{lines[0]} Nothing to do.\n"
    lines += [*_HOW[dialect], ""]
    if schema is not None:
        lines += [f"CREATE SCHEMA IF NOT EXISTS {schema};", f"SET search_path TO {schema};"]
    lines += [f"{queries['create_meta']};", ""]
    for migration in migrations:
        lines += [f"-- {migration.number:04} {migration.name}", _BEGIN[dialect]]
        if dialect == "postgres":
            lines.append(f"{queries['lock_meta']};")
        breaking = str(migration.breaking).lower() if dialect == "postgres" else int(migration.breaking)
        values = f"{migration.number}, '{migration.name}', {breaking}, {_NOW[dialect]}"
        lines.append(f"INSERT INTO meta (number, name, breaking, applied_at) VALUES ({values});")  # noqa: S608  # our own files
        lines += [queries.render(migration.text).strip(), "COMMIT;", ""]
    return "\n".join(lines)
