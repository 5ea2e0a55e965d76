"""A database's schema as text that is the same for the same schema: for the golden files."""

from __future__ import annotations

import re

from onthedot.store import Store
from tests.store.given import fetch

_COLUMNS = """
SELECT c.relname AS table_name, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
       CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END AS required,
       coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '') AS fallback,
       CASE a.attidentity WHEN '' THEN '' ELSE ' IDENTITY' END AS identity,
       coalesce(' COLLATE ' || co.collname, '') AS collation,
       CASE WHEN a.attstorage <> t.typstorage THEN ' STORAGE ' || a.attstorage::text ELSE '' END AS storage
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_collation co ON co.oid = a.attcollation AND co.collname <> 'default'
WHERE a.attnum > 0 AND NOT a.attisdropped
ORDER BY c.relname, a.attnum
"""
_TABLES = """
SELECT c.relname AS name, coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '') AS options,
       coalesce(' PARTITION BY ' || pg_get_partkeydef(c.oid), '') AS partitioned,
       coalesce(' PARTITION ' || pg_get_expr(c.relpartbound, c.oid), '') AS bound
FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname
"""
_CONSTRAINTS = """
SELECT r.conrelid::regclass::text AS table_name, pg_get_constraintdef(r.oid) AS text
FROM pg_constraint r WHERE r.connamespace = current_schema()::regnamespace AND r.contype IN ('p', 'u', 'f', 'c')
ORDER BY 1, 2
"""
_INDEXES = "SELECT indexdef AS text FROM pg_indexes WHERE schemaname = current_schema() ORDER BY indexname"
_SEQUENCES = "SELECT sequencename AS name FROM pg_sequences WHERE schemaname = current_schema() ORDER BY 1"


async def schema_text(store: Store) -> str:
    return await (_postgres(store) if store.driver.dialect == "postgres" else _sqlite(store))


async def _sqlite(store: Store) -> str:
    rows = await fetch(
        store,
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type DESC, name",
    )
    return "".join(_plain(row["sql"]) + ";\n\n" for row in rows)


def _plain(sql: str) -> str:
    without_comments = re.sub(r" *--.*", "", sql)
    lines = [line.rstrip() for line in without_comments.splitlines() if line.strip()]
    text = re.sub(r"\n, (.+)\)( WITHOUT ROWID)?$", _columns_added, "\n".join(lines), flags=re.MULTILINE)
    added_before_a_key = r"^ +\w+ +[A-Z]+(?:, \w+ [A-Z]+)+,$"
    return re.sub(added_before_a_key, lambda found: found[0].replace(", ", ",\n    "), text, flags=re.MULTILINE)


def _columns_added(found: re.Match[str]) -> str:
    """SQLite writes columns that were added later all on the line of the closing bracket."""
    return "".join(f",\n    {column.strip()}" for column in found[1].split(",")) + f"\n){found[2] or ''}"


async def _postgres(store: Store) -> str:
    columns = await fetch(store, _COLUMNS)
    constraints = await fetch(store, _CONSTRAINTS)
    parts = []
    for table in await fetch(store, _TABLES):
        name = table["name"]
        lines = [
            f"    {c['name']} {c['type']}{c['collation']}{c['required']}{c['fallback']}{c['identity']}{c['storage']}"
            for c in columns
            if c["table_name"] == name
        ]
        lines += [
            f"    {r['text']}" for r in constraints if r["table_name"] == name and "NOT NULL" not in r["text"][:8]
        ]
        body = ",\n".join(lines)
        parts.append(f"CREATE TABLE {name} (\n{body}\n){table['partitioned']}{table['bound']}{table['options']};\n")
    parts.append("".join(f"{row['text']};\n" for row in await fetch(store, _INDEXES)))
    parts.append("".join(f"CREATE SEQUENCE {row['name']};\n" for row in await fetch(store, _SEQUENCES)))
    return "\n".join(parts)
