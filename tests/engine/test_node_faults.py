"""Three nodes, random work, random faults, from a seed: at the end nothing is lost, doubled, early or forgotten.

A small forerunner of the simulation: the real engine and the real store on one fake clock. The same seed gives the same
history, event by event.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from onthedot.clock import FakeClock
from onthedot.model.duration import Duration
from onthedot.model.instant import parse_rfc3339
from onthedot.model.policy import Retry
from onthedot.model.run import Outcome, RunView
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget
from onthedot.store import RunFilter
from onthedot.targets import Call, Targets, from_coroutine
from onthedot.telemetry import Event, subscribe
from tests.engine.cluster import Cluster
from tests.engine.making import FAILED, HOOK, OK, spec

Sent = tuple[str, int, int]  # run, attempt, when


class World:
    """All nodes send to one receiver: this."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.targets = Targets([from_coroutine(self.send, spec=WebhookTarget, capabilities=lambda: ["webhook"])])
        self.cluster = cluster
        self.random = random.Random(seed)
        self.sent: list[Sent] = []
        self.one_off: list[int] = []
        self.at_most_once: list[int] = []
        self.recurring: list[int] = []
        self.events: list[Event] = []

    async def send(self, call: Call) -> Outcome:
        """A receiver that notes before it answers and never deduplicates."""
        self.sent.append((call.run_id, call.attempt, self.cluster.clock.now_ms()))
        await self.cluster.clock.sleep(self.random.choice((0.0, 0.005, 0.3, 2.0)))
        return FAILED if self.random.random() < 0.1 else OK

    async def start_node(self) -> None:
        await self.cluster.node(sender=self, concurrency=20, next_job_count=20)

    async def make_work(self) -> None:
        retry = Retry(attempts=1000, backoff=Duration(200), factor=1)
        for _ in range(self.random.randint(0, 4)):
            schedule = Schedule(in_=Duration(self.random.randint(1, 8000)))
            if self.random.random() < 0.25:
                job = await self.cluster.create(spec(HOOK, schedule=schedule, delivery="at_most_once"))
                self.at_most_once.append(job.id)
            else:
                job = await self.cluster.create(spec(HOOK, schedule=schedule, retry=retry))
                self.one_off.append(job.id)
        if len(self.recurring) < 4:
            schedule = Schedule(every=Duration(self.random.choice((700, 1000, 2500))), count=10)
            overlap = self.random.choice(("allow", "allow", "skip", "queue", "replace"))
            job = await self.cluster.create(spec(HOOK, schedule=schedule, overlap=overlap, retry=retry))
            self.recurring.append(job.id)

    async def make_trouble(self) -> None:
        member = self.random.choice(self.cluster.members)
        match self.random.randint(0, 9):
            case 0 | 1:
                member.way.away = not member.way.away
            case 2 | 3:
                member.way.lose.add(
                    self.random.choice(
                        (
                            "claim_each",
                            "poll_orders",
                            "finish",
                            "begin",
                            "beat",
                            "give_back",
                            "held",
                            "register",
                            "leave",
                        )
                    )
                )
            case 4:
                member.way.freeze()
            case 5:
                member.way.thaw()
            case 6 if len(self.cluster.members) < 6:
                member.kill()
                await self.start_node()
            case 7 if len(self.cluster.members) < 6:
                member.node.request_stop()
                await self.start_node()

    def heal(self) -> None:
        for member in self.cluster.members:
            member.way.thaw()
            member.way.away = member.killed
            member.way.lose.clear()

    async def ledger(self) -> list[RunView]:
        found: list[RunView] = []
        cursor = None
        while True:
            page = await self.cluster.store.list_runs(1, RunFilter(limit=500, cursor=cursor))
            found += page.items
            cursor = page.next
            if cursor is None:
                return found


async def history(seed: int, seconds: int = 30) -> World:
    clock = FakeClock()
    cluster = await Cluster.open(clock)
    world = World(cluster, seed)
    unsubscribe = subscribe(world.events.append)
    try:
        for _ in range(3):
            await world.start_node()
        for second in range(seconds):
            if second < seconds - 10:
                await world.make_work()
            await world.make_trouble()
            await clock.advance(1.0)
        world.heal()
        await world.start_node()
        await clock.advance(40)
        await check(world)
    finally:
        unsubscribe()
        await cluster.close()
        await asyncio.gather(*(m.node.wait() for m in cluster.members if not m.killed), return_exceptions=True)
    return world


async def check(world: World) -> None:
    ledger = await world.ledger()
    by_job: dict[int, list[RunView]] = {}
    for run in ledger:
        by_job.setdefault(run.job_id, []).append(run)
    sends = Counter(run_id for run_id, _, _ in world.sent)

    assert all(run.status not in ("PENDING", "EXECUTING") for run in ledger), "everything has ended"
    for job_id in world.one_off:
        (run,) = by_job[job_id]
        assert run.status in ("DONE", "FAILED")
        assert run.status == "DONE" or run.reason == "poison"
        assert sends[run.id] >= 1
    for job_id in world.at_most_once:
        (run,) = by_job[job_id]
        assert sends[run.id] <= 1
        assert run.status != "DONE" or sends[run.id] == 1
    for job_id in world.recurring:
        assert sum(run.slots or 1 for run in by_job[job_id]) == 10, "each slot is covered by exactly one row"

    due = {run.id: parse_rfc3339(run.due_at) or 0 for run in ledger}
    assert all(at >= due[run_id] for run_id, _, at in world.sent), "never early"
    assert max(Counter((run_id, attempt) for run_id, attempt, _ in world.sent).values()) == 1, "one send per claim"
    assert not [event for event in world.events if event.name in ("ledger.conflict", "job.quarantined", "job.silent")]
    stats = await world.cluster.store.stats(1)
    assert (stats.pending, stats.running) == (0, 0)


@pytest.mark.parametrize("seed", range(6))
async def test_nothing_lost_doubled_or_early_whatever_happens(seed):
    world = await history(seed)
    assert len(world.sent) > 30


async def test_the_same_seed_is_the_same_history():
    one, two = await history(99, seconds=15), await history(99, seconds=15)
    assert one.sent == two.sent
    assert [(event.name, event.fields) for event in one.events] == [(event.name, event.fields) for event in two.events]
