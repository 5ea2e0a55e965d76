"""Nodes: who is there, who is lost, and what becomes of a lost one's runs.

A node proves that it lives by a beat that rises; others decide by watching it, on their own monotonic clocks. No time
of one machine is ever compared with that of another.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot import telemetry
from onthedot.errors import Conflict, NotFound, StoreRelocated
from onthedot.model.instant import format_instant
from onthedot.model.node import NodeInfo, NodeLoad, NodeView
from onthedot.model.run import Outcome, may_have_begun
from onthedot.plan import Dead, Lost, on_lost, recorded_first
from onthedot.store.alerts.incidents import OpenedIncident, announce, open_incidents
from onthedot.store.cluster.alert_watch import lost_node_troubles
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.audit_log import write_audit
from onthedot.store.jobs.idempotency import Idempotency, once
from onthedot.store.jobs.rows import decode_spec
from onthedot.store.runs.finish_batch import FinishBatch
from onthedot.store.runs.finish_rows import Item
from onthedot.store.runs.open import OpenRun, end_overdue, open_runs
from onthedot.store.runs.row import decode_attempts
from onthedot.store.topic import Topic

__all__ = ["Beat", "Nodes"]

_LIST = msgspec.json.Decoder(list[str])
RECLAIMED = 1000


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a beat. alive False: this node was declared lost; it drops everything and starts anew."""

    now: int
    alive: bool
    peers: list[tuple[str, int]]  # (node, its beat) of all others that are not lost
    draining: bool = False  # this node was asked to drain, or is stopping
    orders: bool = False  # somebody wants something of runs that this node has
    orphans: bool = False  # there are running rows of lost or unknown nodes, or open ones whose time is up
    adoptable: bool = False  # there are open runs: work that goes on, and no node has it
    noted: bool = False  # what ended runs cause elsewhere is still to be done
    grouped: bool = False  # there are runs that wait for their concurrency group
    open: bool = False  # no key was ever made, and no live node's API is reached by others: see `is_open`
    bindings: list[str] = msgspec.field(
        default_factory=list
    )  # where the API listens on this node's machine, "host:port"


