"""What runs print while they run: written by their node in portions, read by any."""

from __future__ import annotations

from collections.abc import Sequence

from onthedot.store.shapes import Rows, Shape
from onthedot.store.topic import Topic

__all__ = ["LiveLog", "LiveLogTopic"]


class LiveLog(Shape, frozen=True, kw_only=True):
    """All that the attempt with this token has printed so far, its last 64 KB at most."""

    run_id: str
    tenant: int
    token: int
    text: str


class EndedLog(Shape, frozen=True):
    run_id: str
    token: int


class LiveLogTopic(Topic):
    async def put_live_logs(self, logs: Sequence[LiveLog]) -> None:
        await self.driver.transact_slow(lambda tx: tx.execute("put_live_logs", Rows(logs)))

    async def drop_live_logs(self, ended: Sequence[tuple[str, int]]) -> None:
        """These attempts (run, token) have ended: what they printed is with their result."""
        rows = Rows([EndedLog(run_id, token) for run_id, token in ended])
        await self.driver.transact_slow(lambda tx: tx.execute("drop_live_logs", rows))
