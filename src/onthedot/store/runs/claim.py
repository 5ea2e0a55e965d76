"""claim: runs whose time has come become this node's, at once and without ever waiting for anybody.

One statement looks, three take runs (free ones, cursors, lanes) where there are any, one reads their jobs, and each
kind of consequence (successors, range rows, jobs that go on) is one more: a claim of a thousand takes as many round
trips as a claim of one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from operator import attrgetter

import msgspec

from onthedot.errors import NoRoom, StoreUnavailable
from onthedot.model.job import JobRecord
from onthedot.model.run import ClaimedRun, run_id
from onthedot.plan import due_at, in_backlog, on_time_share, shares
from onthedot.store.driver import Driver, Row, Rows, Transaction
from onthedot.store.jobs.close_one_offs import Settling
from onthedot.store.jobs.taken_slots import may_be_taken, taken_by_next
from onthedot.store.runs.claim_batch import ClaimBatch
from onthedot.store.runs.free_runs import free_runs, with_own_params
from onthedot.store.runs.lanes import claim_lanes
from onthedot.store.runs.rows import claimed_run
from onthedot.store.runs.spec_cache import SpecCache

__all__ = ["Claim", "Claims", "Floor", "Seen", "Want"]

_NOTHING = 2**62  # ms: everything is due within them
BREATH = 32
"""Jobs that go on to their next slot between two breaths: 20 µs each, in which nothing else fires. (Soaks of 40 s at
500 a second, in turns: the p99 of lateness 0, 1 and 1 ms without, 0 each time with; the longest 8-12 and 5-13.)"""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What a claim brought: the database's time, the runs that are now this node's, and when to look again."""

    now: int
    runs: list[ClaimedRun]
    skipped: int = 0  # ledger rows written for slots that will not fire
    next_ready: int | None = None  # when to look again; `now`: there is more already; None: none in sight


