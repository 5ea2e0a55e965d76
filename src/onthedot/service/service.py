"""Every verb a user has: the API, the page, the embedded scheduler and the start of a node speak to this one object."""

from __future__ import annotations

from onthedot.service.alerts import AlertVerbs
from onthedot.service.audit import AuditVerbs
from onthedot.service.bulk import BulkVerbs
from onthedot.service.bundles import BundleVerbs
from onthedot.service.calendars import CalendarVerbs
from onthedot.service.callbacks import CallbackVerbs
from onthedot.service.chains import ChainVerbs
from onthedot.service.change_plans import ChangePlanVerbs
from onthedot.service.checkins import CheckinVerbs
from onthedot.service.cluster import ClusterVerbs
from onthedot.service.dead_letters import DeadLetterVerbs
from onthedot.service.destinations import DestinationVerbs
from onthedot.service.explained_slots import SlotVerbs
from onthedot.service.forecast import ForecastVerbs
from onthedot.service.freezes import FreezeVerbs
from onthedot.service.groups import GroupVerbs
from onthedot.service.jobs import JobVerbs
from onthedot.service.keys import KeyVerbs
from onthedot.service.previews import PreviewVerbs
from onthedot.service.proofs import ProofVerbs
from onthedot.service.run_requests import RunRequestVerbs
from onthedot.service.runs import RunVerbs
from onthedot.service.series import SeriesVerbs
from onthedot.service.settings_in_force import SettingVerbs
from onthedot.service.skips import SkipVerbs
from onthedot.service.sync import SyncVerbs
from onthedot.service.timers import TimerVerbs
from onthedot.service.upcoming import UpcomingVerbs

__all__ = ["Service"]


class Service(
    BundleVerbs,
    ChangePlanVerbs,
    TimerVerbs,
    JobVerbs,
    SyncVerbs,
    RunVerbs,
    RunRequestVerbs,
    SkipVerbs,
    DeadLetterVerbs,
    BulkVerbs,
    AuditVerbs,
    AlertVerbs,
    CallbackVerbs,
    CheckinVerbs,
    PreviewVerbs,
    ChainVerbs,
    KeyVerbs,
    ClusterVerbs,
    FreezeVerbs,
    SeriesVerbs,
    ProofVerbs,
    UpcomingVerbs,
    ForecastVerbs,
    SlotVerbs,
    CalendarVerbs,
    SettingVerbs,
    DestinationVerbs,
    GroupVerbs,
):
    """Each verb: validate, one store call, a hint if something is due soon. No verb waits for anything else."""

    async def close(self) -> None:
        """Wait for creates that are being written: what was accepted gets its answer."""
        await self.creates.drain()
        await self.progress.close()
        self.aside.close()
