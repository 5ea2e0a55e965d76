"""How the whole is: nodes, numbers, health."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import msgspec

from onthedot.errors import Forbidden, OnTheDotError, StoreMoved
from onthedot.model.instant import format_instant
from onthedot.model.job import JobView
from onthedot.model.labels import NodeOffer, Requirement, missing_labels, type_of
from onthedot.model.node import NodeView
from onthedot.service.base import ServiceBase
from onthedot.service.keys import DEFAULT_TENANT
from onthedot.service.repeats import IdempotencyKey, idempotency
from onthedot.store import BacklogCount, StoreStats
from onthedot.telemetry import emit

__all__ = ["NOTE_WAIT", "ClusterHealth", "ClusterVerbs"]

NOTE_WAIT = 60_000
"""ms after which a note (what the end of a run causes elsewhere) that is not carried out is worth a warning."""


class ClusterHealth(msgspec.Struct, frozen=True, kw_only=True):
    """`ok`: the store answers. `executors`: live nodes that run things; none is worth an alarm, but is no failure."""

    ok: bool
    store: str
    executors: int = 0
    error: str | None = None
    moved: bool = False  # the SQLite file was removed or replaced
    clock: str | None = None  # what was wrong with the database's clock of late


class ClusterVerbs(ServiceBase):
    async def ping(self) -> None:
        """The store answers, or StoreUnavailable says why not."""
        await self.store.now()

    async def problems(self, jobs: Sequence[JobView], tenant: int) -> dict[int, str]:
        """By id, why runs of jobs would fail on this node: what they name is not here. A node that runs nothing, or
        does not have them registered, has nothing to say. In a thread: it reads the files of modules."""
        if "executor" not in self.settings.roles:
            return {}
        look = self.targets.problem

        def all_of_them() -> dict[int, str]:
            found = ((job.id, look(job.target, tenant)) for job in jobs if job.state != "ended")
            return {job_id: problem for job_id, problem in found if problem is not None}

        return await asyncio.to_thread(all_of_them)

    async def missing_labels(self, jobs: Sequence[JobView]) -> dict[int, tuple[str, ...]]:
        """By id, the labels that jobs require and no live node has which runs targets of their type."""
        asking = [job for job in jobs if job.requires and job.state not in ("ended", "paused")]
        if not asking:
            return {}
        live = [node for node in await self.store.list_nodes() if node.state == "alive"]
        nodes = [NodeOffer(frozenset(map(type_of, node.offers)), frozenset(node.labels)) for node in live]
        found = {job.id: missing_labels(Requirement(job.target.type, tuple(job.requires)), nodes) for job in asking}
        return {job_id: labels for job_id, labels in found.items() if labels is not None}

    async def list_nodes(self) -> list[NodeView]:
        return list(await self.store.list_nodes())

    async def node_names(self, ids: Iterable[str | None]) -> dict[str, str]:
        """Names by id, also of nodes that are gone. Those that nobody knows are left out."""
        return await self.store.names_of_nodes(sorted({each for each in ids if each}))

    async def drain_node(self, tenant: int, node_id: str, idempotency_key: IdempotencyKey | None = None) -> NodeView:
        """It claims nothing more and ends what it has; it goes on when it is started again. Drained twice is once."""
        if tenant != DEFAULT_TENANT:
            raise Forbidden("only admins of the default tenant can drain a node: it runs the jobs of all tenants")
        repeat = idempotency("drain", idempotency_key, node_id)
        node = await self.store.drain(node_id, tenant, idempotency=repeat)
        emit("node.draining", node=node_id)
        return node

    async def stats(self, tenant: int) -> StoreStats:
        found = await self.store.stats(tenant)
        notes, oldest = await self.store.count_old_notes(NOTE_WAIT)
        if not notes:
            return found
        since = format_instant(await self.store.now() - oldest)
        return msgspec.structs.replace(found, late_notes=notes, late_notes_since=since)

    async def backlog(self) -> BacklogCount:
        return await self.store.backlog()

    async def old_notes(self) -> tuple[int, float]:
        """How many ended runs have consequences that nobody has carried out within a minute, and for how many seconds
        the oldest of them."""
        notes, oldest = await self.store.count_old_notes(NOTE_WAIT)
        return notes, oldest / 1000

    async def health(self) -> ClusterHealth:
        kind = "sqlite" if self.settings.is_sqlite else "postgresql"
        try:
            nodes = await self.store.list_nodes()
        except OnTheDotError as error:
            return ClusterHealth(ok=False, store=kind, error=str(error), moved=isinstance(error, StoreMoved))
        alive = sum(1 for node in nodes if node.state == "alive" and "executor" in node.roles)
        return ClusterHealth(ok=True, store=kind, executors=alive, clock=self.store.clock_note)
