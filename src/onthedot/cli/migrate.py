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
    as_json: AsJson = False,
    store: StoreUrl = None,
    settings: Settings = None,
) -> None:
    """Apply pending schema migrations. `serve` also does this at startup; use this to upgrade as a separate step."""
    missing, applied = asyncio.run(_migrate(settings_for(store, settings).store, check))
    if as_json:
        print_json({"missing": missing} if check else {"applied": applied})
    elif check:
        say(f"Pending: {', '.join(missing)}. Run `onthedot migrate` to apply them." if missing else "Up to date.")
    else:
        say(f"Applied: {', '.join(applied)}." if applied else "Up to date; nothing to apply.")
    if check and missing:
        raise typer.Exit(1)


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
