"""Copies of an SQLite file: made while a server has it open, checked, and put in its place again."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from onthedot.errors import Conflict, StoreError, StoreInUse, StoreMissing
from onthedot.store.sqlite.lockfile import DatabaseFile

__all__ = ["check_copy", "copy_database", "note_in_copy", "put_in_place", "set_aside"]

PAGES = 2000
_BESIDE = ("-wal", "-shm")


def copy_database(path: Path, copy: Path, tell: Callable[[int, int], None]) -> None:
    """The database as it is at this moment. A server that has it open goes on writing: what it commits meanwhile is not
    in the copy."""
    if not path.exists():
        raise StoreMissing(f"SQLite store {path} does not exist")
    held = None
    with suppress(StoreInUse):  # then its server keeps the log in order, and we only read
        held = DatabaseFile(path, create=False)
    try:
        uri = path.absolute().as_uri() + ("?mode=rw" if held is not None else "?mode=ro")
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as source:
            source.execute("PRAGMA busy_timeout = 5000")
            source.execute("BEGIN")  # one state of it, however long copying takes
            source.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            _new_file(copy)
            with closing(sqlite3.connect(copy, isolation_level=None)) as target:
                source.backup(target, pages=PAGES, progress=lambda _, left, total: tell(total - left, total), sleep=0)
                target.execute("PRAGMA journal_mode = DELETE")  # one file, that can be carried elsewhere
            source.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise StoreError(f"can't copy {path}: {error}") from error
    finally:
        if held is not None:
            held.close()


def _new_file(copy: Path) -> None:
    """Readable by its owner alone: it has the secrets of jobs."""
    copy.unlink(missing_ok=True)
    try:
        os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise StoreError(f"can't write {copy}: {error.strerror}") from error


def note_in_copy(copy: Path, name: str, value: str) -> None:
    """A value of the installation that the store which was copied has not."""
    try:
        with closing(sqlite3.connect(copy)) as file, file:
            file.execute("INSERT OR REPLACE INTO installation (name, value) VALUES (?, ?)", (name, value))
    except sqlite3.Error as error:
        raise _no_store(copy, error) from error


def check_copy(copy: Path) -> dict[str, int]:
    """Its pages and indexes are whole and it is a store: the number of jobs, runs and ended runs in it."""
    try:
        with closing(sqlite3.connect(f"{copy.absolute().as_uri()}?mode=ro", uri=True)) as file:
            file.row_factory = sqlite3.Row
            found = [row["integrity_check"] for row in file.execute("PRAGMA integrity_check(5)")]
            if found != ["ok"]:
                raise StoreError(f"{copy} is damaged: {found[0]}")
            tables = ("jobs", "runs", "history")
            counts = " UNION ALL ".join(f"SELECT '{name}' AS name, count(*) AS n FROM {name}" for name in tables)  # noqa: S608
            return {row["name"]: row["n"] for row in file.execute(counts)}
    except sqlite3.Error as error:
        raise _no_store(copy, error) from error


def _no_store(copy: Path, error: sqlite3.Error) -> StoreError:
    return StoreError(f"{copy} is not a copy of an On the Dot store: {error}")


def put_in_place(copy: Path, path: Path) -> None:
    """Whole and on the disk before anybody can see it under its name."""
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    copy.replace(path)
    folder = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def set_aside(path: Path, name: str) -> Path | None:
    """The database that is there gets another name, with its log. None: there is none. StoreInUse: a server has it."""
    aside = path.with_name(f"{path.name}.{name}")
    there = path.exists()
    if there:
        DatabaseFile(path, create=False).close()
        if aside.exists():
            raise Conflict(f"{aside} exists already")
        path.rename(aside)
    for end in _BESIDE:
        beside = path.with_name(path.name + end)
        if beside.exists():
            beside.rename(aside.with_name(aside.name + end))
    return aside if there else None
