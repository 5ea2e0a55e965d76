"""What runs print while they run: written by their node in portions, read by any."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.store.driver import Rows
from onthedot.store.topic import Topic

__all__ = ["LiveLog", "LiveLogTopic"]


class LiveLog(msgspec.Struct, frozen=True, kw_only=True):
    """All that the attempt with this token has printed so far, its last 64 KB at most."""

    run_id: str
    tenant: int
    token: int
    text: str


class LiveLogTopic(Topic):
    async def put_live_logs(self, logs: Sequence[LiveLog]) -> None:
        rows = Rows([(log.run_id, log.tenant, log.token, log.text) for log in logs])
        await self.driver.transact_slow(lambda tx: tx.execute("put_live_logs", rows))

    async def drop_live_logs(self, ended: Sequence[tuple[str, int]]) -> None:
        """These attempts (run, token) have ended: what they printed is with their result."""
        rows = Rows(list(ended))
        await self.driver.transact_slow(lambda tx: tx.execute("drop_live_logs", rows))
