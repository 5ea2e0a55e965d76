"""Incidents as people see them, newest first."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.model.alerts import AlertCondition, AlertWay
from onthedot.model.incident import Delivery, IncidentState, IncidentView
from onthedot.model.instant import NEVER, format_instant
from onthedot.store.driver import Row, Transaction
from onthedot.store.paging import Page, check_limit, fingerprint, open_cursor, seal_cursor
from onthedot.store.topic import Topic

__all__ = ["IncidentFilter", "Incidents"]

_ways = msgspec.json.Decoder(list[AlertWay]).decode


class IncidentFilter(msgspec.Struct, frozen=True, kw_only=True):
    """`since` and `until`: when it was opened, ms, both included."""

    id: int | None = None
    job_id: int | None = None
    condition: AlertCondition | None = None
    state: IncidentState | None = None
    since: int | None = None
    until: int | None = None
    limit: int = 50
    cursor: str | None = None


class Incidents(Topic):
    async def list_incidents(self, tenant: int, wanted: IncidentFilter) -> Page[IncidentView]:
        """Newest first."""
        limit = check_limit(wanted.limit)
        chosen = {
            "incident_id": wanted.id,
            "incident_job": wanted.job_id,
            "incident_condition": wanted.condition,
        }
        given = {name: value for name, value in chosen.items() if value is not None}
        asked = fingerprint("incidents", tenant, given, wanted.state, wanted.since, wanted.until)
        place = [NEVER, NEVER] if wanted.cursor is None else open_cursor(wanted.cursor, asked, (int, int))
        conditions = [*given, *([] if wanted.state is None else [f"incident_{wanted.state}"])] or ["any_incident"]
        name = "+".join(["list_incidents", *(f"where.{each}" for each in conditions)])
        span = wanted.since or 0, NEVER if wanted.until is None else wanted.until

        async def body(tx: Transaction) -> tuple[Sequence[Row], Sequence[Row]]:
            rows = await tx.rows(name, tenant, *place, *span, limit + 1, *given.values())
            ids = [row["id"] for row in rows[:limit]]
            return rows, await tx.rows("deliveries_of", ids) if ids else ()

        rows, told = await self.driver.read(body)
        deliveries: dict[int, list[Delivery]] = {}
        for each in told:
            deliveries.setdefault(each["incident_id"], []).append(_delivery(each))
        last = rows[limit - 1] if len(rows) > limit else None
        return Page(
            items=[_view(row, deliveries.get(row["id"], [])) for row in rows[:limit]],
            next=None if last is None else seal_cursor(asked, last["opened_at"], last["id"]),
        )

    async def count_open_incidents(self, tenant: int) -> int:
        """So far: 1,000 at most."""
        row = await self.driver.read(lambda tx: tx.row("count_open_incidents", tenant))
        return 0 if row is None else row["n"]


def _view(row: Row, deliveries: list[Delivery]) -> IncidentView:
    closed, alerted = row["closed_at"], row["alerted_at"]
    return IncidentView(
        id=row["id"],
        state="open" if closed is None else "closed",
        condition=row["condition"],
        job_id=row["job_id"],
        title=row["title"],
        reason=row["reason"],
        cause=row["cause"],
        run_id=row["occurrence"] if row["job_id"] is not None else None,
        output=row["output"],
        count=row["count"],
        opened_at=format_instant(row["opened_at"]),
        last_at=format_instant(row["last_at"]),
        closed_at=None if closed is None else format_instant(closed),
        alerted_at=None if alerted is None else format_instant(alerted),
        channels=[way.channel for way in _ways(row["ways"])],
        deliveries=deliveries,
    )


def _delivery(row: Row) -> Delivery:
    sent, failed = row["sent_at"], row["failed_at"]
    return Delivery(
        channel=row["channel"],
        event=row["event"],
        state="sent" if sent is not None else "failed" if failed is not None else "waiting",
        at=format_instant(sent or failed or row["not_before"]),
        tries=row["tries"],
        error=row["error"],
    )
