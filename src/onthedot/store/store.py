"""The store: everything On the Dot keeps, as one object made of small topics."""

from __future__ import annotations

from collections.abc import Callable

from onthedot.store.alerts.lists import Incidents
from onthedot.store.alerts.outbox import Outbox
from onthedot.store.bulk.operations import BulkOperations
from onthedot.store.cluster.alert_watch import AlertWatch
from onthedot.store.cluster.diagnosis import Diagnosis
from onthedot.store.cluster.freezes import Freezes
from onthedot.store.cluster.installation import Installation
from onthedot.store.cluster.keys import Keys
from onthedot.store.cluster.maintenance import Maintenance
from onthedot.store.cluster.nodes import Nodes
from onthedot.store.cluster.objectives import Objectives
from onthedot.store.cluster.proofs import Proofs
from onthedot.store.cluster.rollups import Rollups
from onthedot.store.cluster.sessions import Sessions
from onthedot.store.jobs.audit_log import AuditLog
from onthedot.store.jobs.carry_out import NotesOfRuns
from onthedot.store.jobs.chains import JobChains
from onthedot.store.jobs.close_one_offs import OneOffClosing
from onthedot.store.jobs.floor_watch import FloorWatch
from onthedot.store.jobs.idempotency import OutsideActs
from onthedot.store.jobs.jobs import Jobs
from onthedot.store.jobs.lists import JobLists
from onthedot.store.jobs.noticed import NoticedJobs
from onthedot.store.jobs.pauses import Pauses
from onthedot.store.jobs.scripts import ScriptRows
from onthedot.store.jobs.skips import Skips
from onthedot.store.jobs.sync import JobSync
from onthedot.store.jobs.undelete import DeletedJobs
from onthedot.store.jobs.verbs import JobChanges
from onthedot.store.jobs.versions import JobVersions
from onthedot.store.runs.callbacks import Callbacks
from onthedot.store.runs.checkins import CheckIns
from onthedot.store.runs.claim import Claims
from onthedot.store.runs.dead_letters import DeadLetters
from onthedot.store.runs.destinations import DestinationWaits
from onthedot.store.runs.finish import Finishes
from onthedot.store.runs.groups import GroupWaits
from onthedot.store.runs.lists import RunLists
from onthedot.store.runs.live_logs import LiveLogTopic
from onthedot.store.runs.manual import ManualRuns
from onthedot.store.runs.open import OpenRuns
from onthedot.store.runs.orders import RunOrders
from onthedot.store.runs.requirements import Requirements
from onthedot.store.runs.slot_rows import SlotRows
from onthedot.store.runs.verbs import RunChanges

__all__ = ["Store"]


class Store(
    Jobs,
    JobChanges,
    JobChains,
    JobLists,
    JobSync,
    JobVersions,
    NoticedJobs,
    DeletedJobs,
    Skips,
    AuditLog,
    Pauses,
    ManualRuns,
    BulkOperations,
    ScriptRows,
    Keys,
    Sessions,
    Claims,
    Finishes,
    NotesOfRuns,
    OpenRuns,
    Callbacks,
    CheckIns,
    RunOrders,
    DestinationWaits,
    Requirements,
    GroupWaits,
    RunChanges,
    RunLists,
    SlotRows,
    DeadLetters,
    LiveLogTopic,
    Nodes,
    Installation,
    Freezes,
    OneOffClosing,
    Maintenance,
    Rollups,
    Proofs,
    Incidents,
    Outbox,
    AlertWatch,
    Objectives,
    FloorWatch,
    Diagnosis,
    OutsideActs,
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
