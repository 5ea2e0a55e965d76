"""The outbox: messages about incidents, taken by any node that has their channel, and there until they are delivered.

Who takes some has them for a while. If it dies meanwhile another one takes them: a message may come twice, never not
at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.model.alerts import AlertCondition
from onthedot.model.incident import AlertEvent
from onthedot.store.driver import Transaction
from onthedot.store.topic import Topic

__all__ = ["MOST_TAKEN", "DueAlert", "Outbox"]

TAKEN_MS = 120_000
"""How long taken messages are left to a node that lives. A message must be delivered, or not, within this."""

MOST_TAKEN = 500
RATE_WINDOW_MS = 60_000
KEPT_TRIES = 20
"""So often a message is tried, the last ones an hour apart: most of a day."""


class DueAlert(msgspec.Struct, frozen=True, kw_only=True):
    """A message that this node is to deliver, with what it is about."""

    id: int
    tenant: int
    event: AlertEvent
    tries: int  # with this one
    incident_id: int
    condition: AlertCondition
    job_id: int | None
    title: str
    reason: str
    cause: str
    occurrence: str | None
    output: str | None
    count: int
    opened_at: int
    closed_at: int | None


class Outbox(Topic):
    async def alerts_due(self, channels: Sequence[str]) -> list[str]:
        """Which of these channels have messages that are due."""
        if not channels:
            return []
        rows = await self.driver.read(lambda tx: tx.rows("channels_due", list(channels)), watched=True)
        return [row["channel"] for row in rows]

    async def take_alerts(self, node: str, channel: str) -> tuple[list[DueAlert], int]:
        """Messages to this channel that are due and that nobody has in hand, oldest first; and how many messages it was
        sent in the last minute, by all nodes. They are this node's until it tells what became of them, or dies."""

        async def body(tx: Transaction) -> tuple[list[DueAlert], int]:
            now = await tx.now()
            sent = await tx.row("count_sent", channel, now - RATE_WINDOW_MS)
            ids = [row["id"] for row in await tx.rows("take_deliveries", node, channel, now + TAKEN_MS, MOST_TAKEN)]
            rows = await tx.rows("taken_deliveries", ids) if ids else []
            found = [DueAlert(**{name: row[name] for name in DueAlert.__struct_fields__}) for row in rows]
            return found, 0 if sent is None else sent["n"]

        return await self.driver.transact_slow(body)

    async def alerts_sent(self, ids: Sequence[int]) -> None:
        """One message told all of these, and was accepted."""

        async def body(tx: Transaction) -> None:
            await tx.execute("deliveries_sent", list(ids), await tx.now(), min(ids))

        await self.driver.transact_slow(body)

    async def alerts_not_sent(self, ids: Sequence[int], error: str | None, wait_ms: int) -> None:
        """They were not delivered, and are to be tried again later; after so many tries they are given up. No error:
        they were put off."""

        async def body(tx: Transaction) -> None:
            again = await tx.now() + wait_ms
            counts = error is not None
            await tx.execute("deliveries_not_sent", list(ids), error and error[:1000], again, counts, KEPT_TRIES)

        await self.driver.transact_slow(body)
