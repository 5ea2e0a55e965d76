"""What all Monitors of a node share."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

from onthedot.clock import Clock
from onthedot.engine.mailbox import Mailbox
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.membership.lateness import Lateness
from onthedot.engine.membership.lease import Lease
from onthedot.engine.messages import Fence, RecorderMessage
from onthedot.engine.recording.owned_runs import OwnedRuns
from onthedot.engine.running.callbacks import CallbackUrls
from onthedot.engine.running.deadlines import Deadlines
from onthedot.engine.running.live_logs import LiveLogWriter
from onthedot.engine.running.run_log_files import LogFiles
from onthedot.engine.running.slot_pool import SlotPool
from onthedot.engine.settings import EngineSettings
from onthedot.model.decoding import to_builtins
from onthedot.model.job import JobSpec
from onthedot.model.result import settled
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.model.work import Work
from onthedot.plan import expired, laned, on_outcome
from onthedot.store import Finished, StartedWork, TurnedAway, WaitsFor
from onthedot.targets import Targets
from onthedot.targets.contract import Handle

__all__ = ["RunContext"]


class RunContext(msgspec.Struct, frozen=True, kw_only=True):
    clock: Clock
    time: DatabaseClock
    lease: Lease
    deadlines: Deadlines
    targets: Targets
    recorder: Mailbox[RecorderMessage]
    owned: OwnedRuns
    unrecorded: dict[Fence, Handle]  # of what goes on outside until it is known that its result is committed
    lateness: Lateness
    logs: LogFiles | None
    live_logs: LiveLogWriter
    crashed: Callable[[BaseException], None]
    lacks: Callable[[SlotPool, str], None]
    callbacks: CallbackUrls
    settings: EngineSettings
    rng: random.Random

    def started_work(self, run: ClaimedRun) -> StartedWork:
        """What it starts now, for whoever has to find it again. A retry is as late as the first start was."""
        target, timeout, now = run.spec.target, self.timeout_of(run.spec), self.time.now_ms()
        first = next((a.started_at for a in run.attempts if a.started_at is not None), now)
        capability = self.targets.kind_of(target).adopted_by(target)
        return StartedWork(
            run_id=run.id,
            token=run.token,
            work=Work(
                target=to_builtins(target),
                try_number=run.tries + 1,
                place=capability,
                started_at=now,
                lateness_ms=max(0, first - run.due_at),
            ),
            capability=capability,
            within_ms=None if timeout is None else round(timeout * 1000),
        )

    def leaves_early(self, run: ClaimedRun) -> bool:
        """Whether it may be started a moment before its instant, because its kind keeps time. Not what has to ask the
        store first or is not to begin late; nor what others wait for: its result is told at once."""
        policy, target = run.spec.policy, run.spec.target
        kind = self.targets.kind_of(target)
        return (
            kind.keeps_time(target)
            and not kind.profile.survives_node
            and policy.delivery == "at_least_once"
            and policy.expires_in is None
            and not laned(policy)
        )

    def finished(
        self,
        run: ClaimedRun,
        outcome: Outcome,
        started_at: int | None,
        finished_at: int,
        duration_ms: int | None = None,
        log: str | None = None,
    ) -> Finished:
        """How an attempt ended and what is to become of the run: decided here and once, however often it must be
        written. Lateness is that of the first start: a retry is not late because the first try failed."""
        first = started_at
        if run.attempts:
            first = next((a.started_at for a in run.attempts if a.started_at is not None), started_at)
        lateness = None
        if first is not None:
            lateness = first - run.due_at if first > run.due_at else 0
        if "result" in outcome.detail:
            outcome = settled(outcome, keep=run.spec.keep_result)
        return Finished(
            run=run,
            outcome=outcome,
            decision=on_outcome(run, outcome, finished_at, self.rng, begun=started_at is not None),
            started_at=started_at,
            finished_at=finished_at,
            lateness_ms=lateness,
            duration_ms=duration_ms,
            log=log,
        )

    def turned_away(self, run: ClaimedRun, requires: str, waiting: WaitsFor = "destination") -> TurnedAway:
        """It waits for its destination, or its share of the slots, at the latest until it expires."""
        expires = run.spec.policy.expires_in
        until = None if expires is None or run.begun_before else run.due_at + expires + 1
        return TurnedAway(
            run_id=run.id, token=run.token, version=run.version, requires=requires, until=until, waiting=waiting
        )

    def too_late(self, run: ClaimedRun, now: int) -> Outcome | None:
        """What becomes of it if it is not to begin any more. Not asked of what may have begun before: a retry is late
        because of the first try, and `max_age` is its limit."""
        policy = run.spec.policy
        if policy.expires_in is None or run.begun_before or not expired(policy, run.due_at, now):
            return None
        return Outcome(kind="expired", error=f"not started within {policy.expires_in} of its due time")

    def timeout_of(self, spec: JobSpec) -> float | None:
        """Seconds. The policy's, else what its kind of target has by default; None: as long as it takes."""
        if spec.policy.timeout is not None:
            return spec.policy.timeout / 1000
        return spec.target.timeout_by(self.settings)
