"""Verbs on uploaded scripts: each is an object, and a row that says whose it is.

Upload and delete of the same script may meet. Upload writes the object, then the row, then looks whether the object is
still there; delete removes the row, then the object, then looks whether the row is there again. Whichever looks last
puts right what the other undid, so that no row is left without its object.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import msgspec

from onthedot.errors import FieldProblem, Invalid, NotFound, ObjectMissing, TooLarge
from onthedot.model.script import LONGEST_CODE, ScriptDetail, ScriptUpload, ScriptView, object_name, script_id
from onthedot.model.targets import ScriptTarget, Target
from onthedot.objects import ObjectStore, open_objects
from onthedot.service.base import ServiceBase
from onthedot.service.repeats import IdempotencyKey, idempotency
from onthedot.store import Page
from onthedot.telemetry import emit

__all__ = ["ScriptVerbs", "missing_script"]

_TYPE = str(ScriptTarget.__struct_config__.tag)


class ScriptVerbs(ServiceBase):
    @cached_property
    def objects(self) -> ObjectStore:
        return open_objects(self.settings.object_store)

    async def upload_script(
        self, tenant: int, upload: ScriptUpload, idempotency_key: IdempotencyKey | None = None
    ) -> tuple[ScriptView, bool]:
        """True if it is new. What is there already keeps its name."""
        content = upload.code.encode()
        if len(content) > LONGEST_CODE:
            raise TooLarge(f"a script can have at most {LONGEST_CODE // 1024} KiB, this one has {len(content) // 1024}")
        script, repeat = script_id(content), idempotency("upload_script", idempotency_key, body=upload)
        place = object_name(tenant, script)
        if repeat is not None:
            await self.store.refuse_other_bodies(tenant, [repeat])
        await self.objects.put(place, content)
        view, is_new = await self.store.add_script(tenant, script, upload.name, len(content), idempotency=repeat)
        if not await self.objects.exists(place):
            await self.objects.put(place, content)
        if is_new:
            emit("script.uploaded", tenant=tenant, script=script, size=len(content))
        return view, is_new

    async def get_script(self, tenant: int, script: str) -> ScriptDetail:
        found = await self.store.find_script(tenant, script)
        if found is None:
            raise NotFound(f"script {script[:100]!r} not found")
        content = await self.objects.get(object_name(tenant, script))
        jobs = await self.store.jobs_of_script(tenant, _TYPE, script)
        return ScriptDetail(**msgspec.structs.asdict(found), jobs=jobs, code=content.decode("utf-8", "replace"))

    async def list_scripts(self, tenant: int, limit: int, cursor: str | None = None) -> Page[ScriptView]:
        return await self.store.list_scripts(tenant, limit=limit, cursor=cursor)

    async def delete_script(self, tenant: int, script: str) -> None:
        place = object_name(tenant, script)
        try:
            content = await self.objects.get(place)
        except ObjectMissing:
            content = None
        await self.store.delete_script(tenant, _TYPE, script)
        await self.objects.delete(place)
        if content is not None and await self.store.find_script(tenant, script) is not None:
            await self.objects.put(place, content)  # uploaded again, meanwhile
            return
        emit("script.deleted", tenant=tenant, script=script)

    async def missing_scripts(self, tenant: int, targets: Iterable[Target]) -> frozenset[str]:
        """Scripts that targets name and the tenant does not have."""
        named = {script for target in targets for script in target.scripts()}
        return frozenset(await self.store.missing_scripts(tenant, sorted(named))) if named else frozenset()

    async def check_scripts(self, tenant: int, *targets: Target) -> None:
        if missing := await self.missing_scripts(tenant, targets):
            raise Invalid([missing_script(script) for script in sorted(missing)])


def missing_script(script: str) -> FieldProblem:
    return FieldProblem(
        path="target.script",
        message="script not found",
        given=script,
        accepted="the ID of a script that was uploaded with POST /v1/scripts",
    )
