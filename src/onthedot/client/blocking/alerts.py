"""Alerts, and the audit log."""

from __future__ import annotations

from typing import Any

from onthedot.client.answers import ResultPage
from onthedot.client.blocking.area import BlockingArea
from onthedot.model.audit_entry import AuditEntry
from onthedot.model.incident import ChannelTest, IncidentView

__all__ = ["BlockingAlerts"]


class BlockingAlerts(BlockingArea):
    def list_alerts(self, **filters: Any) -> ResultPage[IncidentView]:
        return self._run(self._async.list_alerts(**filters))

    def incident_bundle(self, incident_id: int) -> dict[str, Any]:
        return self._run(self._async.incident_bundle(incident_id))

    def test_channel(self, channel: str, *, idempotency_key: str | None = None) -> ChannelTest:
        return self._run(self._async.test_channel(channel, idempotency_key=idempotency_key))

    def list_audit(self, **filters: Any) -> ResultPage[AuditEntry]:
        return self._run(self._async.list_audit(**filters))