class Want(msgspec.Struct, frozen=True, kw_only=True):
    """What one pool of a node can take: no more than `limit` runs, and of the backlog no more than `late`."""

    offers: Sequence[str]
    limit: int
    late: int | None = None


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a look saw for one pool: where there is something to claim, and when to look again if there is not."""

    now: int
    free: bool = False
    cursors: bool = False
    lanes: bool = False
    next_ready: int | None = None
    floor: int = 0
    unbounded: bool = False

    @property
    def nothing(self) -> bool:
        return not (self.free or self.cursors or self.lanes)


class Floor:
    """From where on a claim looks at `ready_at`: 30 s before the oldest run that there was.

    It spares the scan the dead entries that a long snapshot keeps at the head of the index. One look a second goes
    without it, so that nothing below stays unseen. What such a look left behind counts like what it took: a backlog
    that had no room was else below the floor, and its share of the slots lay idle for most of each second.
    """

    TRAIL = 30_000
    GAP = 1.0

    def __init__(self) -> None:
        self._floor = 0
        self._looked_at: float | None = None

    def begin(self, monotonic: float) -> tuple[int, bool]:
        """The floor for this claim, and whether it looks without one."""
        if self._looked_at is None or monotonic - self._looked_at >= self.GAP:
            self._looked_at = monotonic
            return 0, True
        return self._floor, False

    def forget(self) -> None:
        """The clock was set back behind it: the next look goes without."""
        self._floor, self._looked_at = 0, None

    def end(self, rows: Sequence[Row], now: int) -> None:
        """After a look without floor: where the next ones begin."""
        self._floor = min((row["ready_at"] for row in rows), default=now) - self.TRAIL


class Claims(Settling):
    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._specs = SpecCache()
        self._floors: dict[tuple[str, ...], Floor] = {}
        self._taken: dict[tuple[str, ...], tuple[int, int]] = {}

    async def claim_each(
        self, node: str, wants: Sequence[Want], *, level: int, lookahead_ms: int, within_ms: int | None = None
    ) -> list[Claim]:
        """For each of them what there is, after one look for all. Fewer answers than wants: the store went away after
        these, and what was claimed is claimed."""
        seen = await self.look(
            [want.offers for want in wants], level=level, lookahead_ms=lookahead_ms, within_ms=within_ms
        )
        claims: list[Claim] = []
        try:
            for want, there in zip(wants, seen, strict=True):
                claim = await self.claim(
                    node,
                    offers=want.offers,
                    level=level,
                    limit=want.limit,
                    late=want.late,
                    lookahead_ms=lookahead_ms,
                    within_ms=within_ms,
                    seen=there,
                )
                claims.append(claim)
        except StoreUnavailable:
            if not any(claim.runs for claim in claims):
                raise
        return claims

    async def look(
        self, pools: Sequence[Sequence[str]], *, level: int, lookahead_ms: int, within_ms: int | None = None
    ) -> list[Seen]:
        """What there is to claim for each of these pools of offers: one statement, without a transaction. `within_ms`:
        what is ready ahead of its time is left until one is due so soon."""
        now = asyncio.get_running_loop().time()
        floors = [self._floors.setdefault(tuple(offers), Floor()) for offers in pools]
        begun = [floor.begin(now) for floor in floors]
        lowest = min(bound for bound, _ in begun)
        offered = Rows([(offer, number) for number, offers in enumerate(pools) for offer in offers])
        soon, leave = _patience(lookahead_ms, within_ms)
        rows = await self.driver.read(lambda tx: tx.rows("peek", offered, level, soon, lowest, leave), watched=True)
        of_pool = {row["pool"]: row for row in rows}
        seen = [_seen(of_pool[number], *floor) for number, floor in enumerate(begun)]
        for floor, there in zip(floors, seen, strict=True):
            if there.floor > there.now:
                floor.forget()
            elif there.unbounded and there.nothing:
                floor.end((), there.now)
        return seen

    async def claim(
        self,
        node: str,
        *,
        offers: Sequence[str],
        level: int,
        limit: int,
        lookahead_ms: int,
        late: int | None = None,
        within_ms: int | None = None,
        seen: Seen | None = None,
    ) -> Claim:
        """Runs that are ready and that `node` can run become its own; their jobs go on to the next slot. `late`: of the
        backlog no more than so many. `seen`: what a look for these offers saw of late; if nothing, that was all."""
        if seen is None:
            (seen,) = await self.look([offers], level=level, lookahead_ms=lookahead_ms, within_ms=within_ms)
        if seen.nothing:
            return Claim(now=seen.now, runs=[], next_ready=seen.next_ready)
        key, there, (soon, _) = tuple(offers), seen, _patience(lookahead_ms, within_ms)

        async def body(tx: Transaction) -> tuple[Claim, ClaimBatch, list[Row], list[Row]]:
            look = _Look(tx, node, list(offers), level, there.floor, limit if late is None else late)
            cursors, lanes, free = await self._look(look, there, key, limit)
            rows = [*cursors, *lanes, *free]
            now = rows[0]["now"] if rows else there.now
            batch = ClaimBatch(now, lookahead_ms, soon)
            runs = await self._take(tx, node, cursors, lanes, free, batch)
            left = await look.left_behind() if there.unbounded and (look.more or len(rows) >= limit) else []
            following = now if look.more else batch.soonest
            if not look.more and len(rows) < limit:
                following = _earlier(following, there.next_ready)
            runs.sort(key=_due)
            return Claim(now=now, runs=runs, skipped=batch.skipped, next_ready=following), batch, rows, left

        claim, batch, rows, left = await self.driver.transact(body, repeatable=True)
        if there.unbounded:
            self._floors[key].end([*rows, *left], claim.now)
        if len(rows) >= limit:
            self.claimed_all_it_could()
        batch.announce()
        return claim

    async def _look(
        self, look: _Look, due: Seen, key: tuple[str, ...], limit: int
    ) -> tuple[list[Row], list[Row], list[Row]]:
        """Divide the room by what each kind had last time; what one leaves over is the others'."""
        cursors_before, lanes_before = self._taken.get(key, (0, 0))
        wanted = [due.cursors * (2 * cursors_before + 16), due.lanes * (2 * lanes_before + 16), due.free * limit]
        for_cursors, for_lanes, _ = shares(limit, wanted)
        cursors = await look.at("claim_cursors", for_cursors)
        lanes = await look.at("pick_lanes", for_lanes)
        free = await look.at("claim_free", due.free * (limit - len(cursors) - len(lanes)))
        left = limit - len(cursors) - len(lanes) - len(free)
        if left and due.cursors and len(cursors) >= for_cursors:
            cursors = [*cursors, *await look.at("claim_cursors", left)]
        elif left and due.lanes and len(lanes) >= for_lanes:
            look.more = True
        self._taken[key] = len(cursors), len(lanes)
        return cursors, lanes, free

    async def _take(
        self,
        tx: Transaction,
        node: str,
        cursors: Sequence[Row],
        lanes: Sequence[Row],
        free: Sequence[Row],
        batch: ClaimBatch,
    ) -> list[ClaimedRun]:
        jobs = await self._specs.read(tx, (row["job_id"] for row in (*cursors, *lanes)))
        specs = await self._specs.read_specs(tx, (row["job_id"] for row in free))
        await _look_ahead(tx, [*cursors, *(row for row in lanes if row["cursor"])], jobs, batch)
        runs = list[ClaimedRun]()
        for place, row in enumerate(cursors, 1):
            if (run := _follow(row, jobs[row["job_id"]], batch)) is not None:
                runs.append(run)
            if place % BREATH == 0:
                await tx.breathe()
        runs += await claim_lanes(tx, node, lanes, jobs, batch)
        runs += free_runs(free, specs, batch)
        await batch.write(tx, jobs)
        return await with_own_params(tx, runs)


