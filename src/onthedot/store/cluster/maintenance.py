"""What one node does for all now and then, and the numbers an operator looks at."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import msgspec

from onthedot import telemetry
from onthedot.model.duration import DAY, HOUR, MINUTE
from onthedot.model.freeze import Freeze
from onthedot.model.instant import NEVER
from onthedot.model.labels import NodeOffer, missing_labels, read_requires, type_of
from onthedot.model.objective import WINDOW_DAYS
from onthedot.store.cluster.freezes import read_freeze
from onthedot.store.cluster.partitions import drop_old, make_ahead
from onthedot.store.driver import Transaction
from onthedot.store.jobs.close_one_offs import NOTED, close_one_offs
from onthedot.store.jobs.undelete import UNDELETE_WITHIN, forget_deleted
from onthedot.store.runs.requirements import live_offers
from onthedot.store.topic import Topic

__all__ = ["BacklogCount", "Maintenance", "StoreStats", "count_backlog"]

BATCH = 1000
"""Rows that a prune deletes in one transaction: nobody waits for long."""

WATCHED = 50_000
"""Jobs that one look at the ledger goes through, about 20 ms of the database: a look at all of ten million took the
database from a drain of 20,000 runs for five times what the drain itself cost it."""


PRUNED = (
    "prune_history",
    "prune_logs",
    "prune_refused",
    "prune_dead",
    "prune_discarded",
    "prune_run_params",
    "prune_run_actors",
    "prune_versions",
    "prune_operations",
    "prune_audit",
    "prune_incidents",
    "prune_deliveries",
)


class BacklogCount(msgspec.Struct, frozen=True, kw_only=True):
    """What is due and not claimed. Counts of a kind end at 10,000. `unoffered`: due runs that no live node can run, by
    what they require. `lacking`: of these, which labels no live node has that could run them otherwise. `waiting`:
    those that wait for a destination or a share. `kinds`: all of them, by the type of their target. `claimable`: those
    that a live node can take now, by what they require.
    `unreached`: runs whose work goes on where no live node reaches it."""

    due: int
    running: int
    oldest_ms: int | None
    unoffered: dict[str, int]
    waiting: int = 0
    unreached: dict[str, int] = {}
    lacking: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    kinds: dict[str, int] = msgspec.field(default_factory=dict)
    claimable: dict[str, int] = msgspec.field(default_factory=dict)


class StoreStats(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of one tenant. `last_hour`: ended runs by status, of the newest 100,000. `late_notes`: of all tenants, how
    many ended runs have consequences (chained runs, alerts, pauses) that nobody has carried out within a minute,
    counted up to 10,000, and since when the first of them."""

    jobs: dict[str, int]
    pending: int
    running: int
    dead: int
    last_hour: dict[str, int]
    freeze: Freeze | None = None  # all is paused: since when, why, by whom
    late_notes: int = 0
    late_notes_since: str | None = None


