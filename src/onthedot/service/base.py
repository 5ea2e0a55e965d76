"""What all verbs have in common: the store, the targets' rules, the time, and the hint that something is due soon."""

from __future__ import annotations

import secrets

from onthedot.clock import Clock
from onthedot.model.instant import format_instant
from onthedot.model.job import JobView
from onthedot.service.aside import Aside
from onthedot.service.checking import TargetRules
from onthedot.service.create_batcher import CreateBatcher
from onthedot.service.database_time import DatabaseTime
from onthedot.service.ping_rates import PingRates
from onthedot.service.progress_reports import ProgressReports
from onthedot.settings import Settings
from onthedot.store import Store

__all__ = ["ServiceBase"]


class ServiceBase:
    def __init__(self, store: Store, targets: TargetRules, clock: Clock, settings: Settings) -> None:
        self.store = store
        self.targets = targets
        self.clock = clock
        self.settings = settings
        self.time = DatabaseTime(store.now, clock)
        self.creates = CreateBatcher(store.create_jobs)
        self.aside = Aside()
        self.progress = ProgressReports(store.set_progress, clock)
        self.ping_rates = PingRates(clock)
        self._secret: str | None = None
        self.calls_back = settings.callback_base is not None

        self.unhinted = 2 * settings.poll_interval + settings.lookahead
        """What is due later than this is found by every node in time without a hint: a poll gap is randomised up to
        twice the interval, and a node claims LOOKAHEAD before the instant."""

    async def installation_secret(self) -> str:
        """What tokens of callbacks and pings are made with."""
        if self._secret is None:
            self._secret = await self.store.callback_secret(secrets.token_hex(32))
        return self._secret

    async def hint(self, *jobs: JobView) -> None:
        """Wake the nodes only for what is due before they would have looked by themselves."""
        soonest = min((job.next_run for job in jobs if job.next_run is not None), default=None)
        if soonest is None:
            return
        soon = format_instant(await self.time.now() + self.unhinted)
        if soonest < soon:  # instants of one form: as texts they have the same order, and reading is dear
            await self.hint_now()

    async def hint_now(self) -> None:
        """There is a run to claim."""
        await self.store.notify("due")

    async def hint_orders(self) -> None:
        """There is something for the owner of a run to read: a cancel or a recall."""
        await self.store.notify("orders")
