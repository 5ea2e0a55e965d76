"""Check-ins: nothing is sent. At its slot a run opens, and waits without a node for the report of the job.

How a report ends it is in `store.runs.checkins`; that none came in time is decided by the database's clock
(`plan.checkins`), so that it is noticed whichever node lives.
"""

from __future__ import annotations

from onthedot.model.run import Outcome
from onthedot.model.targets.checkin import CheckinTarget
from onthedot.targets.contract import Call
from onthedot.targets.coroutine import CoroutineKind
from onthedot.targets.setup import KindSetup

__all__ = ["Checkins"]


class Checkins(CoroutineKind):
    """The kind `checkin`."""

    spec = CheckinTarget

    @classmethod
    def of(cls, setup: KindSetup) -> Checkins:
        return cls()

    async def send(self, call: Call) -> Outcome:
        return Outcome(kind="ok")
