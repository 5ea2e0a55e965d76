"""Verbs on jobs: read, list, change and remove."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from onthedot.errors import Invalid, NotFound, VersionMismatch
from onthedot.model.decoding import convert, to_builtins
from onthedot.model.job import JobSpec, JobView
from onthedot.model.targets.script import script_named_in
from onthedot.model.version import ChangeVerb, JobVersion
from onthedot.service.checking import check_job, check_new
from onthedot.service.created import tell_created
from onthedot.service.merge_patch import patched
from onthedot.service.repeats import IdempotencyKey, idempotency
from onthedot.service.scripts import ScriptVerbs, missing_script
from onthedot.service.stored_spec import as_stored, who_asks
from onthedot.store import Idempotency, JobFilter, Page
from onthedot.store.jobs.rows import keep_owner, keep_secrets, owned, with_present_secrets
from onthedot.telemetry import emit

__all__ = ["JobVerbs"]


class JobVerbs(ScriptVerbs):
    async def get_job(self, tenant: int, job_id: int) -> JobView:
        return await self._with_objective(await self.store.get_job(tenant, job_id))

    async def job_names(self, tenant: int, ids: Sequence[int]) -> dict[int, str]:
        """By id: the name, or else the key, of those that are there and have one of them."""
        return await self.store.job_names(tenant, ids) if ids else {}

    async def get_job_by_key(self, tenant: int, key: str) -> JobView:
        return await self._with_objective(await self.store.get_job_by_key(tenant, key))

    async def _with_objective(self, job: JobView) -> JobView:
        """How it stands is computed for jobs that have an objective, and read one by one."""
        if not job.objective:
            return job
        report = await self.store.objective_report(job.id, job.objective)
        return msgspec.structs.replace(job, stats=msgspec.structs.replace(job.stats, objective=report))

    async def list_jobs(self, tenant: int, wanted: JobFilter) -> Page[JobView]:
        return await self.store.list_jobs(tenant, wanted)

    async def check_job(self, tenant: int, spec: JobSpec, job_id: int | None = None) -> None:
        """Whether this job could be created, or this one changed to it: raises Invalid. Changes nothing."""
        old = None if job_id is None else (await self.store.get_record(tenant, job_id)).spec
        wanted = self.zoned(spec if old is None else keep_secrets(spec, old), old)
        check_job(
            wanted,
            self.targets,
            tenant=tenant,
            now=await self.time.now(),
            before=old,
            calls_back=self.calls_back,
            channels=self.settings.channels,
        )
        await self.check_scripts(tenant, wanted.target)

    async def replace_job(
        self,
        tenant: int,
        job_id: int,
        spec: JobSpec,
        if_match: int | None = None,
        idempotency: Idempotency | None = None,
    ) -> JobView:
        """PUT: the whole spec anew. Equal to what there is: nothing changes, not even the version."""
        if spec.run_now is True:
            raise _only_for_new(spec.run_now)
        now = await self.time.now()
        await self.check_scripts(tenant, spec.target)

        def change(old: JobSpec) -> JobSpec:
            return self._checked(tenant, keep_secrets(spec, old), old, now)

        return await self._update(tenant, job_id, change, if_match, idempotency)

    async def patch_job(
        self,
        tenant: int,
        job_id: int,
        patch: dict[str, Any],
        if_match: int | None = None,
        idempotency: Idempotency | None = None,
    ) -> JobView:
        """A JSON merge patch (RFC 7396) on the spec as written."""
        now = await self.time.now()

        if "run_now" in patch:
            raise _only_for_new(patch["run_now"])

        named = script_named_in(patch.get("target"))
        if named is not None and await self.store.missing_scripts(tenant, [named]):
            raise Invalid([missing_script(named)])

        def change(old: JobSpec) -> JobSpec:
            merged = patched(to_builtins(old), patch)
            if "owner" in patch:
                merged["owner"] = patch["owner"]  # null: nobody's, and not: whoever owns it already
            return self._checked(tenant, keep_secrets(convert(merged, JobSpec), old), old, now)

        return await self._update(tenant, job_id, change, if_match, idempotency)

    async def list_versions(
        self, tenant: int, job_id: int, limit: int = 50, cursor: str | None = None
    ) -> Page[JobVersion]:
        return await self.store.list_versions(tenant, job_id, limit=limit, cursor=cursor)

    async def get_version(self, tenant: int, job_id: int, version: int) -> JobVersion:
        return await self.store.get_version(tenant, job_id, version)

    async def restore_version(
        self,
        tenant: int,
        job_id: int,
        version: int,
        if_match: int | None = None,
        idempotency_key: IdempotencyKey | None = None,
    ) -> JobView:
        """An edit to what the job was at that version. It stays paused or not; a secret that it has now stays, too:
        one that was replaced since must not come back."""
        repeat = idempotency("restore", idempotency_key, job_id, version)
        now, former = await self.time.now(), await self.store.spec_at(tenant, job_id, version)
        await self.check_scripts(tenant, former.target)

        def change(old: JobSpec) -> JobSpec:
            spec = msgspec.structs.replace(with_present_secrets(former, old), paused=old.paused)
            spec = spec.in_zone_as_stored()
            return self._checked(tenant, spec, old, now)

        return await self._update(tenant, job_id, change, if_match, repeat, verb="restore")

    async def put_job_by_key(
        self,
        tenant: int,
        key: str,
        spec: JobSpec,
        if_match: int | None = None,
        idempotency: Idempotency | None = None,
        *,
        there: bool | None = None,
        keeps_pause: bool = False,
    ) -> tuple[JobView, bool]:
        """Creates or replaces the job of that key; True if it is new. `run_now` is for a new one. `there`: True only
        replaces, False only creates. `keeps_pause`: one that is there stays paused or not, whatever the spec says."""
        if spec.key is None:
            spec = msgspec.structs.replace(spec, key=key)
        if spec.key != key:
            raise Invalid.one("key", "differs from the key in the URL", given=spec.key, accepted=key)
        now, owner = await self.time.now(), who_asks()
        await self.check_scripts(tenant, spec.target)

        def change(old: JobSpec | None) -> JobSpec:
            if there is not None and there == (old is None):
                raise VersionMismatch(f"job with key {key!r} {'not found' if there else 'already exists'}")
            if old is None:
                return owned(self._checked(tenant, spec, None, now), owner)
            wanted = msgspec.structs.replace(spec, paused=old.paused) if keeps_pause else spec
            return self._checked(tenant, keep_secrets(wanted, old), old, now)

        run_now = bool(spec.run_now)
        job, created = await self.store.put_job(
            tenant, key, change, if_match=if_match, run_now=run_now, idempotency=idempotency
        )
        if created:
            tell_created(tenant, job, self.clock)
        else:
            emit("job.changed", tenant=tenant, job_id=job.id)
        await (self.hint_now() if created and run_now else self.hint(job))
        await self.hint_orders()
        return job, created

    async def is_job(self, tenant: int, spec: JobSpec) -> bool:
        """Whether the job with the key of this spec is what the spec says. Changes nothing."""
        if spec.key is None:
            return False
        try:
            job = await self.store.get_job_by_key(tenant, spec.key)
            old = (await self.store.get_record(tenant, job.id)).spec
        except NotFound:
            return False
        return keep_owner(keep_secrets(as_stored(self.zoned(spec, old), self.settings), old), old) == old

    async def delete_job(
        self, tenant: int, job_id: int, if_match: int | None = None, idempotency: Idempotency | None = None
    ) -> None:
        await self.store.delete_job(tenant, job_id, if_match=if_match, idempotency=idempotency)
        emit("job.deleted", tenant=tenant, job_id=job_id)
        await self.hint_orders()

    async def undelete_job(
        self,
        tenant: int,
        job_id: int,
        idempotency_key: IdempotencyKey | None = None,
        versions: frozenset[int] | None = None,
    ) -> JobView:
        """The job comes back as it was, if it was deleted in the last 10 minutes. `versions`: only if it had one of
        these."""
        repeat = idempotency("undelete", idempotency_key, job_id)
        job = await self.store.undelete_job(tenant, job_id, versions=versions, idempotency=repeat)
        emit("job.changed", tenant=tenant, job_id=job_id)
        await self.hint(job)
        return job

    async def deleted_by_key(self, tenant: int, key: str) -> int:
        """The id of the job with this key that was deleted last; if there is none, of the one that has the key: it may
        have been brought back already."""
        try:
            return await self.store.deleted_by_key(tenant, key)
        except NotFound as unknown:
            try:
                return (await self.store.get_job_by_key(tenant, key)).id
            except NotFound:
                raise unknown from None

    async def _update(
        self,
        tenant: int,
        job_id: int,
        change: Callable[[JobSpec], JobSpec],
        if_match: int | None,
        idempotency: Idempotency | None,
        verb: ChangeVerb = "edit",
    ) -> JobView:
        job = await self.store.update_job(tenant, job_id, change, verb=verb, if_match=if_match, idempotency=idempotency)
        emit("job.changed", tenant=tenant, job_id=job_id)
        await self.hint(job)
        await self.hint_orders()
        return job

    def zoned(self, spec: JobSpec, old: JobSpec | None) -> JobSpec:
        """In DEFAULT_TZ if it names no zone; unless it takes the place of one that names none either, which is in UTC:
        a setting that is made later moves no job."""
        return (
            spec if old is not None and not old.schedule.names_zone else spec.in_default_zone(self.settings.default_tz)
        )

    def _checked(self, tenant: int, spec: JobSpec, old: JobSpec | None, now: int) -> JobSpec:
        spec = self.zoned(spec, old)
        check_new(
            spec,
            self.targets,
            tenant=tenant,
            now=now,
            before=old,
            calls_back=self.calls_back,
            channels=self.settings.channels,
        )
        return as_stored(spec, self.settings)


def _only_for_new(run_now: object) -> Invalid:
    accepted = "a new job; to run an existing one: POST /v1/jobs/{id}/run"
    return Invalid.one("run_now", "allowed only when a job is created", given=run_now, accepted=accepted)