class Nodes(Topic):
    async def register(self, info: NodeInfo) -> int:
        """A new incarnation is there. Answers the database's time."""
        texts = [msgspec.json.encode(part).decode() for part in (info.roles, info.offers, info.labels)]
        about = (
            info.id,
            info.name,
            info.host,
            info.pid,
            info.version,
            info.level,
            *texts,
            info.capacity,
            info.binding,
            info.exposed,
        )

        async def body(tx: Transaction) -> int:
            if (mark := await tx.row("find_mark")) is not None:  # it was moved while this node was frozen, say
                raise StoreRelocated(mark["name"])
            row = await tx.row("register_node", *about)
            assert row is not None
            return int(row["started_at"])

        return await self.driver.transact_slow(body)

    async def beat(self, node: str, load: NodeLoad) -> Beat:
        """I am here. Answers the time, whether I still count as alive, and how the others' beats stand."""

        offers = None if load.offers is None else msgspec.json.encode(load.offers).decode()
        told = msgspec.json.encode(load.destinations).decode() if load.destinations else None
        said = (
            load.held,
            load.running,
            load.lateness_ms,
            load.draining,
            offers,
            load.capacity,
            told,
            load.clock_skew_ms,
        )
        if self.driver.dialect == "postgres":
            (row,) = await self.driver.statement("beat_at_once", node, *said, repeatable=True)
            peers = list(zip(row["peers"], row["beats"], strict=True))
            return Beat(
                now=row["now"],
                alive=row["alive"],
                peers=peers,
                draining=row["draining"],
                orders=row["ordered"],
                orphans=row["orphaned"],
                adoptable=row["adoptable"],
                noted=row["noted"],
                grouped=row["grouped"],
                open=row["open"],
                bindings=row["bindings"],
            )

        async def body(tx: Transaction) -> Beat:
            row = await tx.row("beat", node, *said)
            peers = [(peer["id"], peer["beat"]) for peer in await tx.rows("peers", node)]
            if row is None:
                return Beat(now=await tx.now(), alive=False, peers=peers)
            ordered = any(row["id"] for row in await tx.rows("news_of", node))
            bindings = [row["binding"] for row in await tx.rows("bindings", node)]
            is_open = await _is_open(tx)
            return Beat(
                now=row["now"],
                alive=True,
                peers=peers,
                draining=bool(row["draining"]),
                orders=ordered,
                open=is_open,
                bindings=bindings,
            )

        async def look(tx: Transaction) -> dict[str, bool]:
            orphans = bool(await tx.rows("orphans", 1) or await tx.rows("overdue_runs", 1))
            adoptable, noted = bool(await tx.rows("adoptable")), bool(await tx.rows("any_notes", 0))
            grouped = bool(await tx.rows("any_in_group"))
            return {"orphans": orphans, "adoptable": adoptable, "noted": noted, "grouped": grouped}

        answer = await self.driver.transact_slow(body)
        seen = await self.driver.read(look, watched=True)  # nobody waits for the writer
        return msgspec.structs.replace(answer, **seen)

    async def is_open(self) -> bool:
        """Whether this is still one person's installation: no key was ever made, and only this machine reaches it."""
        return await self.driver.read(_is_open)

    async def declare_lost(self, node: str, beat_seen: int) -> bool:
        """Lost, if its beat still is the one that was watched standing still. True for the one who said it first."""

        async def body(tx: Transaction) -> tuple[bool, list[OpenedIncident]]:
            if not await tx.execute("declare_lost", node, beat_seen):
                return False, []
            troubles = await lost_node_troubles(tx, await tx.now())
            return True, await open_incidents(tx, troubles) if troubles else []

        if self.driver.dialect == "postgres":  # before anything of ours could wait for what it has locked
            for _ in await self.driver.statement("end_transactions_of", node, beat_seen, repeatable=True):
                telemetry.emit("node.transaction_ended", node=node)
        first, opened = await self.driver.transact_slow(body)
        announce(opened)
        if opened:
            await self.driver.notify("alerts")
        return first

    async def reclaim(self) -> int:
        """Runs of lost and unknown nodes are pending again at once, or end, as `plan` says; those whose work goes on
        without their node are open. And open ones end whose time is up and that nobody reached. How many it were."""
        reclaimed = await self.driver.transact(self._reclaim, repeatable=True)
        if reclaimed is None:
            return 0
        rows, batch = reclaimed
        batch.announce()
        for item in batch.written():
            telemetry.emit("run.lost", tenant=item.tenant, job_id=item.job_id, run_id=item.id, node=item.node)
        opened = await open_runs(self.driver, [_opened(row) for row in rows if row["work"] is not None])
        found = len(opened) + _told(batch)
        overdue = await end_overdue(self.driver)
        return found if overdue is None else found + _told(overdue)

    async def _reclaim(self, tx: Transaction) -> tuple[Sequence[Row], FinishBatch] | None:
        """None: another node is at it. All hear of orphans at the same time; if each took a thousand of them, one
        after the other would wait for all before it to find nothing left, and everybody's results would wait behind
        them: for ten seconds and longer, with eight nodes after an outage."""
        if await tx.row("take_reclaim_turn") is None:
            return None
        rows = await tx.rows("orphans", RECLAIMED)
        batch = FinishBatch([_lost(row) for row in rows if row["work"] is None], dialect=self.driver.dialect)
        if rows:
            await batch.attempt(tx)
        return rows, batch

    async def drain(self, node: str, tenant: int = 1, *, idempotency: Idempotency | None = None) -> NodeView:
        """Ask a node to claim no more, which it hears with its next beat. Conflict: it was lost."""

        async def drain(tx: Transaction) -> NodeView:
            found = next((row for row in await tx.rows("list_nodes") if row["id"] == node), None)
            if found is None:
                raise NotFound(f"node {node[:100]!r} not found")
            if not await tx.execute("drain", node):
                raise Conflict(f"node {node!r} was lost: other nodes have taken over its runs")
            if not found["draining"]:
                await write_audit(tx, "drain", tenant, await tx.now(), summary=f"node {found['name']} ({node})")
            return msgspec.structs.replace(_view(found), state="draining")

        return await self.as_asked(lambda tx: once(tx, tenant, idempotency, NodeView, lambda: drain(tx)))

    async def leave(self, node: str) -> None:
        """A node that stops in order takes its row with it; its duties are free at once, and its name stays known."""

        async def body(tx: Transaction) -> None:
            await tx.execute("drop_duties", node)
            await tx.execute("remember_nodes", node)
            await tx.execute("leave", node)

        await self.driver.transact_slow(body)

    async def list_nodes(self) -> list[NodeView]:
        """Nodes that are there, or were lost of late."""
        return [_view(row) for row in await self.driver.read(lambda tx: tx.rows("list_nodes"))]

    async def names_of_nodes(self, ids: Sequence[str]) -> dict[str, str]:
        """Names by id, also of nodes that are gone, for as long as runs may refer to them: retention, and a day."""
        if not ids:
            return {}
        rows = await self.driver.read(lambda tx: tx.rows("names_of_nodes", list(ids)))
        return {row["id"]: row["name"] for row in rows}

    async def take_duty(self, name: str, node: str) -> bool:
        """Whether this node does that duty from now on, or still. No firing depends on it."""
        return await self.driver.transact_slow(lambda tx: tx.row("take_duty", name, node)) is not None


