"""Rows of `jobs` ↔ JobRecord and JobView. Booleans are 0/1 on SQLite: everything here goes through bool()."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from onthedot.errors import Invalid, StoreError
from onthedot.model.decoding import convert, dec_hook, encode_json
from onthedot.model.instant import format_instant
from onthedot.model.job import JobPause, JobRecord, JobSpec, JobState, JobStats, JobView, OpenJobSpec
from onthedot.model.level import level_of
from onthedot.model.secrets import kept, masked
from onthedot.model.targets import OpaqueTarget
from onthedot.store.driver import Row

__all__ = [
    "SEARCHED",
    "decode_spec",
    "job_record",
    "job_view",
    "keep_owner",
    "keep_secrets",
    "owned",
    "search_text",
    "spec_columns",
    "view_of",
]

SEARCHED = 200
"""How much of a key or name the prefix filter looks at: PostgreSQL's index rows end at 2,704 bytes."""

NO_STATS = JobStats()

_ended = msgspec.json.Decoder(list[tuple[str, str, int, int | None, int | None]])


@lru_cache(maxsize=1)
def _decoder() -> msgspec.json.Decoder[JobSpec]:
    return msgspec.json.Decoder(JobSpec, dec_hook=dec_hook, float_hook=float)  # msgspec's own is slow for 1e308


def decode_spec(text: str, capability: str | None = None, level: int | None = None) -> JobSpec:
    """Strict decoding is for the edges: here fields that only a newer release knows are dropped, not refused, and a
    target of a kind that is not known here stays as it is. What such a one needs is written beside it in its row."""
    try:
        return _decoder().decode(text)
    except msgspec.ValidationError:
        return _older_view(msgspec.json.decode(text), capability, level)


def _older_view(loose: Any, capability: str | None, level: int | None) -> JobSpec:
    try:
        spec = convert(loose, OpenJobSpec)
    except Invalid as invalid:
        unknown = [problem.path for problem in invalid.problems if problem.message == "unknown field"]
        if len(unknown) < len(invalid.problems):
            raise StoreError(f"a job was written by a newer version of On the Dot: {invalid}") from None
        for path in unknown:
            _drop(loose, path.split("."))
        spec = convert(loose, OpenJobSpec)
    said = {name: getattr(spec, name) for name in JobSpec.__struct_fields__}
    if isinstance(spec.target, OpaqueTarget):
        said["target"] = OpaqueTarget(spec.target, capability, level)
    return JobSpec(**said)


def _drop(loose: Any, path: list[str]) -> None:
    for name in path[:-1]:
        loose = loose[name]
    loose.pop(path[-1], None)


def search_text(text: str | None) -> str | None:
    """What `q` is compared with: case-folded, cut."""
    return None if text is None else text.casefold()[:SEARCHED]


def spec_columns(spec: JobSpec) -> tuple[Any, ...]:
    """key, name, key_search, name_search, spec, level, requires, target_type, schedule_kind, one_off, owner."""
    return (
        spec.key,
        spec.name,
        search_text(spec.key),
        search_text(spec.name),
        encode_json(spec).decode(),
        level_of(spec),
        spec.target.capability(),
        spec.target.type,
        spec.schedule.kind,
        spec.schedule.one_off,
        spec.owner or None,
    )


