"""The company's database, made once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from examples.demo.company import DemoJob, jobs_of_the_company
from examples.demo.history import write_history
from examples.demo.people import in_the_name_of, write_changes, write_incidents
from examples.demo.tables import open_tables
from onthedot.clock import SystemClock
from onthedot.errors import OnTheDotError
from onthedot.main import prepare
from onthedot.model.instant import format_instant
from onthedot.model.job import JobView
from onthedot.service import DEFAULT_TENANT
from onthedot.settings import Settings
from onthedot.targets.script.probe import NoSandbox, find_sandbox

__all__ = ["Seeded", "seed"]


class Seeded(msgspec.Struct, frozen=True):
    jobs: int
    runs: int


async def seed(settings: Settings, ports: dict[str, int], days: int = 14) -> Seeded | None:
    """With a past of so many days. None: the database has jobs already, and stays as it is."""
    prepared = await prepare(settings, None, SystemClock())
    try:
        tables = await open_tables(settings.store)
        try:
            if await tables.rows("SELECT 1 FROM jobs LIMIT 1"):
                return None
            await prepared.store.ensure_partitions()
            now = await prepared.service.time.now()
            jobs = list(jobs_of_the_company(ports, now, scripts=await _has_sandbox()))
            made = await prepared.service.create_many(DEFAULT_TENANT, [job.spec for job in jobs])
            by_id = _by_id(jobs, made)
            runs = await write_history(tables, prepared.store, by_id, now, days)
            ids = {job.spec.key or "": job_id for job_id, job in by_id.items()}
            titles = {job.spec.key or "": job.spec.name or "" for job in jobs}
            await write_incidents(tables, ids, titles, now)
            await write_changes(prepared.service, prepared.store, tables, ids, now)
            for job_id, job in by_id.items():
                if job.paused is not None:
                    note, lasts = job.paused
                    until = None if lasts is None else format_instant(now + lasts)
                    with in_the_name_of("ines"):
                        await prepared.service.pause_job(DEFAULT_TENANT, job_id, note=note, until=until)
            return Seeded(len(jobs), runs)
        finally:
            await tables.close()
    finally:
        await prepared.close()


def _by_id(jobs: Sequence[DemoJob], made: Sequence[JobView | OnTheDotError]) -> dict[int, DemoJob]:
    found = {}
    for job, answer in zip(jobs, made, strict=True):
        if isinstance(answer, OnTheDotError):
            raise answer
        found[answer.id] = job
    return found


async def _has_sandbox() -> bool:
    """Without one jobs with scripts would only wait."""
    return not isinstance(await find_sandbox(), NoSandbox)
