"""claim: runs whose time has come become this node's, at once and without ever waiting for anybody.

One statement looks, three take runs (free ones, cursors, lanes) where there are any, one reads their jobs, and each
kind of consequence (successors, range rows, jobs that go on) is one more: a claim of a thousand takes as many round
trips as a claim of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec

from onthedot.errors import StoreUnavailable
from onthedot.model.job import JobRecord, JobSpec
from onthedot.model.run import ClaimedRun
from onthedot.plan import expired, in_backlog, on_time_share, shares
from onthedot.store.driver import Driver, Transaction
from onthedot.store.jobs.close_one_offs import OneOffClosing
from onthedot.store.jobs.taken_slots import may_be_taken, taken_by_next
from onthedot.store.runs.claim_batch import ClaimBatch
from onthedot.store.runs.lanes import claim_lanes
from onthedot.store.runs.look import Looks, Seen, margins, recent
from onthedot.store.runs.retry_limits import with_retry_limits
from onthedot.store.runs.row import ClaimedRow, claimed_run
from onthedot.store.runs.spec_cache import SpecCache

__all__ = ["Claim", "Claims", "Want"]

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


class _ClaimedRows(msgspec.Struct):
    """What a claim took, each kind of run by its own statement."""

    cursors: list[ClaimedRow]
    lanes: list[ClaimedRow]
    free: list[ClaimedRow]

    def all(self) -> list[ClaimedRow]:
        return [*self.cursors, *self.lanes, *self.free]


class Claims(Looks, OneOffClosing):
    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._specs = SpecCache()
        self._before: dict[tuple[str, ...], tuple[int, int]] = {}  # what offers had of cursors and lanes the last time

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
        key, there, (soon, _) = tuple(offers), seen, margins(lookahead_ms, within_ms)

        async def body(tx: Transaction) -> tuple[Claim, ClaimBatch, list[int], bool]:
            queue = _Queue(tx, node, list(offers), level, there.floor, limit if late is None else late)
            taken = await (self._take_manual(queue, limit) if there.frozen else self._take(queue, there, key, limit))
            rows = taken.all()
            now = rows[0].now if rows else there.now
            batch = ClaimBatch(now, lookahead_ms, soon, there.thawed_at)
            runs = await self._follow_up(tx, node, taken, batch)
            if batch.set_aside and there.free and not there.frozen:
                runs += await self._instead(tx, queue, batch)
            ready = [row.ready_at for row in rows]
            if there.unbounded and (queue.more or len(rows) >= limit):
                ready += await queue.left_behind()
            # What waits for its lane or was given up had a part of the room: behind it there may be others.
            queue.more = queue.more or batch.left_alone or len(runs) < limit <= len(rows)
            following = now if queue.more else batch.soonest
            if not queue.more and len(rows) < limit and not there.frozen:
                following = _earlier(following, there.next_ready)
            runs.sort(key=_due)
            claim = Claim(now=now, runs=runs, skipped=batch.skipped, next_ready=following)
            return claim, batch, ready, len(rows) >= limit

        claim, batch, ready, full = await self.driver.transact(body, repeatable=True)
        if there.unbounded:
            self._floors[key].end(ready, claim.now)
        if full:
            self.claimed_all_it_could()
        batch.announce()
        return claim

    async def _take(self, queue: _Queue, due: Seen, key: tuple[str, ...], limit: int) -> _ClaimedRows:
        """Divide the room by what each kind had last time; what one leaves over is the others'."""
        cursors_before, lanes_before = recent(self._before, key, (0, 0))
        wanted = [due.cursors * (2 * cursors_before + 16), due.lanes * (2 * lanes_before + 16), due.free * limit]
        for_cursors, for_lanes, _ = shares(limit, wanted)
        cursors = await queue.take("claim_cursors", for_cursors)
        lanes = await queue.take("pick_lanes", for_lanes)
        free = await queue.take("claim_free", due.free * (limit - len(cursors) - len(lanes)))
        left = limit - len(cursors) - len(lanes) - len(free)
        if left and due.cursors and len(cursors) >= for_cursors:
            cursors = [*cursors, *await queue.take("claim_cursors", left)]
        elif left and due.lanes and len(lanes) >= for_lanes:
            queue.more = True
        self._before[key] = len(cursors), len(lanes)
        return _ClaimedRows(cursors, lanes, free)

    async def _take_manual(self, queue: _Queue, limit: int) -> _ClaimedRows:
        """All is paused: what was asked for by hand, and nothing else."""
        free = await queue.take_plain("claim_manual", limit)
        return _ClaimedRows([], await queue.take_plain("pick_manual_lanes", limit - len(free)), free)

    async def _follow_up(self, tx: Transaction, node: str, taken: _ClaimedRows, batch: ClaimBatch) -> list[ClaimedRun]:
        jobs = await self._specs.read(tx, (row.job_id for row in (*taken.cursors, *taken.lanes)))
        specs = await self._specs.read_specs(tx, map(_job_id, taken.free))
        await _look_ahead(tx, [*taken.cursors, *(row for row in taken.lanes if row.cursor)], jobs, batch)
        runs = list[ClaimedRun]()
        for place, row in enumerate(taken.cursors, 1):
            if (run := _firing(row, jobs[row.job_id], batch)) is not None:
                runs.append(run)
            if place % BREATH == 0:
                await tx.breathe()
        runs += await claim_lanes(tx, node, taken.lanes, jobs, batch)
        runs += _free(taken.free, specs, batch)
        await batch.write(tx, jobs)
        return await _with_own_params(tx, await with_retry_limits(tx, self._specs, runs, jobs))

    async def _instead(self, tx: Transaction, queue: _Queue, batch: ClaimBatch) -> list[ClaimedRun]:
        """What waits for its group takes no room: others have it. A full group does not delay them."""
        rows = await queue.take("claim_free", batch.set_aside)
        if not rows:
            return []
        others = ClaimBatch(batch.now, 0, 0)
        specs = await self._specs.read_specs(tx, (row.job_id for row in rows))
        runs = _free(rows, specs, others)
        await others.write(tx, {})
        batch.join(others)
        return await _with_own_params(tx, await with_retry_limits(tx, self._specs, runs, {}))


