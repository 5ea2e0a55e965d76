"""Delivers the messages to one channel of this node: at once by hint, and within seconds what another node left."""

from __future__ import annotations

import random
from collections.abc import Sequence

from onthedot.channels.channel import Channel, NotDelivered
from onthedot.channels.message import AlertMessage, MessageIncident, grouped_message, incident_message
from onthedot.clock import Clock
from onthedot.engine.mailbox import Signal
from onthedot.engine.membership.backoff import Backoff
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.ports import AlertStore
from onthedot.engine.waiting import at_most
from onthedot.errors import StoreUnavailable
from onthedot.model.instant import format_instant
from onthedot.plan.alert_groups import RATE, grouped, wait_after_failure
from onthedot.store import DueAlert
from onthedot.telemetry import emit

__all__ = ["AlertSender", "message_of"]

LOOK_EVERY = 2.0
LONGEST = 60.0
"""Seconds after which the rest of what was taken is put back: it is this node's for two minutes only."""
PUT_OFF_MS = 5_000


class AlertSender:
    def __init__(
        self,
        node_id: str,
        name: str,
        channel: Channel,
        *,
        store: AlertStore,
        clock: Clock,
        rng: random.Random,
        health: StoreHealth,
        backoff: Backoff,
        link: str | None,
    ) -> None:
        self.hints = Signal()
        self._node_id = node_id
        self._name = name
        self._channel = channel
        self._store = store
        self._clock = clock
        self._rng = rng
        self._health = health
        self._backoff = backoff
        self._link = link

    async def step(self) -> None:
        pause = LOOK_EVERY * self._rng.uniform(0.8, 1.0)
        try:
            if await self._store.alerts_due([self._name]) and await self.deliver():
                self._backoff.reset()
                return
        except StoreUnavailable as error:
            self._health.failed(error)
            pause = self._backoff.delay()
        except Exception as error:  # what is wrong with a channel must not stop what fires
            emit("alert.failed", channel=self._name, n=0, error=f"{type(error).__name__}: {error}")
        await at_most(self._clock, pause, self.hints.wait())

    async def deliver(self) -> bool:
        """What is due. False: nothing was sent."""
        due, sent = await self._store.take_alerts(self._node_id, self._name)
        if not due:
            return False
        if sent >= RATE:
            await self._put_back(due)
            return False
        began = self._clock.monotonic()
        left = grouped(due, RATE - sent)
        while left:
            message = left.pop(0)
            if not await self._send(message) or self._clock.monotonic() - began > LONGEST:
                break
        if left:
            await self._put_back([each for message in left for each in message])
        return not left

    async def _send(self, due: Sequence[DueAlert]) -> bool:
        ids = [each.id for each in due]
        try:
            await self._channel.send(message_of(due, self._link))
        except NotDelivered as error:
            emit("alert.failed", channel=self._name, n=len(ids), error=str(error))
            await self._store.alerts_not_sent(ids, str(error), wait_after_failure(max(each.tries for each in due)))
            return False
        await self._store.alerts_sent(ids)
        emit("alert.sent", channel=self._name, n=len(ids))
        return True

    async def _put_back(self, due: Sequence[DueAlert]) -> None:
        await self._store.alerts_not_sent([each.id for each in due], None, PUT_OFF_MS)


def message_of(due: Sequence[DueAlert], link: str | None) -> AlertMessage:
    told = [
        MessageIncident(
            id=each.incident_id,
            job_id=each.job_id,
            title=each.title,
            reason=each.reason,
            run_id=each.occurrence if each.job_id is not None else None,
            link=_link_of(each, link),
        )
        for each in due
    ]
    first, since = due[0], format_instant(min(each.opened_at for each in due))
    if len(due) == 1:
        return incident_message(
            told[0],
            event=first.event,
            condition=first.condition,
            cause=first.cause,
            since=since,
            output=first.output,
            times=first.count,
        )
    alike = all((each.event, each.condition, each.cause) == (first.event, first.condition, first.cause) for each in due)
    return grouped_message(
        told,
        event=first.event if len({each.event for each in due}) == 1 else "opened",
        condition=first.condition if alike else None,
        cause=first.cause if alike else None,
        since=since,
        link=None if link is None else f"{link}/alerts",
    )


def _link_of(alert: DueAlert, base: str | None) -> str | None:
    if base is None:
        return None
    if alert.job_id is None:
        return f"{base}/nodes"
    ended = alert.condition in ("failed", "dead", "in_a_row", "too_long") and alert.occurrence is not None
    return f"{base}/runs/{alert.occurrence}" if ended else f"{base}/jobs/{alert.job_id}"