class _Look:
    """One claim's looks at the queue: the same node, offers and floor each time."""

    def __init__(self, tx: Transaction, node: str, offers: list[str], level: int, floor: int, late: int) -> None:
        self._tx = tx
        self._node = node
        self._offers = offers
        self._level = level
        self._floor = floor
        self._late = late
        self.more = False  # there may be late runs beyond the share that a backlog gets

    async def at(self, statement: str, limit: int) -> list[Row]:
        if limit <= 0:
            return []
        late = min(on_time_share(limit), self._late)
        rows = await self._tx.rows(statement, self._node, self._offers, self._level, limit, late, self._floor)
        self.more = self.more or late <= len(rows) < limit
        if self._late < limit // 2:  # counted only where it may matter: half a microsecond a run
            late = sum(in_backlog(row["kind"], row["due_at"], row["now"]) for row in rows)
            self._late = max(0, self._late - late)  # retries of old runs are more than it asked for
        return list(rows)

    async def left_behind(self) -> list[Row]:
        """The oldest of what is ready and was not taken, if there is any."""
        rows = await self._tx.rows("oldest_ready", self._offers, self._level)
        return [row for row in rows if row["ready_at"] is not None]


def _patience(lookahead_ms: int, within_ms: int | None) -> tuple[int, int]:
    """How soon a run that may be held ahead is looked for, and within how long one must be due lest all are left."""
    return (lookahead_ms // 2, _NOTHING) if within_ms is None else (within_ms, within_ms)


def _seen(row: Row, floor: int, unbounded: bool) -> Seen:
    return Seen(
        now=row["now"],
        free=bool(row["free"]),
        cursors=bool(row["cursors"]),
        lanes=bool(row["lanes"]),
        next_ready=row["next"],
        floor=floor,
        unbounded=unbounded,
    )


def _earlier(one: int | None, other: int | None) -> int | None:
    return min((instant for instant in (one, other) if instant is not None), default=None)


_due = attrgetter("due_at")


async def _look_ahead(tx: Transaction, cursors: Sequence[Row], jobs: dict[int, JobRecord], batch: ClaimBatch) -> None:
    """Of most jobs nothing behind the cursor has a row; of the others what has one is looked up."""
    for row in cursors:
        job = jobs[row["job_id"]]
        if may_be_taken(job, row["slot"]):
            batch.taken[job.id] = await taken_by_next(tx, job, row["slot"], batch.now)


def _follow(row: Row, job: JobRecord, batch: ClaimBatch) -> ClaimedRun | None:
    """A cursor was claimed: its job goes on, and one of the slots that arrived fires, or none."""
    try:
        plan = batch.plan(job, row["slot"])
    except NoRoom:  # not the schedule's fault
        raise
    except Exception as error:  # whatever is wrong with one schedule must not stop the others
        batch.quarantine(job, row["id"], error)
        return None
    batch.follow(job, plan)
    if plan.fire is None:
        batch.drop(row["id"])
        return None
    if plan.fire == row["slot"]:
        return claimed_run(row, job)
    name = run_id(job.id, plan.fire)
    due = due_at(plan.fire, name, job.spec.policy.jitter)
    batch.move(row["id"], name, plan.fire, due)
    return msgspec.structs.replace(claimed_run(row, job), id=name, slot=plan.fire, due_at=due)
