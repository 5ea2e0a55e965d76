"""What users changed, and who they were."""

from __future__ import annotations

import msgspec

from onthedot.model.audit_entry import AuditEntry, AuditVerb
from onthedot.service.base import ServiceBase
from onthedot.store import AuditFilter, Page

__all__ = ["AuditVerbs"]


class AuditVerbs(ServiceBase):
    async def list_audit(
        self,
        tenant: int,
        *,
        job: str | None = None,
        actor: str | None = None,
        verb: AuditVerb | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int = 50,
        cursor: str | None = None,
        addresses: bool = False,
    ) -> Page[AuditEntry]:
        """Newest first. `job`: its ID or its key. `addresses`: where requests came from, for those who may know."""
        is_id = job is not None and job.isascii() and job.isdecimal() and len(job) < 19
        wanted = AuditFilter(
            job_id=int(job) if job is not None and is_id else None,
            job_key=None if is_id else job,
            actor=actor,
            verb=verb,
            since=since,
            until=until,
            limit=limit,
            cursor=cursor,
        )
        page = await self.store.list_audit(tenant, wanted)
        if addresses:
            return page
        return Page(items=[msgspec.structs.replace(entry, address=None) for entry in page.items], next=page.next)