class _Queue:
    """The queue as one claim meets it: the same node, offers and floor each time it takes of it."""

    def __init__(self, tx: Transaction, node: str, offers: list[str], level: int, floor: int, late: int) -> None:
        self._tx = tx
        self._node = node
        self._offers = offers
        self._level = level
        self._floor = floor
        self._late = late
        self.more = False  # there may be late runs beyond the share that a backlog gets

    async def take(self, statement: str, limit: int) -> list[ClaimedRow]:
        if limit <= 0:
            return []
        late = min(on_time_share(limit), self._late)
        found = await self._tx.rows(statement, self._node, self._offers, self._level, limit, late, self._floor)
        rows = [ClaimedRow(*row) for row in found]
        self.more = self.more or late <= len(rows) < limit
        if self._late < limit // 2:  # counted only where it may matter: half a microsecond a run
            late = sum(in_backlog(row.kind, row.due_at, row.now) for row in rows)
            self._late = max(0, self._late - late)  # retries of old runs are more than it asked for
        return rows

    async def take_plain(self, statement: str, limit: int) -> list[ClaimedRow]:
        """Without a share for what is late."""
        if limit <= 0:
            return []
        return [
            ClaimedRow(*row) for row in await self._tx.rows(statement, self._node, self._offers, self._level, limit)
        ]

    async def left_behind(self) -> list[int]:
        """When the oldest of what is ready and was not taken became ready, if there is any."""
        rows = await self._tx.rows("oldest_ready", self._offers, self._level)
        return [row["ready_at"] for row in rows if row["ready_at"] is not None]


def _earlier(one: int | None, other: int | None) -> int | None:
    return min((instant for instant in (one, other) if instant is not None), default=None)


_due = attrgetter("due_at")
_job_id = attrgetter("job_id")


async def _look_ahead(
    tx: Transaction, cursors: Sequence[ClaimedRow], jobs: dict[int, JobRecord], batch: ClaimBatch
) -> None:
    """Of most jobs nothing behind the cursor has a row; of the others what has one is looked up."""
    for row in cursors:
        job = jobs[row.job_id]
        if may_be_taken(job, row.slot):
            batch.taken[job.id] = await taken_by_next(tx, job, row.slot, batch.now)


def _firing(row: ClaimedRow, job: JobRecord, batch: ClaimBatch) -> ClaimedRun | None:
    """A cursor was claimed: what fires of it, if anything does."""
    firing = batch.fire(row, job)
    if firing is None:
        return None
    run = claimed_run(row, job.version, job.spec)
    if firing.id == row.id:
        return run
    batch.move(row.id, firing)
    return msgspec.structs.replace(run, id=firing.id, slot=firing.slot, due_at=firing.due_at)


def _free(rows: Sequence[ClaimedRow], specs: dict[int, tuple[int, JobSpec]], batch: ClaimBatch) -> list[ClaimedRun]:
    """Runs that needed no lock but their own (one-offs, retries, what was asked for by hand), with their jobs as they
    are now. What is too late, or has no job any more, ends here."""
    runs = []
    for row in rows:
        known = specs.get(row.job_id)
        if known is None:
            batch.end(row, "cancelled", "the job was deleted")
            continue
        version, spec = known
        if row.token == 1 and spec.policy.expires_in is not None and expired(spec.policy, row.due_at, batch.now):
            batch.end(row, "skipped", "late", spec)
            continue
        runs.append(claimed_run(row, version, spec))
    return runs


_params = msgspec.json.Decoder(dict[str, Any], float_hook=float)


async def _with_own_params(tx: Transaction, runs: list[ClaimedRun]) -> list[ClaimedRun]:
    """Runs that were asked for by hand may have params of their own, those that a chain has started do: they are looked
    up for these alone."""
    manual = [run.id for run in runs if run.kind in ("manual", "redrive", "chain")]
    if not manual:
        return runs
    own = {row["run_id"]: _params.decode(row["params"]) for row in await tx.rows("params_of", manual)}
    return [msgspec.structs.replace(run, params=own[run.id]) if run.id in own else run for run in runs] if own else runs