def job_record(row: Row) -> JobRecord:
    return JobRecord(
        id=row["id"],
        tenant=row["tenant"],
        spec=decode_spec(row["spec"], row["requires"], row["level"]),
        version=row["version"],
        state=row["state"],
        anchor_at=row["anchor_at"],
        claimed_slot=row["claimed_slot"],
        slots_used=row["slots_used"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        source=row["source"],
        reason=row["reason"],
        paused_at=row["paused_at"],
        pause_note=row["pause_note"],
        pause_until=row["pause_until"],
    )


def job_view(row: Row) -> JobView:
    """A row of the `job_view` columns: the job, its next run, its statistics."""
    ended = row["ended_runs"]
    stats, last_run = _one_off_stats(ended) if ended is not None else (_recurring_stats(row), row["last_run"])
    return view_of(
        decode_spec(row["spec"]),
        job_id=row["id"],
        version=row["version"],
        state=row["state"],
        reason=row["reason"],
        next_run=row["next_run"],
        last_run=last_run,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        stats=stats,
        paused_at=row["paused_at"],
        pause_note=row["pause_note"],
        pause_until=row["pause_until"],
    )


def _recurring_stats(row: Row) -> JobStats:
    if row["runs"] is None:
        return NO_STATS
    return JobStats(
        runs=row["runs"],
        failures=row["failures"],
        avg_duration_ms=_average(int(row["duration_ms"]), row["timed"]),
        last_duration_ms=row["last_duration_ms"],
        last_lateness_ms=row["last_lateness_ms"],
        last_status=None if row["last_status"] is None else row["last_status"].upper(),
        last_run_id=row["last_run_id"],
    )


def _one_off_stats(text: str) -> tuple[JobStats, int | None]:
    """A one-off job has no row of statistics: its few ended runs say it all, newest first."""
    runs = sorted(_ended.decode(text), key=lambda run: run[2], reverse=True)
    if not runs:
        return NO_STATS, None
    run_id, status, finished_at, duration_ms, lateness_ms = runs[0]
    durations = [run[3] for run in runs if run[3] is not None]
    return JobStats(
        runs=len(runs),
        failures=sum(run[1] == "failed" for run in runs),
        avg_duration_ms=_average(sum(durations), len(durations)),
        last_duration_ms=duration_ms,
        last_lateness_ms=lateness_ms,
        last_status=status.upper(),
        last_run_id=run_id,
    ), finished_at


def _average(total: int, count: int) -> float | None:
    return round(total / count, 3) if count else None


def view_of(
    spec: JobSpec,
    *,
    job_id: int,
    version: int,
    state: JobState,
    next_run: int | None,
    created_at: int,
    updated_at: int,
    reason: str | None = None,
    last_run: int | None = None,
    stats: JobStats = NO_STATS,
    paused_at: int | None = None,
    pause_note: str | None = None,
    pause_until: int | None = None,
) -> JobView:
    pause = None
    if state == "paused" and paused_at is not None:
        until = None if pause_until is None else format_instant(pause_until)
        pause = JobPause(since=format_instant(paused_at), note=pause_note, until=until)
    return JobView(
        id=job_id,
        key=spec.key,
        name=spec.name,
        schedule=spec.schedule,
        target=masked(spec.target),
        policy=spec.policy,
        params=spec.params,
        tags=spec.tags,
        paused=spec.paused,
        version=version,
        state=state,
        reason=reason,
        next_run=None if next_run is None or state == "paused" else format_instant(next_run),  # held ahead: recalled
        last_run=None if last_run is None else format_instant(last_run),
        created_at=format_instant(created_at),
        updated_at=format_instant(updated_at),
        stats=stats,
        owner=spec.owner or None,
        pause=pause,
    )


def keep_secrets(new: JobSpec, old: JobSpec) -> JobSpec:
    """Secrets read back masked; the mask sent back means the secret there is."""
    target = kept(new.target, old.target)
    return new if target is new.target else msgspec.structs.replace(new, target=target)


def owned(spec: JobSpec, owner: str | None) -> JobSpec:
    """A new job that does not say whose it is belongs to who made it."""
    return spec if owner is None or spec.owner is not msgspec.UNSET else msgspec.structs.replace(spec, owner=owner)


def keep_owner(new: JobSpec, old: JobSpec) -> JobSpec:
    """An update that does not say whose job it is leaves it whose it is."""
    return msgspec.structs.replace(new, owner=old.owner) if new.owner is msgspec.UNSET else new
