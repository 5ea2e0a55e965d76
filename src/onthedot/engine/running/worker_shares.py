"""Which jobs and tenants have the workers of this node, and whose runs wait because they have their share.

Of the kinds whose calls occupy a worker (`Profile.shares_workers`). How much a share is, `plan.worker_shares` says. A
run beyond it goes back to the store at once, before it is begun: waiting here, it would keep room that others need. It
then requires its share too (`function:reports@job:17`), as one that waits for a destination does, and is claimed again
when this node or another has room for it. All of it is in memory, of this node alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from onthedot.engine.look_times import LookTimes
from onthedot.engine.running.slot_pool import SlotPool
from onthedot.engine.tuning import CLAIM_AGAIN, LOOK_GAP, SHARES_SIFTED
from onthedot.model.destination import Share, read_share, waits_for_share
from onthedot.model.run import ClaimedRun
from onthedot.plan.worker_shares import room_of_job, room_of_tenant
from onthedot.store import Claim
from onthedot.targets import Targets

__all__ = ["WorkerShares"]


class _BusyWorkers:
    """Of one pool: who has how many workers."""

    __slots__ = ("jobs", "several", "tenant", "tenants", "turned_away")

    def __init__(self) -> None:
        self.jobs: dict[int, int] = {}
        self.tenants: dict[int, int] = {}
        self.tenant: int | None = None  # the first that was met
        self.several = False  # another one was met since: each has a share from then on
        self.turned_away = False  # since the last claim

    def meet(self, tenant: int) -> None:
        if self.tenant is None:
            self.tenant = tenant
        elif tenant != self.tenant:
            self.several = True


class WorkerShares:
    def __init__(self, targets: Targets, look_times: LookTimes) -> None:
        self.pools = targets.sharing_workers
        self._targets = targets
        self._look_times = look_times
        self._taken = {name: _BusyWorkers() for name in self.pools}
        self._waited_for: dict[str, Share] = {}  # by what runs require that wait, in the order in which it is asked for

    # starting and ending calls

    def refuses(self, run: ClaimedRun, pool: SlotPool, *, waited: bool = False) -> str | None:
        """What the run has to require because its share is used up; None: it may have a worker. `waited`: it has waited
        for this; while others do, one place is left to them, or what comes new would always find it first."""
        taken = self._taken[pool.name]
        if not taken.several:
            taken.meet(run.tenant)
        if pool.capacity < 2 or self._targets.kind_of(run.spec.target).is_brief(run.spec.target):
            return None
        room = room_of_job(pool.capacity, pool.running, taken.jobs.get(run.job_id, 0))
        if room <= 1 and (refused := self._unless(room, run, Share(run.tenant, run.job_id), waited)) is not None:
            return self._turns_away(refused, pool, taken)
        if taken.several:
            room = room_of_tenant(pool.capacity, taken.tenants.get(run.tenant, 0))
            if room <= 1 and (refused := self._unless(room, run, Share(run.tenant), waited)) is not None:
                return self._turns_away(refused, pool, taken)
        return None

    def begin(self, run: ClaimedRun, pool: str) -> None:
        taken = self._taken[pool]
        taken.jobs[run.job_id] = taken.jobs.get(run.job_id, 0) + 1
        taken.tenants[run.tenant] = taken.tenants.get(run.tenant, 0) + 1

    def end(self, run: ClaimedRun, pool: str) -> None:
        taken = self._taken[pool]
        for counts, key in ((taken.jobs, run.job_id), (taken.tenants, run.tenant)):
            if counts[key] > 1:
                counts[key] -= 1
            else:
                del counts[key]
        if self._waited_for:  # a worker is idle until the next claim
            self._look_times.look_within(LOOK_GAP)

    def _unless(self, room: int, run: ClaimedRun, share: Share, waited: bool) -> str | None:
        if room == 1 and (waited or not self._waited_for):
            return None
        requires = waits_for_share(run.spec.requirement(), share)
        return requires if room < 1 or requires in self._waited_for else None

    @staticmethod
    def _turns_away(requires: str, pool: SlotPool, taken: _BusyWorkers) -> str:
        """What stands behind it in the store may be somebody else's: the next claims bring more than could start."""
        taken.turned_away = True
        pool.sifted = SHARES_SIFTED
        return requires

    # waiting in the store

    def waits(self, requires: str) -> None:
        """Runs wait in the store that require this."""
        if requires not in self._waited_for and (share := read_share(requires)) is not None:
            self._waited_for[requires] = share
            self._look_times.look_within(CLAIM_AGAIN)

    def wanted(self, pool: SlotPool, capabilities: Iterable[str], room: int, most: int) -> list[tuple[str, int]]:
        """What runs require that are worth a claim now, and how many of each: `room` all together, of `most` shares,
        which come in turn."""
        if not self._waited_for or room <= 0:
            return []
        offered, wants, taken = set(capabilities), list[tuple[str, int]](), self._taken[pool.name]
        room = min(room, pool.most - pool.running)
        for _ in range(min(len(self._waited_for), 4 * most)):
            if room <= 0 or len(wants) >= most:
                break
            requires, share = next(iter(self._waited_for.items()))
            self._waited_for[requires] = self._waited_for.pop(requires)
            if requires.partition("@")[0] not in offered:
                continue
            limit = room
            if share.job_id is not None:
                limit = min(limit, room_of_job(pool.capacity, pool.running, taken.jobs.get(share.job_id, 0)))
            if taken.several:
                limit = min(limit, room_of_tenant(pool.capacity, taken.tenants.get(share.tenant, 0)))
            if limit > 0:
                wants.append((requires, limit))
                room -= limit
        return wants

    def brought(self, requires: str, limit: int, claim: Claim) -> None:
        """What a claim of so many found there. If that was all, nobody waits any more, until somebody is seen."""
        if requires not in self._waited_for:
            return
        if len(claim.runs) < limit and (claim.next_ready is None or claim.next_ready > claim.now):
            del self._waited_for[requires]
        else:  # also if it brought none: those that it saw may wait for their lane
            self._look_times.look_within(CLAIM_AGAIN)

    def claimed(self, pool: SlotPool) -> None:
        """A claim for all was handled: if nobody was turned away since the last one, the next brings what can start."""
        taken = self._taken[pool.name]
        if not taken.turned_away:
            pool.sifted = 0
        taken.turned_away = False
