"""The database's own diary: triggers that write down who was given which run, what was recorded, who was declared lost.

They belong to the proof alone. A node's word proves nothing; what its transaction committed does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from proof.checker.events import Claimed, Event, Lost, Recorded
from proof.checker.story import LEASE

__all__ = [
    "READ",
    "READ_JOBS",
    "Clock",
    "JobNote",
    "Note",
    "events_of",
    "pids_of",
    "postgres_diary",
    "sqlite_diary",
    "versions_of",
]

READ = "SELECT id, db, what, node, run, token, pid, beat FROM chaos_diary ORDER BY id"

_TABLE = """CREATE TABLE chaos_diary (
    id {serial}, db bigint NOT NULL, what text NOT NULL, node text, run text, token bigint, pid bigint, beat bigint)"""
_COLUMNS = "INSERT INTO chaos_diary (db, what, node, run, token, pid, beat) VALUES"

READ_JOBS = "SELECT id, db, what, job, version, updated_at, spec FROM chaos_jobs ORDER BY id"
_JOBS = """
CREATE TABLE chaos_jobs (id bigserial PRIMARY KEY, db bigint NOT NULL, what text NOT NULL, job bigint NOT NULL,
    version bigint NOT NULL, updated_at bigint NOT NULL, spec text NOT NULL);
CREATE FUNCTION chaos_job() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO chaos_jobs (db, what, job, version, updated_at, spec)
    VALUES ({now}, lower(TG_OP), OLD.id, OLD.version + (TG_OP = 'UPDATE')::int,
        CASE WHEN TG_OP = 'UPDATE' THEN NEW.updated_at ELSE 0 END,
        CASE WHEN TG_OP = 'UPDATE' THEN NEW.spec ELSE '' END);
    RETURN NULL; END $$;
CREATE TRIGGER chaos_job_changed AFTER UPDATE ON jobs FOR EACH ROW WHEN (NEW.version > OLD.version)
    EXECUTE FUNCTION chaos_job();
CREATE TRIGGER chaos_job_gone AFTER DELETE ON jobs FOR EACH ROW EXECUTE FUNCTION chaos_job();
"""
"""What users made of jobs, whether anybody was told or not: several of them may change one job at once."""

_NOTES = (
    # catch-up fires a later slot than the one that was waiting: the row becomes that slot's run
    ("moved", "UPDATE ON runs", "NEW.state = 'running' AND NEW.id <> OLD.id", "NEW.node, NEW.id, NEW.token, 0, 0"),
    (
        "claimed",
        "UPDATE ON runs",
        "NEW.state = 'running' AND NEW.token > OLD.token",
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


def postgres_diary() -> str:
    now = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
    lines = [_TABLE.format(serial="bigserial PRIMARY KEY") + ";", _JOBS.format(now=now)]
    for what, event, when, values in _NOTES:
        lines.append(
            f"CREATE FUNCTION chaos_{what}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" {_COLUMNS} ({now}, '{what}', {values}); RETURN NULL; END $$;"
            f"CREATE TRIGGER chaos_{what} AFTER {event} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION chaos_{what}();"
        )
    return "\n".join(lines)


def sqlite_diary() -> str:
    now = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"
    lines = [_TABLE.format(serial="INTEGER PRIMARY KEY AUTOINCREMENT") + ";"]
    for what, event, when, values in _NOTES:
        lines.append(
            f"CREATE TRIGGER chaos_{what} AFTER {event} FOR EACH ROW WHEN {when}"
            f" BEGIN {_COLUMNS} ({now}, '{what}', {values}); END;"
        )
    return "\n".join(lines)


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the diary. `db` in µs, `beat` in ms."""

    id: int
    db: int
    what: str
    node: str
    run: str
    token: int
    pid: int
    beat: int

    @classmethod
    def of(cls, row: Any) -> Note:
        return cls(**{name: row[name] for name in cls.__struct_fields__})


class JobNote(msgspec.Struct, frozen=True, kw_only=True):
    """A verb on a job that was committed. `db` in µs, `updated_at` in ms."""

    id: int
    db: int
    what: str  # update, delete
    job: int
    version: int
    updated_at: int
    spec: str
    at: int = 0  # true time

    @classmethod
    def of(cls, row: Any) -> JobNote:
        return cls(**{name: row[name] for name in cls.__struct_fields__ if name != "at"})


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


def events_of(notes: Iterable[Note], clock: Clock) -> Iterable[Event]:
    """In the order of their numbers, which never goes back, whatever the database's clock does."""
    at = 0
    for note in notes:
        at = max(at, clock.at(note.db, at))
        match note.what:
            case "claimed" | "moved":
                yield Claimed(at=at, db=note.db // 1000, node=note.node, run=note.run, token=note.token)
            case "recorded":
                yield Recorded(at=at, node=note.node, run=note.run, token=note.token)
            case "lost":
                yield Lost(at=at, node=note.node, silent=at - clock.at(note.beat * 1000, at - LEASE))


def versions_of(notes: Iterable[JobNote], clock: Clock) -> list[JobNote]:
    """With the true time of each, in the order of the commits of each job."""
    found, at = [], 0
    for note in notes:
        at = max(at, clock.at(note.db, at))
        found.append(msgspec.structs.replace(note, at=at))
    return found
