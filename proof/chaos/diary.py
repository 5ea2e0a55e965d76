"""The database's own diary: triggers that write down who was given which run, what was recorded, who was declared lost,
and what users made of jobs, whether anybody was told or not.

They belong to the proof alone. A node's word proves nothing; what its transaction committed does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, Protocol

import msgspec

from proof.checker.events import Begun, Claimed, Event, Lost, Recorded, Wrote
from proof.checker.story import LEASE

__all__ = [
    "READ",
    "Clock",
    "Note",
    "events_of",
    "pids_of",
    "postgres_diary",
    "sqlite_diary",
    "timed",
]

READ = "SELECT * FROM chaos_diary ORDER BY id"

_TABLE = """CREATE TABLE chaos_diary (
    id {serial}, db bigint NOT NULL, what text NOT NULL, node text, run text, token bigint, pid bigint, beat bigint,
    job bigint, version bigint, updated_at bigint, state text, spec text);"""
_OF_RUNS = "INSERT INTO chaos_diary (db, what, node, run, token, pid, beat) VALUES"
_OF_JOBS = "INSERT INTO chaos_diary (db, what, job, version, updated_at, state, spec) VALUES"

_RUNS = (
    # catch-up fires a later slot than the one that was waiting: the row becomes that slot's run
    ("moved", "UPDATE ON runs", "NEW.state = 'running' AND NEW.id <> OLD.id", "NEW.node, NEW.id, NEW.token, 0, 0"),
    (
        "claimed",
        "UPDATE ON runs",
        "NEW.state = 'running' AND NEW.token > OLD.token",
        "NEW.node, NEW.id, NEW.token, 0, 0",
    ),
    (
        "begun",
        "UPDATE ON runs",
        "NEW.begun_at IS NOT NULL AND OLD.begun_at IS NULL AND NEW.node IS NOT NULL",
        "NEW.node, NEW.id, NEW.token, 0, 0",
    ),
    (
        "recorded",
        "INSERT ON history",
        "NEW.node IS NOT NULL AND NEW.status IN ('done', 'failed')",
        "NEW.node, NEW.id, NEW.token, 0, 0",
    ),
    ("node", "INSERT ON nodes", "NEW.pid IS NOT NULL", "NEW.id, '', 0, NEW.pid, 0"),
    (
        "lost",
        "UPDATE ON nodes",
        "NEW.lost_at IS NOT NULL AND OLD.lost_at IS NULL",
        "NEW.id, '', 0, NEW.pid, OLD.beat_at",
    ),
)
_JOBS = (
    # what comes back after a delete is inserted, too, with the version that it had
    ("create", "INSERT ON jobs", "NEW.version >= 0", "NEW.id, NEW.version, NEW.updated_at, NEW.state, NEW.spec"),
    (
        "update",
        "UPDATE ON jobs",
        "NEW.version > OLD.version",
        "NEW.id, NEW.version, NEW.updated_at, NEW.state, NEW.spec",
    ),
    ("delete", "INSERT ON deleted_jobs", "NEW.version >= 0", "NEW.id, NEW.version, NEW.deleted_at, NEW.state, ''"),
)
_ALL = [(_OF_RUNS, *trigger) for trigger in _RUNS] + [(_OF_JOBS, *trigger) for trigger in _JOBS]


def postgres_diary() -> str:
    now = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
    lines = [_TABLE.format(serial="bigserial PRIMARY KEY")]
    for insert, what, event, when, values in _ALL:
        lines.append(
            f"CREATE FUNCTION chaos_{what}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" {insert} ({now}, '{what}', {values}); RETURN NULL; END $$;"
            f"CREATE TRIGGER chaos_{what} AFTER {event} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION chaos_{what}();"
        )
    return "\n".join(lines)


def sqlite_diary() -> str:
    now = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"
    lines = [_TABLE.format(serial="INTEGER PRIMARY KEY AUTOINCREMENT")]
    for insert, what, event, when, values in _ALL:
        lines.append(
            f"CREATE TRIGGER chaos_{what} AFTER {event} FOR EACH ROW WHEN {when}"
            f" BEGIN {insert} ({now}, '{what}', {values}); END;"
        )
    return "\n".join(lines)


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the diary, of a run, a node or a job. `db` in µs, `beat` and `updated_at` in ms. `at`: the true time."""

    id: int
    db: int
    what: str
    node: str = ""
    run: str = ""
    token: int = 0
    pid: int = 0
    beat: int = 0
    job: int = 0
    version: int = 0
    updated_at: int = 0
    state: str = ""
    spec: str = ""
    at: int = 0

    @classmethod
    def of(cls, row: Any) -> Note:
        named = {name: row[name] for name in cls.__struct_fields__ if name != "at"}
        return cls(**{name: value for name, value in named.items() if value is not None})


class Clock(Protocol):
    def at(self, db_us: int, near: int) -> int:
        """The true time in ms of a reading of the database's clock; it may have been set: the one nearest to `near`."""
        ...


def pids_of(notes: Iterable[Note]) -> dict[int, list[str]]:
    """The ids that each process registered, one after the other."""
    found: dict[int, list[str]] = {}
    for note in notes:
        if note.what == "node":
            found.setdefault(note.pid, []).append(note.node)
    return found


def timed(notes: Iterable[Note], clock: Clock) -> list[Note]:
    """With the true time of each. Their order is that of their numbers, which never goes back, whatever the database's
    clock does: of what is written under one lock (all verbs on a job, the claims of its next run) it is that of the
    commits, too."""
    found, at = [], 0
    for note in notes:
        at = max(at, clock.at(note.db, at))
        found.append(msgspec.structs.replace(note, at=at))
    return found


def events_of(notes: Iterable[Note], clock: Clock) -> Iterator[Event]:
    """`notes` with their times."""
    paused: dict[int, bool] = {}
    for note in notes:
        at, db = note.at, note.db // 1000
        match note.what:
            case "claimed" | "moved":
                yield Claimed(at=at, db=db, node=note.node, run=note.run, token=note.token)
            case "begun":
                yield Begun(at=at, node=note.node, run=note.run, token=note.token)
            case "recorded":
                yield Recorded(at=at, node=note.node, run=note.run, token=note.token)
            case "lost":
                yield Lost(at=at, node=note.node, silent=at - clock.at(note.beat * 1000, at - LEASE))
            case "create" | "update":
                spec = msgspec.json.decode(note.spec)
                verb = _verb(note, paused.get(note.job, False), spec.get("paused", False))
                paused[note.job] = spec.get("paused", False)
                yield Wrote(
                    at=at, db=note.updated_at, verb=verb, job=note.job, wish=spec, number=note.version, view=_view(note)
                )
            case "delete":
                yield Wrote(at=at, db=note.updated_at, verb="delete", job=note.job, number=note.version)


def _verb(note: Note, was_paused: bool, is_paused: bool) -> Literal["create", "edit", "pause", "resume"]:
    if note.what == "create":
        return "create"
    if was_paused == is_paused:
        return "edit"
    return "pause" if is_paused else "resume"


def _view(note: Note) -> dict[str, Any]:
    return {"state": note.state, "version": note.version}
