"""Bugs of the engine and its store that somebody who built a scheduler made, or nearly made."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from onthedot.engine.lifetime import Incarnation
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.membership.lease import Lease
from onthedot.engine.membership.peer_beats import PeerBeats
from onthedot.engine.recording.owned_runs import OwnedRuns
from onthedot.engine.running.monitor import Monitor
from onthedot.model.run import Outcome
from onthedot.store import NewJob, Store
from onthedot.store.jobs.jobs import Jobs
from onthedot.store.runs import orders
from onthedot.store.runs.claim_batch import ClaimBatch
from onthedot.targets.contract import Ended
from proof.planted.focus import Focus
from proof.planted.plant import Bug, Code, Sql, Swap

__all__ = ["BUGS"]

_create_jobs = Jobs.create_jobs
_follow = ClaimBatch._follow
_back = orders._back
_monotonic_at = DatabaseClock.monotonic_at

_done = Monitor._done
_start = Monitor._start


def _record_before_send(self: Monitor, at: float) -> None:
    """It is told to have ended well in the next moment; what the target says of it later is not heard."""
    _start(self, at)
    asyncio.get_running_loop().call_soon(_done, self, Ended(Outcome(kind="ok"), at))


async def _blind_create(self: Jobs, items: Sequence[NewJob]) -> Any:
    return await _create_jobs(self, [msgspec.structs.replace(item, idempotency=None) for item in items])


async def _no_reclaim(self: Store) -> int:
    return 0


async def _begin_unrecorded(self: Store, node: str, fences: Sequence[tuple[str, int]]) -> set[str]:
    return {run_id for run_id, _ in fences}


def _at_us_by_wall(self: DatabaseClock, monotonic: float) -> int:
    return self._clock.now_ms() * 1000


def _a_little_early(self: DatabaseClock, instant_ms: int) -> float:
    return _monotonic_at(self, instant_ms) - 0.02


def _renew_by_wall(self: Lease, sent: float) -> None:
    self._sent = self._clock.now_ms() / 1000


def _may_start_by_wall(self: Lease, now: float | None = None) -> bool:
    return self._sent is not None and self._clock.now_ms() / 1000 < self._sent + self._trusted


def _no_successor(self: ClaimBatch, job: Any, plan: Any) -> None:
    _follow(self, job, msgspec.structs.replace(plan, successor=None) if plan.claimed_slot % 7 == 0 else plan)


def _skipped_unwritten(self: ClaimBatch, job: Any, skipped: Any) -> None:
    """Given up in silence."""


def _back_counts_a_try(row: Any, job: Any, lookahead: int) -> Any:
    back = _back(row, job, lookahead)
    return msgspec.structs.replace(back, tries=back.tries + 1)


def _no_strays(self: OwnedRuns, rows: Any, before: Any) -> list[Any]:
    return []


def _no_gap(self: PeerBeats, now: float) -> None:
    """An outage is taken for everybody else's death."""


async def _end_told_once(self: Incarnation, *names: str) -> None:
    tasks = [self._loops[name] for name in names]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