class Maintenance(Topic):
    _watched = 0  # up to which job the ledger was looked at; the next look goes on there
    _unroutable: AbstractSet[str] = frozenset()  # what was told that due runs require and nobody provides

    async def ensure_partitions(self) -> list[str]:
        """The ledger's days to come have their partition. Nothing to do on SQLite. The names of those made now."""
        if self.driver.dialect != "postgres":
            return []

        async def body(tx: Transaction) -> list[str]:
            return await make_ahead(tx, await tx.now())

        return await self.driver.transact_slow(body)

    async def prune(self, before: int) -> int:
        """What is older than `before` goes: whole partitions, and row by row by index the rest. How much it was."""
        gone = 0
        await close_one_offs(self.driver, BATCH)  # a little: `close_one_offs_in_passing` knows when there is time
        if self.driver.dialect == "postgres":
            gone += len(await self.driver.transact_slow(lambda tx: drop_old(tx, before)))
        for statement in PRUNED:
            gone += await self._in_batches(statement, before)
        gone += await self._prune_jobs(before)
        now = await self.driver.read(lambda tx: tx.now())
        gone += await self._forget_deleted(now - UNDELETE_WITHIN)
        gone += await self._in_batches("prune_objective_days", now - (WINDOW_DAYS + 1) * DAY)
        gone += await self._in_batches("prune_idempotency", now - DAY)
        gone += await self._in_batches("prune_live_logs", now - MINUTE)  # of nodes that died
        await self.driver.transact_slow(lambda tx: tx.execute("remember_nodes", None))
        await self.driver.transact_slow(lambda tx: tx.execute("prune_nodes", now - DAY))
        gone += await self._in_batches("prune_node_names", before - DAY)  # they are noted once an hour
        return gone

    async def _in_batches(self, statement: str, before: int) -> int:
        total = 0
        while True:
            count = await self.driver.transact_slow(lambda tx: tx.execute(statement, before, BATCH))
            total += count
            if count < BATCH:
                return total

    async def _forget_deleted(self, before: int) -> int:
        """Jobs that were deleted before can't come back any more: what is left of them goes."""
        total = 0
        while True:
            count = await self.driver.transact_slow(lambda tx: forget_deleted(tx, before, BATCH))
            total += count
            if count < BATCH:
                return total

    async def _prune_jobs(self, before: int) -> int:
        async def body(tx: Transaction) -> int:
            gone = [row["id"] for row in await tx.rows("prune_jobs", before, BATCH)]
            if gone:
                await tx.execute("prune_tags", gone)
                await tx.execute("delete_chains", gone)
                await tx.execute("delete_versions", gone)
            return len(gone)

        total = 0
        while True:
            count = await self.driver.transact_slow(body)
            total += count
            if count < BATCH:
                return total

    async def watch_ledger(self) -> list[int]:
        """Look for what must not be: lanes that wait for nobody are let go, due runs that no live node can take are
        told, active jobs without a next run are named loudly. The ids of those jobs. Each call looks at so many jobs,
        and the next one goes on with those after."""

        async def let_go(tx: Transaction) -> None:
            stuck = [row["lane"] for row in await tx.rows("stuck_lanes")]
            if stuck:
                await tx.execute("release_lanes", stuck)
            if self.driver.dialect == "postgres":
                await tx.execute("drop_groups", BATCH)

        async def look(tx: Transaction) -> tuple[list[int], int]:
            there = await tx.row("job_after", self._watched, WATCHED)
            until = NEVER if there is None else there["id"]
            silent = [row["id"] for row in await tx.rows("silent_jobs", self._watched, until)]
            return silent, 0 if there is None else until

        await self.driver.transact_slow(let_go)
        self._tell_unroutable(await self.driver.read(count_backlog))
        silent, self._watched = await self.driver.read(look)
        for job_id in silent:
            telemetry.emit("job.silent", job_id=job_id)
        return silent

    def _tell_unroutable(self, backlog: BacklogCount) -> None:
        """Each once, and when it is over."""
        for requires in sorted(backlog.unoffered.keys() - self._unroutable):
            labels = ", ".join(backlog.lacking.get(requires, ()))
            telemetry.emit("run.unroutable", requires=requires, n=backlog.unoffered[requires], labels=labels or None)
        for requires in sorted(self._unroutable - backlog.unoffered.keys()):
            telemetry.emit("run.routable", requires=requires)
        self._unroutable = set(backlog.unoffered)

    async def backlog(self) -> BacklogCount:
        """What is due, and whether there is anybody to run it."""
        return await self.driver.read(count_backlog)

    async def stats(self, tenant: int) -> StoreStats:
        async def body(tx: Transaction) -> StoreStats:
            live = {row["state"]: row["n"] for row in await tx.rows("count_live", tenant)}
            dead = await tx.row("count_dead", tenant)
            ended = await tx.rows("count_ended", tenant, await tx.now() - HOUR)
            assert dead is not None
            return StoreStats(
                jobs={row["state"]: row["n"] for row in await tx.rows("count_jobs", tenant, NOTED)},
                pending=live.get("pending", 0),
                running=live.get("running", 0),
                dead=dead["n"],
                last_hour={row["status"].upper(): row["n"] for row in ended},
                freeze=await read_freeze(tx),
            )

        return await self.driver.read(body)


async def count_backlog(tx: Transaction) -> BacklogCount:
    now = await tx.now()
    due: dict[str, int] = {}
    oldest: list[int] = []
    frozen = await read_freeze(tx)  # what waits for its end is not due
    for index in ("free", "cursor", "lane") if frozen is None else ():
        for row in await tx.rows(f"backlog+where.{index}_runs", now):
            due[row["requires"]] = due.get(row["requires"], 0) + row["due"]
            oldest.append(row["oldest"])
    waiting = {kind: count for kind, count in due.items() if kind.endswith("@")}
    nodes = await live_offers(tx)
    unoffered, lacking = _unoffered(due, nodes)
    offered = frozenset[str]().union(*(node.capabilities for node in nodes))
    places = {row["requires"]: row["n"] for row in await tx.rows("open_places")}
    kinds: dict[str, int] = {}
    for requires, count in due.items():
        kinds[type_of(requires)] = kinds.get(type_of(requires), 0) + count
    running = await tx.row("count_running")
    assert running is not None
    return BacklogCount(
        due=sum(due.values()),
        running=running["n"],
        oldest_ms=now - min(oldest) if oldest else None,
        unoffered=unoffered,
        waiting=sum(waiting.values()),
        lacking=lacking,
        kinds=kinds,
        claimable={kind: n for kind, n in due.items() if kind not in waiting and kind not in unoffered},
        unreached={place: count for place, count in places.items() if place not in offered},
    )


def _unoffered(due: dict[str, int], nodes: Sequence[NodeOffer]) -> tuple[dict[str, int], dict[str, tuple[str, ...]]]:
    """What waits for a destination needs a node that offers its capability, as all others do."""
    found: dict[str, int] = {}
    lacking: dict[str, tuple[str, ...]] = {}
    for kind, count in sorted(due.items()):
        requires = kind.removesuffix("@")
        if any(kind in node.capabilities or requires in node.capabilities for node in nodes):
            continue
        needed = read_requires(requires)
        missing = missing_labels(needed, nodes) if needed.labels else ()
        if missing is None:
            continue
        found[requires] = found.get(requires, 0) + count
        if missing and any(needed.capability in node.capabilities for node in nodes):
            lacking[requires] = missing
    return found, lacking
