"""Every verb a user has: the API, the page, the embedded scheduler and the start of a node speak to this one object."""

from __future__ import annotations

from onthedot.service.callbacks import CallbackVerbs
from onthedot.service.cluster import ClusterVerbs
from onthedot.service.destinations import DestinationVerbs
from onthedot.service.groups import GroupVerbs
from onthedot.service.jobs import JobVerbs
from onthedot.service.keys import KeyVerbs
from onthedot.service.previews import PreviewVerbs
from onthedot.service.runs import RunVerbs
from onthedot.service.sync import SyncVerbs
from onthedot.service.timers import TimerVerbs

__all__ = ["Service"]


class Service(
    TimerVerbs,
    JobVerbs,
    SyncVerbs,
    RunVerbs,
    CallbackVerbs,
    PreviewVerbs,
    KeyVerbs,
    ClusterVerbs,
    DestinationVerbs,
    GroupVerbs,
):
    """Each verb: validate, one store call, a hint if something is due soon. No verb waits for anything else."""

    async def close(self) -> None:
        """Wait for creates that are being written: what was accepted gets its answer."""
        await self.creates.drain()
        await self.progress.close()
        self.aside.close()
