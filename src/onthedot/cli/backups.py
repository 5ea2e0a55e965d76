"""`onthedot backup` and `onthedot restore`: copies of a SQLite store."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onthedot.cli.direct import settings_for
from onthedot.cli.options import AsJson, Settings, StoreUrl
from onthedot.cli.output import print_json, say
from onthedot.cli.progress import ProgressLine

if TYPE_CHECKING:
    from onthedot.store.moving.restoring import SettledPast

__all__ = ["backup", "restore"]


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write")],
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists")] = False,
    as_json: AsJson = False,
    store: StoreUrl = None,
    settings: Settings = None,
) -> None:
    """Copy a SQLite store into a file, also while a server uses it, and check the copy."""
    from onthedot.clock import SystemClock
    from onthedot.errors import Conflict, StoreError
    from onthedot.launcher.banner import without_password
    from onthedot.store.moving.restoring import BACKUP
    from onthedot.store.sqlite.copies import check_copy, copy_database, note_in_copy, put_in_place

    found = settings_for(store, settings)
    if not found.is_sqlite:
        address = without_password(found.store)
        raise StoreError(
            f"a PostgreSQL store is backed up with PostgreSQL's own tools:\n"
            f"pg_dump --format=custom --file={file} '{address}'\n"
            f"After pg_restore, run `onthedot restore --in-place --store '{address}'` before you start a node"
        )
    if file.exists() and not force:
        raise Conflict(f"{file} exists; choose another file, or add --force")
    unfinished = file.with_name(f"{file.name}.unfinished")
    now = SystemClock().now_ms()
    with ProgressLine() as line:
        copy_database(_path_of(found.store), unfinished, lambda done, total: line.tell("pages", done, total))
    try:
        note_in_copy(unfinished, BACKUP, str(now))  # `onthedot restore` says from when on nothing is known
        counts = check_copy(unfinished)
        put_in_place(unfinished, file)
    finally:
        unfinished.unlink(missing_ok=True)
    size = file.stat().st_size
    if as_json:
        print_json({"file": str(file), "bytes": size, "at": _instant(now), **counts})
    else:
        say(f"Wrote and checked {file}: {_counted(counts)}, {size:,} bytes.")


def restore(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A file that `onthedot backup` wrote")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing store; it is kept under another name")
    ] = False,
    fire_missed: Annotated[
        bool,
        typer.Option("--fire-missed", help="Fire what came due since the backup, as after an outage"),
    ] = False,
    in_place: Annotated[
        bool,
        typer.Option(
            "--in-place", help="The store was restored by other means, such as pg_restore: only settle its past"
        ),
    ] = False,
    as_json: AsJson = False,
    store: StoreUrl = None,
    settings: Settings = None,
) -> None:
    """Put a backup in the place of a SQLite store. What came due since the backup does not fire again.

    Recurring jobs continue with their next slot; runs that waited or executed become dead letters, which you can
    redrive.
    """
    from onthedot.errors import SettingsError, StoreError

    url = settings_for(store, settings).store
    if (file is None) != in_place:
        raise SettingsError("give either FILE or --in-place")
    aside = None
    if file is None:
        at, settled = asyncio.run(_settle(url, fire_missed))
    else:
        if not url.startswith("sqlite:"):
            raise StoreError(
                "a PostgreSQL store is restored with PostgreSQL's own tools: use pg_restore, then run `onthedot restore"
                " --in-place --store …` before you start a node"
            )
        at, settled, aside = _put_back(file, _path_of(url), force=force, fire_missed=fire_missed)
    if as_json:
        told = {} if settled is None else {name: getattr(settled, name) for name in settled.__struct_fields__}
        print_json({"store": url, "backed_up_at": _instant(at), "kept": None if aside is None else str(aside), **told})
        return
    say("Restored" + ("." if at is None else f" the store of {_instant(at)}."))
    if aside is not None:
        say(f"The store that was there is kept as {aside}.")
    if settled is not None:
        say(
            f"Not fired again: {settled.skipped:,} slots of {settled.jobs:,} recurring jobs (reason `restored`), and"
            f" {settled.dead_letters:,} runs that are dead letters now (`onthedot dead list`)."
        )
        if settled.alerts:
            say(f"Not sent: {settled.alerts:,} alerts of before the backup (`onthedot alerts list`).")
    say("API keys that were revoked after the backup are valid again: check `onthedot keys list`.")


def _put_back(
    file: Path, path: Path, *, force: bool, fire_missed: bool
) -> tuple[int | None, SettledPast | None, Path | None]:
    """The copy is brought up to date and settled under another name, and gets its own at the end."""
    from onthedot.clock import SystemClock
    from onthedot.errors import Conflict
    from onthedot.store.sqlite.copies import check_copy, copy_database, put_in_place, set_aside

    if not file.is_file():
        raise Conflict(f"{file} does not exist")
    if path.exists() and not force:
        raise Conflict(f"{path} exists; add --force to replace it (it is kept under another name)")
    check_copy(file)
    unfinished = path.with_name(f"{path.name}.restoring")
    beside = [unfinished.with_name(unfinished.name + end) for end in ("-wal", "-shm", "-lock")]
    try:
        with ProgressLine() as line:
            copy_database(file, unfinished, lambda done, total: line.tell("pages", done, total))
        at, settled = asyncio.run(_settle(f"sqlite:///{unfinished}", fire_missed))
        now = datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC)
        aside = set_aside(path, f"{now:before-%Y%m%dT%H%M%SZ}")
        put_in_place(unfinished, path)
    finally:
        for left in (unfinished, *beside):
            left.unlink(missing_ok=True)
    return at, settled, aside


async def _settle(url: str, fire_missed: bool) -> tuple[int | None, SettledPast | None]:
    from onthedot.store import open_driver
    from onthedot.store.migrate import migrate
    from onthedot.store.moving.restoring import BACKUP, leave_gap, settle_past

    driver = await open_driver(url, create=False)
    try:
        await migrate(driver)
        noted = await driver.read(lambda tx: tx.row("installation_value", BACKUP))
        at = None if noted is None else int(noted["value"])
        await leave_gap(driver)
        settled = None if fire_missed else await settle_past(driver, at)
        await driver.transact_slow(lambda tx: tx.execute("drop_installation_value", BACKUP))
        return at, settled
    finally:
        await driver.close()


def _path_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///")).expanduser()


def _instant(ms: int | None) -> str | None:
    from onthedot.model.instant import format_instant

    return None if ms is None else format_instant(ms)


def _counted(counts: dict[str, int]) -> str:
    return f"{counts['jobs']:,} jobs, {counts['runs']:,} runs to come, {counts['history']:,} ended runs"
