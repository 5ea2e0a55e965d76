"""The store: everything On the Dot keeps, as one object made of small topics."""

from __future__ import annotations

from collections.abc import Callable

from onthedot.store.by_hand import RunsByHand
from onthedot.store.cancels import RunVerbs
from onthedot.store.claims import Claims
from onthedot.store.finishes import Finishes
from onthedot.store.floor_watch import FloorWatch
from onthedot.store.job_lists import JobLists
from onthedot.store.jobs import Jobs
from onthedot.store.keys import Keys
from onthedot.store.live_logs import LiveLogs
from onthedot.store.nodes import Nodes
from onthedot.store.orders import Orders
from onthedot.store.pauses import Pauses
from onthedot.store.run_lists import RunLists
from onthedot.store.sessions import Sessions
from onthedot.store.settling import Settling
from onthedot.store.sync import JobSync
from onthedot.store.upkeep import Upkeep
from onthedot.store.verbs import JobVerbs

__all__ = ["Store"]


class Store(
    Jobs,
    JobVerbs,
    JobLists,
    JobSync,
    Pauses,
    RunsByHand,
    Keys,
    Sessions,
    Claims,
    Finishes,
    Orders,
    RunVerbs,
    RunLists,
    LiveLogs,
    Nodes,
    Settling,
    Upkeep,
    FloorWatch,
):
    """One public method = one transaction = one sentence of the product. The same meaning on every driver."""

    async def now(self) -> int:
        """The database's clock, in ms: the one that decides what is due."""
        return await self.driver.read(lambda tx: tx.now())

    def listen(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call back with "due" or "orders" when another node hints at it. Returns what ends it."""
        return self.driver.listen(callback)

    async def notify(self, topic: str) -> None:
        """Tell all nodes to look, soon; the hint may be lost."""
        await self.driver.notify(topic)

    async def close(self) -> None:
        await self.driver.close()
