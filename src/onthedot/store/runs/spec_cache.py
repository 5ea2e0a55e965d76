"""Decoded specs of jobs that were claimed of late: a job that fires each second is read once, not each second."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import msgspec

from onthedot.model.job import JobRecord, JobSpec
from onthedot.model.targets import OpaqueTarget
from onthedot.store.driver import Row, Rows, Transaction
from onthedot.store.jobs.rows import decode_spec, job_record

__all__ = ["SpecCache"]

KEPT = 10_000
"""Bounded: the memory of a node does not grow with the number of jobs."""

TEXTS, SHORT = 1000, 2000
"""Texts, and how long they may be. One-off jobs are claimed once each, but often thousands are worded alike: decoding
the same text again was 4 of the 19 µs that a run cost the node's side of claim and finish."""

_UNKNOWN = -1


class SpecCache:
    """Jobs by id; the version says whether what is kept still holds. The rest of the record is read each time."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._jobs: OrderedDict[int, JobRecord] = OrderedDict()
        self._texts: dict[str, JobSpec] = {}

    async def read(self, tx: Transaction, job_ids: Iterable[int]) -> dict[int, JobRecord]:
        """The jobs as they are now. A job that is gone is missing from the answer."""
        wanted = [(job_id, self._version(job_id)) for job_id in dict.fromkeys(job_ids)]
        if not wanted:
            return {}
        jobs = {row["id"]: self._record(row) for row in await tx.rows("claimed_jobs", Rows(wanted))}
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
        return {job_id: (version, decode(text)) for job_id, version, text in await tx.rows("claimed_specs", wanted)}

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

    def _record(self, row: Row) -> JobRecord:
        job_id, tenant, version, state, anchor_at, claimed_slot, slots_used, text = row
        if text is None:
            job = msgspec.structs.replace(
                self._jobs[job_id], state=state, anchor_at=anchor_at, claimed_slot=claimed_slot, slots_used=slots_used
            )
            self._jobs.move_to_end(job_id)
            return job
        job = JobRecord(
            id=job_id,
            tenant=tenant,
            spec=self._decode(text),
            version=version,
            state=state,
            anchor_at=anchor_at,
            claimed_slot=claimed_slot,
            slots_used=slots_used,
            created_at=0,
            updated_at=0,
        )
        if not job.spec.schedule.one_off:  # a one-off is claimed once: keeping it would only push others out
            self._jobs[job_id] = job
            self._jobs.move_to_end(job_id)
            if len(self._jobs) > self._kept:
                self._jobs.popitem(last=False)
        return job
