"""What a job was at each of its versions, and who changed it.

Creating a job writes nothing here: its first version is written when it is replaced, in the transaction of that change.
The last 50 versions of a job are kept, for as long as RETENTION says; the present one is always known from its job.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.errors import NotFound
from onthedot.model.actor import ChangeActor, file_actor
from onthedot.model.decoding import encode_json
from onthedot.model.instant import NEVER, format_instant
from onthedot.model.job import JobRecord, JobSpec, OpenJobSpec
from onthedot.model.secrets import masked
from onthedot.model.version import ChangeVerb, JobVersion
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.rows import decode_spec, job_record
from onthedot.store.jobs.views import no_job
from onthedot.store.paging import Page, check_limit, fingerprint, open_cursor, seal_cursor
from onthedot.store.shapes import Rows, Shape
from onthedot.store.topic import Topic

__all__ = ["KEPT_VERSIONS", "JobVersions", "write_version", "write_versions"]

KEPT_VERSIONS = 50


class NewVersion(Shape, frozen=True, kw_only=True):
    job_id: int
    version: int
    at: int
    verb: str | None
    actor: str | None
    actor_kind: str | None
    spec: str


class JobVersions(Topic):
    async def list_versions(
        self, tenant: int, job_id: int, *, limit: int = 50, cursor: str | None = None
    ) -> Page[JobVersion]:
        """Newest first; the present one is the first of all."""
        asked = fingerprint("versions", tenant, job_id)
        (before,) = [NEVER] if cursor is None else open_cursor(cursor, asked, (int,))
        most = check_limit(limit)

        async def body(tx: Transaction) -> Page[JobVersion]:
            job = await _read(tx, tenant, job_id)
            read = await tx.rows("list_versions", job_id, before, most + 1)
            found, rows = read[0]["found"] if read else 0, [_written(job_id, row) for row in read]
            if before > job.version and (not rows or rows[0].version < job.version):
                rows.insert(0, _unwritten(job))
                found += 1
            items = [_view(row, job) for row in rows[:most]]
            return Page(items=items, next=seal_cursor(asked, items[-1].version) if found > len(items) else None)

        return await self.driver.read(body)

    async def get_version(self, tenant: int, job_id: int, version: int) -> JobVersion:
        """What the job was at that version."""

        async def body(tx: Transaction) -> JobVersion:
            job = await _read(tx, tenant, job_id)
            rows = await tx.rows("list_versions", job_id, version + 1, 1)
            found = next((_written(job_id, row) for row in rows if row["version"] == version), None)
            if found is None and version == job.version:
                found = _unwritten(job)
            if found is None:
                raise _no_version(job_id, version)
            return _view(found, job)

        return await self.driver.read(body)

    async def spec_at(self, tenant: int, job_id: int, version: int) -> JobSpec:
        """What the job was at that version, secrets and all."""

        async def body(tx: Transaction) -> JobSpec:
            job = await _read(tx, tenant, job_id)
            if version == job.version:
                return job.spec
            row = await tx.row("find_version", job_id, version)
            if row is None:
                raise _no_version(job_id, version)
            return decode_spec(row["spec"])

        return await self.driver.read(body)


async def _read(tx: Transaction, tenant: int, job_id: int) -> JobRecord:
    row = await tx.row("find_job", tenant, job_id)
    if row is None:
        raise no_job(job_id)
    return job_record(row)


async def write_version(
    tx: Transaction, job: JobRecord, spec: JobSpec, verb: ChangeVerb, actor: ChangeActor, now: int
) -> None:
    """`job`, as it was before, gets this spec."""
    await write_versions(tx, [(job, spec)], verb, actor, now)


async def write_versions(
    tx: Transaction, changes: Sequence[tuple[JobRecord, JobSpec]], verb: ChangeVerb, actor: ChangeActor, now: int
) -> None:
    """The same for many."""
    rows = []
    for job, spec in changes:
        new = NewVersion(
            job_id=job.id,
            version=job.version + 1,
            at=now,
            verb=verb,
            actor=actor.name,
            actor_kind=actor.kind,
            spec=encode_json(spec).decode(),
        )
        rows += [_unwritten(job), new]
    await tx.execute("write_versions", Rows(rows))
    for job, _ in changes:
        if job.version >= KEPT_VERSIONS:
            await tx.execute("drop_versions_until", job.id, job.version + 1 - KEPT_VERSIONS)


def _no_version(job_id: int, version: int) -> NotFound:
    kept = f"the last {KEPT_VERSIONS} versions are kept, within the retention period"
    return NotFound(f"version {version} of job {job_id} not found; {kept}")


def _written(job_id: int, row: Row) -> NewVersion:
    """A row of `list_versions`."""
    return NewVersion(
        job_id=job_id,
        version=row["version"],
        at=row["at"],
        verb=row["verb"],
        actor=row["actor"],
        actor_kind=row["actor_kind"],
        spec=row["spec"],
    )


def _unwritten(job: JobRecord) -> NewVersion:
    """The present version of a job that nobody has changed yet, or not for long."""
    first = job.version == 1
    maker = file_actor(job.source) if first and job.source is not None else None
    return NewVersion(
        job_id=job.id,
        version=job.version,
        at=job.created_at if first else job.updated_at,
        verb="create" if first else None,
        actor=None if maker is None else maker.name,
        actor_kind=None if maker is None else maker.kind,
        spec=encode_json(job.spec).decode(),
    )


def _view(row: NewVersion, job: JobRecord) -> JobVersion:
    spec = decode_spec(row.spec)
    said = {name: getattr(spec, name) for name in JobSpec.__struct_fields__}
    return JobVersion(
        version=row.version,
        at=format_instant(row.at),
        verb=msgspec.convert(row.verb, ChangeVerb | None),
        actor=row.actor,
        actor_kind=row.actor_kind,
        current=row.version == job.version,
        spec=OpenJobSpec(**{**said, "target": masked(spec.target)}),
    )