async def _is_open(tx: Transaction) -> bool:
    row = await tx.row("is_open")
    return row is not None and bool(row["open"])


def _told(batch: FinishBatch) -> int:
    """How many it were; dead letters among them are told."""
    for item in batch.written():
        if isinstance(item.decision, Dead):
            names = {"tenant": item.tenant, "job_id": item.job_id, "run_id": item.id}
            telemetry.emit("dead.letter", **names, reason=item.decision.reason)
    return batch.report().recorded


def _opened(row: Row) -> OpenRun:
    return OpenRun(id=row["id"], token=row["token"], node=row["node"])


def _lost(row: Row) -> Item:
    """What the lost node would have had to say: nothing is known of the attempt but that it has no end. Of a job that
    was changed since the claim it is not even known by which policy it was sent: its runs have been recalled. Only
    whether that was at most once, which the row keeps."""
    attempts = decode_attempts(row["attempts"])
    spec = None if row["spec"] is None else decode_spec(row["spec"], row["requires"], row["level"])
    policy = None if spec is None else spec.policy
    claimed_by = policy if row["orders"] != "recall" else None
    at_most_once, begun = bool(row["at_most_once"]), row["begun_at"] is not None
    if claimed_by is not None:  # a node of the release before leaves in the row what it was
        at_most_once = claimed_by.delivery == "at_most_once"
    again = may_have_begun(row["tries"], row["losses"], attempts)
    known = Lost(
        due_at=row["due_at"],
        tries=row["tries"],
        losses=row["losses"],
        at_most_once=at_most_once,
        begun=begun,
        recorded_first=at_most_once or (claimed_by is not None and recorded_first(claimed_by, again=again)),
        callback_ms=policy.completion_timeout if policy is not None and policy.completion == "callback" else None,
    )
    unknown = at_most_once and begun
    error = "the node was lost after the run was sent" if unknown else "the node was lost"
    return Item(
        id=row["id"],
        token=row["token"],
        node=row["node"],
        tenant=row["tenant"],
        job_id=row["job_id"],
        version=-1 if row["version"] is None else row["version"],
        slot=row["slot"],
        kind=row["kind"],
        recurring=bool(row["recurring"]),
        attempts=attempts,
        outcome=Outcome(kind="unknown" if unknown else "lost", error=error),
        decision=on_lost(known, row["now"]),
        started_at=row["begun_at"],
        finished_at=row["now"],
        lateness_ms=None,
        duration_ms=None,
        log=None,
        chained=spec if spec is not None and spec.chained else None,
        target=None if spec is None else spec.target,
        job=spec,
    )


def _view(row: Row) -> NodeView:
    state = "lost" if row["lost_at"] is not None else "draining" if row["draining"] else "alive"
    return NodeView(
        id=row["id"],
        name=row["name"],
        host=row["host"],
        pid=row["pid"],
        version=row["version"],
        roles=_LIST.decode(row["roles"]),
        offers=_LIST.decode(row["offers"]),
        started_at=format_instant(row["started_at"]),
        beat_at=format_instant(row["beat_at"]),
        state=state,
        leader=bool(row["leader"]) and state != "lost",
        held=row["held"],
        running=row["running"],
        capacity=row["capacity"],
        lateness_ms=row["lateness_ms"],
        labels=[] if row["labels"] is None else _LIST.decode(row["labels"]),
        clock_skew_ms=None if state == "lost" else row["clock_skew_ms"],
    )
