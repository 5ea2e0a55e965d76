"""Decoded specs of jobs that were claimed of late: a job that fires each second is read once, not each second."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import msgspec

from onthedot.model.job import JobRecord, JobSpec, JobState
from onthedot.model.targets import OpaqueTarget
from onthedot.store.driver import Transaction
from onthedot.store.jobs.rows import decode_spec, job_record
from onthedot.store.shapes import Rows, Shape

__all__ = ["SpecCache"]

KEPT = 10_000
"""Bounded: the memory of a node does not grow with the number of jobs."""

TEXTS, SHORT = 1000, 2000
"""Texts, and how long they may be. One-off jobs are claimed once each, but often thousands are worded alike: decoding
the same text again was 4 of the 19 µs that a run cost the node's side of claim and finish."""

_UNKNOWN = -1


class KnownJob(Shape, frozen=True):
    """A job, and the version of it that is decoded already."""

    id: int
    known: int


class ClaimedJob(Shape, frozen=True):
    """What a claim needs of a job. The spec comes only if its version is not the known one."""

    id: int
    tenant: int
    version: int
    state: JobState
    anchor_at: int
    claimed_slot: int | None
    slots_used: int
    spec: str | None


class SpecCache:
    """Jobs by id; the version says whether what is kept still holds. The rest of the record is read each time."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._jobs: OrderedDict[int, JobRecord] = OrderedDict()
        self._texts: dict[str, JobSpec] = {}

    async def read(self, tx: Transaction, job_ids: Iterable[int]) -> dict[int, JobRecord]:
        """The jobs as they are now. A job that is gone is missing from the answer."""
        wanted = [KnownJob(job_id, self._version(job_id)) for job_id in dict.fromkeys(job_ids)]
        if not wanted:
            return {}
        found = [ClaimedJob(*row) for row in await tx.rows("claimed_jobs", Rows(wanted))]
        jobs = {row.id: self._record(row) for row in found}
        for job in [job for job in jobs.values() if isinstance(job.spec.target, OpaqueTarget)]:
            row = await tx.row("find_job", job.tenant, job.id)  # only its row says what its runs need
            if row is not None:
                jobs[job.id] = msgspec.structs.replace(job, spec=job_record(row).spec)
        return jobs

    async def read_specs(self, tx: Transaction, job_ids: Iterable[int]) -> dict[int, tuple[int, JobSpec]]:
        """(version, spec) of jobs as they are now: all that a run needs whose job does not go on with it."""
        wanted = list(dict.fromkeys(job_ids))
        if not wanted:
            return {}
        decode = self._decode
        return {row["id"]: (row["version"], decode(row["spec"])) for row in await tx.rows("claimed_specs", wanted)}

    def _version(self, job_id: int) -> int:
        known = self._jobs.get(job_id)
        return _UNKNOWN if known is None else known.version

    def _decode(self, text: str) -> JobSpec:
        spec = self._texts.get(text)
        if spec is None:
            spec = decode_spec(text)
            if len(text) <= SHORT:
                if len(self._texts) >= TEXTS:
                    del self._texts[next(iter(self._texts))]
                self._texts[text] = spec
        return spec

    def _record(self, row: ClaimedJob) -> JobRecord:
        if row.spec is None:
            job = msgspec.structs.replace(
                self._jobs[row.id],
                state=row.state,
                anchor_at=row.anchor_at,
                claimed_slot=row.claimed_slot,
                slots_used=row.slots_used,
            )
            self._jobs.move_to_end(row.id)
            return job
        job = JobRecord(
            id=row.id,
            tenant=row.tenant,
            spec=self._decode(row.spec),
            version=row.version,
            state=row.state,
            anchor_at=row.anchor_at,
            claimed_slot=row.claimed_slot,
            slots_used=row.slots_used,
            created_at=0,
            updated_at=0,
        )
        if not job.spec.schedule.one_off:  # a one-off is claimed once: keeping it would only push others out
            self._jobs[job.id] = job
            self._jobs.move_to_end(job.id)
            if len(self._jobs) > self._kept:
                self._jobs.popitem(last=False)
        return job
