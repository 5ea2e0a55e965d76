"""`onthedot migrate`: bring the tables up to date by hand, before nodes of a new version start."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from onthedot.cli.direct import settings_for
from onthedot.cli.options import AsJson, Settings, StoreUrl
from onthedot.cli.output import print_json, say

__all__ = ["migrate"]


def migrate(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit code 1 if something is missing")] = False,
    as_json: AsJson = False,
    store: StoreUrl = None,
    settings: Settings = None,
) -> None:
    """Bring the store's tables up to date. `serve` does this too; here it is a step of its own."""
    missing, applied = asyncio.run(_migrate(settings_for(store, settings).store, check))
    if as_json:
        print_json({"missing": missing} if check else {"applied": applied})
    elif check:
        say(f"Missing: {', '.join(missing)}. `onthedot migrate` applies them." if missing else "Up to date.")
    else:
        say(f"Applied: {', '.join(applied)}." if applied else "Up to date; nothing to do.")
    if check and missing:
        raise typer.Exit(1)


async def _migrate(url: str, check: bool) -> tuple[list[str], list[str]]:
    from onthedot.store import open_driver
    from onthedot.store.migrate import check_version
    from onthedot.store.migrate import migrate as apply

    driver = await open_driver(url)
    try:
        missing = [f"{migration.number:04} {migration.name}" for migration in await check_version(driver)]
        return missing, [] if check else await apply(driver)
    finally:
        await driver.close()
