"""Hands for tests of runs: jobs in a line, a node that claims and finishes, and the invariants of the store."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from typing import Any

from onthedot.model.duration import Duration
from onthedot.model.instant import NEVER, format_instant
from onthedot.model.job import JobSpec, JobView
from onthedot.model.level import LEVEL
from onthedot.model.node import NodeInfo
from onthedot.model.policy import Policy
from onthedot.model.run import ClaimedRun, Outcome, RunView
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget
from onthedot.plan import Decision, on_outcome
from onthedot.store import Claim, Finished, FinishReport, NewJob, RunFilter, Store
from onthedot.store.driver import Row, Transaction
from onthedot.store.runs.look import Seen

OK = Outcome(kind="ok")
FAILED = Outcome(kind="error", retryable=True, error="boom")
REFUSED = Outcome(kind="refused", error="may not")


def node_info(node: str, **more: Any) -> NodeInfo:
    facts = {"name": node, "host": "h", "pid": 1, "version": "0", "level": LEVEL, "roles": ["executor"]}
    return NodeInfo(**{"id": node, "offers": ["webhook"], "capacity": 10, **facts, **more})


def spec(schedule: Schedule | None = None, *, target: Any = None, key: str | None = None, **policy: Any) -> JobSpec:
    return JobSpec(
        key=key,
        schedule=schedule or Schedule(in_=Duration(1000)),
        target=target or WebhookTarget(url="http://example.com/"),
        policy=Policy(**policy),
    )


def every(ms: int, **more: Any) -> Schedule:
    return Schedule(every=Duration(ms), **more)


def at(ms: int) -> Schedule:
    return Schedule(at=format_instant(ms))


class Hands:
    """What a node and a user do, without an engine and without a service."""

    def __init__(self, store: Store, node: str = "n1") -> None:
        self.store = store
        self.node = node
        self.random = random.Random(1)

    async def create(self, *specs: JobSpec) -> list[JobView]:
        made = await self.store.create_jobs([NewJob(tenant=1, spec=each) for each in specs])
        views = [view for view in made if isinstance(view, JobView)]
        assert len(views) == len(specs), made
        return views

    async def job(self, schedule: Schedule | None = None, **more: Any) -> int:
        (view,) = await self.create(spec(schedule, **more))
        return view.id

    async def claim(
        self,
        limit: int = 100,
        *,
        offers: Sequence[str] = ("webhook",),
        level: int = LEVEL,
        late: int | None = None,
        within_ms: int | None = None,
        seen: Seen | None = None,
    ) -> Claim:
        return await self.store.claim(
            self.node,
            offers=offers,
            level=level,
            limit=limit,
            late=late,
            lookahead_ms=2000,
            within_ms=within_ms,
            seen=seen,
        )

    async def one(self) -> ClaimedRun:
        (run,) = (await self.claim()).runs
        return run

    def ended(self, run: ClaimedRun, outcome: Outcome = OK, *, now: int, **more: Any) -> Finished:
        decision: Decision = on_outcome(run, outcome, now, self.random)
        facts = {"started_at": now, "finished_at": now, "lateness_ms": 1, "duration_ms": 4}
        return Finished(run=run, outcome=outcome, **{"decision": decision, **facts, **more})

    async def finish(self, *runs: ClaimedRun, outcome: Outcome = OK, **more: Any) -> FinishReport:
        now = await self.store.now()
        return await self.store.finish(self.node, [self.ended(run, outcome, now=now, **more) for run in runs])

    async def runs(self, **wanted: Any) -> list[RunView]:
        return (await self.store.list_runs(1, RunFilter(**wanted))).items

    async def sql(self, text: str) -> Sequence[Row]:
        async def body(tx: Transaction) -> Sequence[Row]:
            return await tx.sql(text)

        return await self.store.driver.transact_slow(body)

    async def live(self, job_id: int | None = None) -> list[Row]:
        where = "" if job_id is None else f" WHERE job_id = {job_id}"
        return list(await self.sql(f"SELECT * FROM runs{where} ORDER BY slot, id"))

    async def ledger(self, job_id: int | None = None) -> list[Row]:
        where = "" if job_id is None else f" WHERE job_id = {job_id}"
        return list(await self.sql(f"SELECT * FROM history{where} ORDER BY slot, id"))

    async def check(self) -> None:
        """What must hold after every transaction, whoever else was at work."""
        notes = await self.sql("SELECT * FROM endings")
        check_invariants(await self.sql("SELECT * FROM jobs"), await self.live(), await self.ledger(), notes)


def check_invariants(jobs_now: Sequence[Row], live: Sequence[Row], ledger: Sequence[Row], notes: Sequence[Row]) -> None:
    jobs = {row["id"]: row for row in jobs_now}
    lists = [row["job_ids"] for row in notes]
    noted = {job for ids in lists for job in (json.loads(ids) if isinstance(ids, str) else ids)}
    cursors = [row["job_id"] for row in live if row["cursor"]]
    assert len(cursors) == len(set(cursors)), "two cursors"
    for job_id, job in jobs.items():
        if job["state"] == "active" and not job["one_off"]:
            assert job_id in cursors, f"active job {job_id} has no cursor"
        if job["state"] == "active" and job["one_off"]:
            there = any(row["job_id"] == job_id for row in live)
            assert there or job_id in noted, f"active one-off {job_id} has no run, and nobody will end it"
    both = {row["id"] for row in live} & {row["id"] for row in ledger}
    assert not both, f"in runs and in the ledger: {both}"
    for row in live:
        assert row["job_id"] in jobs or row["state"] == "running", f"run {row['id']} of a job that is gone"
        paused = row["job_id"] in jobs and jobs[row["job_id"]]["state"] == "paused"
        if paused and row["state"] == "pending" and row["kind"] != "manual":
            assert row["ready_at"] == NEVER, f"paused job {row['job_id']} has a run to claim: {row['id']}"
        assert (row["node"] is None) == (row["state"] == "pending" or row["open"] is not None)
        assert row["open"] is None or (row["state"] == "running" and row["work"] is not None), "open without work"
        assert row["state"] == "running" or row["work"] is None, f"run {row['id']} waits, and its work goes on"
        assert row["group_key"] is None or row["lane"] is not None, f"run {row['id']}: its end is not told to its group"
        assert row["parked"] != "group" or row["ready_at"] == NEVER, f"run {row['id']} waits and can be claimed"
    _check_slots(live, ledger)
    holders = [row["lane"] for row in live if row["state"] == "running" and (row["lane"] or 0) > 0]
    assert len(holders) == len(set(holders)), "a lane is held twice"


def _check_slots(live: Sequence[Row], ledger: Sequence[Row]) -> None:
    """P1: no slot is covered twice, by a run of its own or by a range."""
    covered: dict[int, list[tuple[int, int]]] = {}
    for row in live:
        if row["kind"] == "scheduled":
            covered.setdefault(row["job_id"], []).append((row["slot"], row["slot"]))
    for row in ledger:
        if row["kind"] == "scheduled":
            covered.setdefault(row["job_id"], []).append((row["slot"], row["until_slot"] or row["slot"]))
    for job_id, spans in covered.items():
        spans.sort()
        for (_, end), (start, _) in itertools.pairwise(spans):
            assert end < start, f"job {job_id}: slot {start} is covered twice"
