"""The part of the client that is about what was changed, and taking it back: versions, deleted jobs, skipped slots; and
who changed what."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from onthedot.client.answers import ResultPage
from onthedot.client.headers import once_header, verb_headers
from onthedot.client.transport import Transport
from onthedot.model.audit_entry import AuditEntry
from onthedot.model.incident import ChannelTest, IncidentView
from onthedot.model.job import JobView
from onthedot.model.upcoming_slots import UpcomingSlots
from onthedot.model.version import JobVersion

__all__ = ["AsyncChanges"]


class AsyncChanges:
    _http: Transport

    async def list_versions(self, job_id: int, **filters: Any) -> ResultPage[JobVersion]:
        """Get one page of the versions of a job, newest first. Filters: limit, cursor."""
        return await self._http.call("GET", f"/v1/jobs/{job_id}/versions", ResultPage[JobVersion], query=filters)

    async def restore_version(
        self, job_id: int, version: int, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> JobView:
        """Change a job back to what it was at a version."""
        path, headers = f"/v1/jobs/{job_id}/versions/{version}/restore", verb_headers(idempotency_key, if_match)
        return await self._http.call("POST", path, JobView, headers=headers)

    async def undelete_job(
        self, job: int | str, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> JobView:
        """Bring back a job that was deleted less than 10 minutes ago. `job`: its ID or its key. `if_match`: the version
        that it had."""
        name = str(job) if isinstance(job, int) else f"by-key/{quote(job, safe='')}"
        path, headers = f"/v1/jobs/{name}/undelete", verb_headers(idempotency_key, if_match)
        return await self._http.call("POST", path, JobView, headers=headers)

    async def upcoming_slots(self, job_id: int, *, count: int = 10) -> UpcomingSlots:
        """When a job will fire, and which slots to come were skipped."""
        return await self._http.call("GET", f"/v1/jobs/{job_id}/upcoming", UpcomingSlots, query={"count": count})

    async def skip_slot(
        self, job_id: int, slot: str, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> JobView:
        """Skip a slot (RFC 3339) that has not come yet."""
        path, headers = f"/v1/jobs/{job_id}/skip", verb_headers(idempotency_key, if_match)
        return await self._http.call("POST", path, JobView, body={"slot": slot}, headers=headers)

    async def unskip_slot(
        self, job_id: int, slot: str, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> JobView:
        """Take back the skip of a slot that has not come yet."""
        path, headers = f"/v1/jobs/{job_id}/unskip", verb_headers(idempotency_key, if_match)
        return await self._http.call("POST", path, JobView, body={"slot": slot}, headers=headers)

    async def list_alerts(self, **filters: Any) -> ResultPage[IncidentView]:
        """Incidents, newest first."""
        return await self._http.call("GET", "/v1/alerts", ResultPage[IncidentView], query=filters)

    async def incident_bundle(self, incident_id: int) -> dict[str, Any]:
        """Get the bundle of an incident, with the run at which it was found last. Secrets are masked."""
        return await self._http.call("GET", f"/v1/alerts/{incident_id}/bundle", dict[str, Any])

    async def test_channel(self, channel: str, *, idempotency_key: str | None = None) -> ChannelTest:
        """Send a test message to a channel of the server."""
        headers = once_header(idempotency_key)
        return await self._http.call("POST", "/v1/alerts/test", ChannelTest, body={"channel": channel}, headers=headers)

    async def list_audit(self, **filters: Any) -> ResultPage[AuditEntry]:
        """Get one page of who changed what, newest first. Filters: job (ID or key), actor, verb, since, until, limit,
        cursor."""
        return await self._http.call("GET", "/v1/audit", ResultPage[AuditEntry], query=filters)
