"""Rows of `jobs`: their columns, declared once, and back to a JobRecord."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from onthedot.errors import Invalid, StoreError
from onthedot.model.decoding import convert, dec_hook, encode_json, work_out_fields
from onthedot.model.job import JobRecord, JobSpec, JobState, OpenJobSpec
from onthedot.model.labels import read_requires
from onthedot.model.level import level_of
from onthedot.model.secrets import kept, masked
from onthedot.model.targets import OpaqueTarget
from onthedot.store.driver import Row
from onthedot.store.shapes import Shape

__all__ = [
    "SEARCHED",
    "AdvancedJob",
    "ChangedJob",
    "KeptJob",
    "KeyOfJob",
    "NewJobRow",
    "QuarantinedJob",
    "TagOfJob",
    "decode_spec",
    "job_record",
    "keep_owner",
    "keep_secrets",
    "keep_zone",
    "owned",
    "search_text",
    "spec_columns",
    "tags_of",
    "with_present_secrets",
]

SEARCHED = 200
"""How much of a key or name the prefix filter looks at: PostgreSQL's index rows end at 2,704 bytes."""


@lru_cache(maxsize=1)
def _decoder() -> msgspec.json.Decoder[JobSpec]:
    work_out_fields(JobSpec)
    return msgspec.json.Decoder(JobSpec, dec_hook=dec_hook, float_hook=float)  # msgspec's own is slow for 1e308


def decode_spec(text: str, capability: str | None = None, level: int | None = None) -> JobSpec:
    """Strict decoding is for the edges: here fields that only a newer release knows are dropped, not refused, and a
    target of a kind that is not known here stays as it is. What such a one needs is written beside it in its row, with
    the labels that its job requires."""
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
            raise StoreError(f"a job was stored by a newer version of On the Dot: {invalid}") from None
        for path in unknown:
            _drop(loose, path.split("."))
        spec = convert(loose, OpenJobSpec)
    said = {name: getattr(spec, name) for name in JobSpec.__struct_fields__}
    if isinstance(spec.target, OpaqueTarget):
        needed = None if capability is None else read_requires(capability).capability
        said["target"] = OpaqueTarget(spec.target, needed, level)
    return JobSpec(**said)


def _drop(loose: Any, path: list[str]) -> None:
    for name in path[:-1]:
        loose = loose[name]
    loose.pop(path[-1], None)


def search_text(text: str | None) -> str | None:
    """What `q` is compared with: case-folded, cut."""
    return None if text is None else text.casefold()[:SEARCHED]


class SpecColumns(Shape, frozen=True, kw_only=True):
    """What a job's spec says (`spec_columns`)."""

    key: str | None
    name: str | None
    key_search: str | None
    name_search: str | None
    spec: str
    level: int
    requires: str
    target_type: str
    schedule_kind: str
    one_off: bool
    owner: str | None


class NewJobRow(SpecColumns, frozen=True, kw_only=True):
    """What a job is when it is made."""

    id: int
    tenant: int
    state: JobState
    paused_at: int | None
    ended_at: int | None
    source: str | None
    source_paused: bool | None
    version: int
    anchor_at: int
    slots_used: int
    created_at: int
    updated_at: int


class ChangedJob(SpecColumns, frozen=True, kw_only=True):
    """What a verb makes of a job."""

    state: JobState
    anchor_at: int
    claimed_slot: int | None
    slots_used: int
    paused_at: int | None
    reason: str | None
    pause_note: str | None
    pause_until: int | None
    updated_at: int


class KeptJob(SpecColumns, frozen=True, kw_only=True):
    """What of a job stays as it is while it is deleted: all columns but those that count its slots."""

    id: int
    tenant: int
    version: int
    state: JobState
    anchor_at: int
    paused_at: int | None
    ended_at: int | None
    reason: str | None
    source: str | None
    source_paused: bool | None
    created_at: int
    updated_at: int
    origin: str | None
    pause_note: str | None
    pause_until: int | None


class AdvancedJob(Shape, frozen=True):
    """A job that went on to its next slot; ended_at: there is none."""

    id: int
    claimed_slot: int | None
    slots_used: int
    ended_at: int | None


class QuarantinedJob(Shape, frozen=True):
    id: int
    reason: str


class KeyOfJob(Shape, frozen=True):
    tenant: int
    key: str


class TagOfJob(Shape, frozen=True):
    tenant: int
    tag: str
    job_id: int


def tags_of(tenant: int, job_id: int, spec: JobSpec) -> list[TagOfJob]:
    return [TagOfJob(tenant, tag, job_id) for tag in dict.fromkeys(spec.tags)]


def spec_columns(spec: JobSpec) -> dict[str, Any]:
    """The columns that say what its spec says."""
    return {
        "key": spec.key,
        "name": spec.name,
        "key_search": search_text(spec.key),
        "name_search": search_text(spec.name),
        "spec": encode_json(spec).decode(),
        "level": level_of(spec),
        "requires": spec.requirement(),
        "target_type": spec.target.type,
        "schedule_kind": spec.schedule.kind,
        "one_off": spec.schedule.one_off,
        "owner": spec.owner or None,
    }


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


def keep_secrets(new: JobSpec, old: JobSpec) -> JobSpec:
    """Secrets read back masked; the mask sent back means the secret there is."""
    target = kept(new.target, old.target)
    return new if target is new.target else msgspec.structs.replace(new, target=target)


def with_present_secrets(former: JobSpec, present: JobSpec) -> JobSpec:
    """What the job was, with the secrets that it has now; where it has none in that place, with those of then."""
    try:
        return keep_secrets(msgspec.structs.replace(former, target=masked(former.target)), present)
    except Invalid:
        return former


def owned(spec: JobSpec, owner: str | None) -> JobSpec:
    """A new job that does not say whose it is belongs to who made it."""
    return spec if owner is None or spec.owner is not msgspec.UNSET else msgspec.structs.replace(spec, owner=owner)


def keep_owner(new: JobSpec, old: JobSpec) -> JobSpec:
    """An update that does not say whose job it is leaves it whose it is. Nobody's reads back as null, and stays so."""
    if new.owner is msgspec.UNSET or (new.owner is None and old.owner is msgspec.UNSET):
        return msgspec.structs.replace(new, owner=old.owner)
    return new


def keep_zone(new: JobSpec, old: JobSpec | None, zone: str) -> JobSpec:
    """A job of a file that names no zone has the one that was the default when its schedule was written."""
    if old is not None:
        kept = new.in_default_zone(old.schedule.tz)
        if kept.schedule == old.schedule:
            return kept
    return new.in_default_zone(zone)
