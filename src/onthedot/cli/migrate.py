"""`onthedot migrate`: upgrade the schema before nodes of a new version start."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from onthedot.cli.direct import settings_for
from onthedot.cli.options import AsJson, Settings, StoreUrl
from onthedot.cli.output import print_json, say

if TYPE_CHECKING:
    from onthedot.store.migrate import Migration

__all__ = ["migrate"]


def migrate(
    check: Annotated[
        bool, typer.Option("--check", help="Apply nothing; exit with code 1 if migrations are pending")
    ] = False,
    sql: Annotated[
        bool, typer.Option("--sql", help="Apply nothing; print the pending migrations as an SQL script")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="With --sql: print all migrations, without connecting to the database")
    ] = False,
    as_json: AsJson = False,
    store: StoreUrl = None,
    settings: Settings = None,
) -> None:
    """Apply pending schema migrations. `serve` also does this at startup; use this to upgrade as a separate step."""
    url = settings_for(store, settings).store
    if everything and not sql:
        raise typer.BadParameter("--all requires --sql")
    if sql:
        if check:
            raise typer.BadParameter("--check and --sql can't be combined")
        _print_script(url, everything, as_json)
        return
    missing, applied = asyncio.run(_migrate(url, check))
    if as_json:
        print_json({"missing": missing} if check else {"applied": applied})
    elif check:
        say(f"Pending: {', '.join(missing)}. Run `onthedot migrate` to apply them." if missing else "Up to date.")
    else:
        say(f"Applied: {', '.join(applied)}." if applied else "Up to date; nothing to apply.")
    if check and missing:
        raise typer.Exit(1)


def _print_script(url: str, everything: bool, as_json: bool) -> None:
    from onthedot.store.migrate import known_migrations
    from onthedot.store.migration_script import migration_script
    from onthedot.store.postgres.address import parse_address

    dialect = "sqlite" if url.startswith("sqlite:") else "postgres"
    wanted = known_migrations(dialect) if everything else asyncio.run(_pending(url))
    schema = parse_address(url).search_path if dialect == "postgres" else None
    script = migration_script(dialect, wanted, schema=schema)
    if as_json:
        print_json({"migrations": [_named(migration) for migration in wanted], "sql": script})
    else:
        typer.echo(script, nl=False)


async def _pending(url: str) -> list[Migration]:
    """Those that the database lacks. Creates nothing, not even the SQLite file."""
    from onthedot.errors import StoreMissing
    from onthedot.store import open_driver
    from onthedot.store.migrate import check_version, known_migrations

    try:
        driver = await open_driver(url, create=False)
    except StoreMissing:
        return known_migrations("sqlite")
    try:
        return await check_version(driver)
    finally:
        await driver.close()


async def _migrate(url: str, check: bool) -> tuple[list[str], list[str]]:
    """A check creates nothing, not even the SQLite file."""
    from onthedot.errors import StoreMissing
    from onthedot.store import open_driver
    from onthedot.store.migrate import check_version, known_migrations
    from onthedot.store.migrate import migrate as apply

    try:
        driver = await open_driver(url, create=not check)
    except StoreMissing:
        return [_named(migration) for migration in known_migrations("sqlite")], []
    try:
        missing = await check_version(driver)
        if missing and check:
            await driver.check_room()
        return [_named(migration) for migration in missing], [] if check else await apply(driver)
    finally:
        await driver.close()


def _named(migration: Migration) -> str:
    return f"{migration.number:04} {migration.name}"
