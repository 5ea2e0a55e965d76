"""Verbs on jobs: read, list, change and remove."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from onthedot.errors import Invalid, NotFound
from onthedot.model.decoding import convert, to_builtins
from onthedot.model.job import JobSpec, JobView
from onthedot.model.targets.script import script_named_in
from onthedot.service.checking import check_new
from onthedot.service.merge_patch import patched
from onthedot.service.scripts import ScriptVerbs, missing_script
from onthedot.service.stored_spec import as_stored, who_asks
from onthedot.store import Idempotency, JobFilter, Page
from onthedot.store.jobs.rows import keep_owner, keep_secrets, owned
from onthedot.telemetry import emit

__all__ = ["JobVerbs"]


class JobVerbs(ScriptVerbs):
    async def get_job(self, tenant: int, job_id: int) -> JobView:
        return await self.store.get_job(tenant, job_id)

    async def get_job_by_key(self, tenant: int, key: str) -> JobView:
        return await self.store.get_job_by_key(tenant, key)

    async def list_jobs(self, tenant: int, wanted: JobFilter) -> Page[JobView]:
        return await self.store.list_jobs(tenant, wanted)

    async def replace_job(
        self,
        tenant: int,
        job_id: int,
        spec: JobSpec,
        if_match: int | None = None,
        idempotency: Idempotency | None = None,
    ) -> JobView:
        """PUT: the whole spec anew. Equal to what there is: nothing changes, not even the version."""
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
            accepted = "a new job; to run an existing one: POST /v1/jobs/{id}/run"
            raise Invalid.one(
                "run_now", "allowed only when a job is created", given=patch["run_now"], accepted=accepted
            )

        named = script_named_in(patch.get("target"))
        if named is not None and await self.store.missing_scripts(tenant, [named]):
            raise Invalid([missing_script(named)])

        def change(old: JobSpec) -> JobSpec:
            merged = patched(to_builtins(old), patch)
            if "owner" in patch:
                merged["owner"] = patch["owner"]  # null: nobody's, and not: whoever owns it already
            return self._checked(tenant, keep_secrets(convert(merged, JobSpec), old), old, now)

        return await self._update(tenant, job_id, change, if_match, idempotency)

    async def put_job_by_key(
        self,
        tenant: int,
        key: str,
        spec: JobSpec,
        if_match: int | None = None,
        idempotency: Idempotency | None = None,
    ) -> tuple[JobView, bool]:
        """Creates or replaces the job of that key; True if it is new. `run_now` is for a new one."""
        if spec.key is None:
            spec = msgspec.structs.replace(spec, key=key)
        if spec.key != key:
            raise Invalid.one("key", "differs from the key in the URL", given=spec.key, accepted=key)
        now, owner = await self.time.now(), who_asks()
        await self.check_scripts(tenant, spec.target)

        def change(old: JobSpec | None) -> JobSpec:
            if old is None:
                return owned(self._checked(tenant, spec, None, now), owner)
            return self._checked(tenant, keep_secrets(spec, old), old, now)

        run_now = bool(spec.run_now)
        job, created = await self.store.put_job(
            tenant, key, change, if_match=if_match, run_now=run_now, idempotency=idempotency
        )
        emit("job.created" if created else "job.changed", tenant=tenant, job_id=job.id)
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
        return keep_owner(keep_secrets(as_stored(spec, self.settings), old), old) == old

    async def delete_job(
        self, tenant: int, job_id: int, if_match: int | None = None, idempotency: Idempotency | None = None
    ) -> None:
        await self.store.delete_job(tenant, job_id, if_match=if_match, idempotency=idempotency)
        emit("job.deleted", tenant=tenant, job_id=job_id)
        await self.hint_orders()

    async def _update(
        self,
        tenant: int,
        job_id: int,
        change: Callable[[JobSpec], JobSpec],
        if_match: int | None,
        idempotency: Idempotency | None,
    ) -> JobView:
        job = await self.store.update_job(tenant, job_id, change, if_match=if_match, idempotency=idempotency)
        emit("job.changed", tenant=tenant, job_id=job_id)
        await self.hint(job)
        await self.hint_orders()
        return job

    def _checked(self, tenant: int, spec: JobSpec, old: JobSpec | None, now: int) -> JobSpec:
        check_new(spec, self.targets, tenant=tenant, now=now, before=old, calls_back=self.calls_back)
        return as_stored(spec, self.settings)
