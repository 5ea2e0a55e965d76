"""Incidents, and channels of alerts."""

from __future__ import annotations

from functools import cached_property

from onthedot.channels.channel import Channel, NotDelivered
from onthedot.channels.message import test_message
from onthedot.channels.registry import build_channels
from onthedot.errors import Forbidden, Invalid, NotFound
from onthedot.model.alerts import AlertCondition
from onthedot.model.incident import ChannelTest, ChannelView, IncidentState, IncidentView
from onthedot.service.base import ServiceBase
from onthedot.service.keys import DEFAULT_TENANT
from onthedot.service.repeats import IdempotencyKey, idempotency
from onthedot.store import IncidentFilter, Page

__all__ = ["AlertVerbs"]


class AlertVerbs(ServiceBase):
    @cached_property
    def channels(self) -> dict[str, Channel]:
        """Those of this node, by name."""
        return build_channels(self.settings.channels)

    def list_channels(self) -> list[ChannelView]:
        return [
            ChannelView(name=name, kind=channel.kind, place=channel.place)
            for name, channel in sorted(self.channels.items())
        ]

    async def list_incidents(
        self,
        tenant: int,
        *,
        job: str | None = None,
        condition: AlertCondition | None = None,
        state: IncidentState | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[IncidentView]:
        """Newest first. `job`: its ID or its key."""
        job_id = None if job is None else await self._job_id(tenant, job)
        if job is not None and job_id is None:
            return Page(items=[], next=None)
        wanted = IncidentFilter(
            job_id=job_id,
            condition=condition,
            state=state,
            since=since,
            until=until,
            limit=limit,
            cursor=cursor,
        )
        return await self.store.list_incidents(tenant, wanted)

    async def count_open_incidents(self, tenant: int) -> int:
        return await self.store.count_open_incidents(tenant)

    async def test_channel(self, tenant: int, name: str, idempotency_key: IdempotencyKey | None = None) -> ChannelTest:
        """Send a test message by this node, at once."""
        if tenant != DEFAULT_TENANT:
            raise Forbidden("only admins of the default tenant can test a channel: it gets the alerts of all tenants")
        channel = self.channels.get(name)
        if channel is None:
            known = ", ".join(sorted(self.channels))
            raise Invalid.one(
                "channel",
                "unknown channel",
                given=name[:200],
                accepted=f"one of {known}" if known else "none: the settings define no channel ([channels.NAME])",
            )
        repeat = idempotency("test_channel", idempotency_key, body=name)
        if repeat is None:
            return await self._sent_to(channel, name)
        if (done := await self.store.begin_once(tenant, repeat, ChannelTest)) is not None:
            return done
        result = await self._sent_to(channel, name)
        await self.store.keep_once(tenant, repeat, result)
        return result

    async def _sent_to(self, channel: Channel, name: str) -> ChannelTest:
        base, began, error = self.settings.callback_base, self.clock.monotonic(), None
        try:
            await channel.send(test_message(name, None if base is None else f"{base}/alerts"))
        except NotDelivered as failure:
            error = str(failure)
        took = round(1000 * (self.clock.monotonic() - began))
        return ChannelTest(channel=name, delivered=error is None, error=error, duration_ms=took)

    async def _job_id(self, tenant: int, job: str) -> int | None:
        if job.isascii() and job.isdecimal() and len(job) < 19:
            return int(job)
        try:
            return (await self.store.get_job_by_key(tenant, job)).id
        except NotFound:
            return None