BUGS = (
    Bug(
        name="no fencing",
        what="finish takes a result from whoever brings it",
        faults=("freeze", "freeze_at"),
        shows=("stale",),
        edits=tuple(
            Sql(statement, fence, "1")
            for statement in ("finish_record", "finish_lock")
            for fence in ("r.token = x.token", "coalesce(r.node, r.open) = x.node")
        ),
    ),
    Bug(
        name="token does not rise",
        what="a reclaimed run is claimed with the token it had",
        faults=("kill", "kill_at"),
        shows=("token", "repeated"),
        edits=tuple(
            Sql(statement, "token = token + 1", "token = max(token, 1)")
            for statement in ("claim_free", "claim_cursors")
        ),
    ),
    Bug(
        name="node clock used for due",
        what="a node fires by its own wall clock",
        shows=("early",),
        edits=(Swap("onthedot.engine.membership.db_clock:DatabaseClock.at_us", _at_us_by_wall),),
    ),
    Bug(
        name="lease by wall clock",
        what="a node trusts its lease by a clock that can be set back",
        faults=("suspend",),
        shows=("zombie", "repeated"),
        edits=(
            Swap("onthedot.engine.membership.lease:Lease.renew", _renew_by_wall),
            Swap("onthedot.engine.membership.lease:Lease.may_start", _may_start_by_wall),
        ),
    ),
    Bug(
        name="no lease",
        what="a node that was frozen or cut off goes on as if nothing had been",
        faults=("freeze", "cut"),
        seeds=tuple(range(1, 13)),
        shows=("zombie", "repeated", "at_most_once"),
        edits=(Swap("onthedot.engine.membership.lease:Lease.may_start", lambda self, now=None: True),),
    ),
    Bug(
        name="robbery after an outage",
        what="a watcher counts the time in which the database was away as silence of the others",
        faults=("outage",),
        shows=("robbed",),
        edits=(Swap("onthedot.engine.membership.peer_beats:PeerBeats._check_gap", _no_gap),),
    ),
    Bug(
        name="record before send",
        what="a run is recorded as done while it is still on its way",
        faults=("kill_at",),
        shows=("unsent",),
        edits=(Swap("onthedot.engine.running.monitor:Monitor._start", _record_before_send),),
    ),
    Bug(
        name="blind retry of an insert",
        what="a create that is asked for again makes a second job",
        faults=("flaky",),
        shows=("doubled",),
        edits=(Swap("onthedot.store.jobs.jobs:Jobs.create_jobs", _blind_create),),
    ),
    Bug(
        name="forgotten reclaim",
        what="nobody takes back the runs of a lost node",
        faults=("kill_at",),
        shows=("stuck",),
        edits=(Swap("onthedot.store.store:Store.reclaim", _no_reclaim),),
    ),
    Bug(
        name="edit fires a claimed slot again",
        what="a changed schedule starts after now, not after what was claimed ahead",
        edits=(
            Code("onthedot.plan.cursor:_new_times", "free(times, taken).next_after(now)", "times.next_after(now)"),
            Sql("drop_cursor", "AND cursor", "AND kind = 'scheduled' AND tries = 0"),
        ),
    ),
    Bug(
        name="successor not inserted",
        what="now and then a claim forgets the next slot",
        shows=("silent", "lost"),
        edits=(Swap("onthedot.store.runs.claim_batch:ClaimBatch._follow", _no_successor),),
    ),
    Bug(
        name="coalesced range not written",
        what="slots that catch-up gives up leave no row",
        faults=("outage", "power_cut"),
        shows=("lost",),
        edits=(Swap("onthedot.store.runs.claim_batch:ClaimBatch.skip", _skipped_unwritten),),
    ),
    Bug(
        name="pause leaves a retry claimable",
        what="only runs that were never tried are parked",
        minutes=6.0,
        shows=("after_pause",),
        edits=(
            Sql("park_runs", "kind <> 'manual'", "kind <> 'manual' AND tries = 0"),
            Sql("finish_retry", "j.state = 'paused'", "0", times=3),
        ),
        focus=Focus(retry={"attempts": 4, "backoff": 1000}, mood="bad", verbs=("pause",)),
    ),
    Bug(
        name="pause recalls nothing",
        what="what a node holds ahead fires after the pause was confirmed",
        shows=("after_pause",),
        edits=(Sql("recall_runs", "node IS NOT NULL", "node IS NOT NULL AND 0"),),
        focus=Focus(verbs=("pause",)),
    ),
    Bug(
        name="started for an instant too early",
        what="a target that keeps time itself is told a time before the run is due",
        shows=("early",),
        edits=(Swap("onthedot.engine.membership.db_clock:DatabaseClock.monotonic_at", _a_little_early),),
    ),
    Bug(
        name="at-most-once not recorded",
        what="the send is allowed without writing down that it begins",
        faults=("kill_at", "kill"),
        shows=("at_most_once",),
        edits=(Swap("onthedot.store.store:Store.begin", _begin_unrecorded),),
    ),
    Bug(
        name="give-back counts a try",
        what="a run that was never sent loses one of its tries",
        faults=("stop",),
        shows=("tries",),
        edits=(Swap("onthedot.store.runs.orders:_back", _back_counts_a_try),),
    ),
    Bug(
        name="lost answer to a claim",
        what="a node never asks what else carries its name",
        faults=("flaky", "hang"),
        shows=("stuck", "late"),
        edits=(Swap("onthedot.engine.recording.owned_runs:OwnedRuns.strays", _no_strays),),
    ),
    Bug(
        name="stop told once",
        what="a loop that takes its cancellation for trouble of the database is waited for, for ever",
        faults=("stop_cut",),
        shows=("crashed",),
        edits=(Swap("onthedot.engine.lifetime:Incarnation._end", _end_told_once),),
    ),
    Bug(
        name="retry that never comes",
        what="what is to be tried again is put where no claim looks",
        shows=("stuck",),
        edits=(Sql("finish_retry", "ELSE max(x.ready_at, now_ms()) END", "ELSE 9000000000000000000 END"),),
    ),
)
