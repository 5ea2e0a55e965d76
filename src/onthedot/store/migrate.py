"""Bring a database to this version's tables: numbered files, the same numbers in both stores.

Each migration is one transaction that locks `meta`, writes its version row first and then changes the tables, so that
two nodes that start at once do it once. A file begins with `-- breaking: no` when the release before it can go on
working on its result (then nodes of both may run side by side), `-- breaking: yes` when not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from importlib import resources

import msgspec

from onthedot.errors import StoreAhead, StoreRelocated
from onthedot.store.driver import Driver, Row, Transaction
from onthedot.store.queries import MOVED_MARK

__all__ = ["Migration", "check_version", "known_migrations", "migrate"]

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")
_BREAKING = re.compile(r"^-- breaking: (yes|no)$", re.MULTILINE)


class Migration(msgspec.Struct, frozen=True):
    number: int
    name: str
    breaking: bool
    text: str


def known_migrations(dialect: str) -> list[Migration]:
    found = []
    for file in (resources.files("onthedot.store") / dialect / "migrations").iterdir():
        if match := _FILE.fullmatch(file.name):
            text = file.read_text("utf-8")
            breaking = _BREAKING.search(text)
            if breaking is None:
                raise ValueError(f"{file.name}: the first line must say `-- breaking: yes` or `-- breaking: no`")
            found.append(Migration(int(match[1]), match[2], breaking[1] == "yes", text))
    found.sort(key=lambda migration: migration.number)
    return found


async def migrate(driver: Driver, migrations: list[Migration] | None = None) -> list[str]:
    """Apply what is missing; the names of what this call applied. Raises StoreAhead."""
    known = known_migrations(driver.dialect) if migrations is None else migrations
    await driver.make_room()
    await _ensure_meta(driver)
    missing = await check_version(driver, known)
    return [migration.name for migration in missing if await driver.transact_slow(partial(_apply, driver, migration))]


async def check_version(driver: Driver, migrations: list[Migration] | None = None) -> list[Migration]:
    """The migrations that the database still lacks. Raises StoreAhead for some that this version can't live with, and
    StoreRelocated for a store that is being moved, or was."""
    known = known_migrations(driver.dialect) if migrations is None else migrations
    there = {row["number"]: row for row in await driver.read(_versions)}
    if (mark := there.get(MOVED_MARK)) is not None:
        raise StoreRelocated(mark["name"])
    ahead = [row for number, row in sorted(there.items()) if number > max((m.number for m in known), default=0)]
    if any(bool(row["breaking"]) for row in ahead):
        names = ", ".join(f"{row['number']:04} {row['name']}" for row in ahead)
        raise StoreAhead(
            f"the database was migrated by a newer version of On the Dot ({names}); "
            "upgrade this node, or restore a database backup from before that migration"
        )
    return [migration for migration in known if migration.number not in there]


async def _versions(tx: Transaction) -> Sequence[Row]:
    return await tx.rows("versions") if await tx.rows("find_meta") else []


async def _ensure_meta(driver: Driver) -> None:
    """IF NOT EXISTS does not help two that make a table at the same time: one of them fails, in several ways."""
    try:
        await driver.transact_slow(_create_meta)
    except Exception:
        if not await driver.read(lambda tx: tx.rows("find_meta")):
            raise


async def _create_meta(tx: Transaction) -> None:
    if not await tx.rows("find_meta"):
        await tx.execute("create_meta")


async def _apply(driver: Driver, migration: Migration, tx: Transaction) -> bool:
    await tx.execute("lock_meta")
    if not await tx.execute("insert_version", migration.number, migration.name, migration.breaking):
        return False
    await tx.script(driver.queries.render(migration.text))
    return True
