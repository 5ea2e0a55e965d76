"""Alerts, and the audit log."""

from __future__ import annotations

from typing import Any

from onthedot.client.answers import ResultPage
from onthedot.client.asynchronous.area import AsyncArea
from onthedot.client.headers import once_header
from onthedot.model.audit_entry import AuditEntry
from onthedot.model.incident import ChannelTest, IncidentView

__all__ = ["AsyncAlerts"]


class AsyncAlerts(AsyncArea):
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
