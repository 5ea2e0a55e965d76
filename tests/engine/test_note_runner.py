"""A receiver that is gone: its job is paused at once, by whichever node is there."""

from __future__ import annotations

import msgspec
import pytest

from onthedot.model.duration import Duration
from onthedot.model.run import Outcome
from onthedot.model.schedule import Schedule
from onthedot.telemetry import Event, subscribe
from tests.engine.cluster import Cluster
from tests.engine.making import spec

GONE = Outcome(kind="error", error="the receiver returned 410 Gone", parks="the receiver returned 410 Gone")
EVERY_SECOND = Schedule(every=Duration(1000))


@pytest.fixture
async def cluster(fake_clock):
    cluster = await Cluster.open(fake_clock)
    yield cluster
    await cluster.close()


@pytest.fixture
def events():
    seen: list[Event] = []
    unsubscribe = subscribe(seen.append)
    yield seen
    unsubscribe()


async def test_the_node_that_heard_it_parks_the_job_right_away(cluster, fake_clock, events):
    """It does not wait for its next beat, which is half a second later."""
    node = await cluster.node()
    node.sender.outcomes = [GONE] * 9
    job = await cluster.create(spec(schedule=Schedule(every=Duration(1500))))
    await fake_clock.advance(1.55)
    parked = await cluster.store.get_job(1, job.id)
    assert parked.state == "paused"
    assert parked.pause.note == f"system: the receiver returned 410 Gone (run {job.id}-{cluster.start + 1500})"
    assert [event.name for event in events if event.name == "job.parked"] == ["job.parked"]
    await fake_clock.advance(10)
    assert len(node.sender.sent) == 1


async def test_what_it_held_ahead_is_given_back(cluster, fake_clock):
    """At its first run it holds the second already: nothing starts that is due a second later."""
    node = await cluster.node()
    node.sender.outcomes = [GONE] * 9
    await cluster.create(spec(schedule=EVERY_SECOND))
    await fake_clock.advance(5)
    assert node.sender.sent_at == [cluster.start + 1000]


async def test_if_it_dies_before_that_another_does_it_within_a_second(cluster, fake_clock):
    first = await cluster.node()
    first.sender.outcomes = [GONE] * 9
    job = await cluster.create(spec(schedule=EVERY_SECOND))
    first.way.lose.add("finish")
    await cluster.until(lambda: "finish" in first.way.asked)
    first.kill()
    second = await cluster.node()
    second.sender.outcomes = [GONE] * 9
    await fake_clock.advance(1.1)
    assert (await cluster.store.get_job(1, job.id)).state == "paused"
    assert (await cluster.store.get_job(1, job.id)).version == 2


async def test_while_the_store_is_away_it_is_not_forgotten(cluster, fake_clock):
    node = await cluster.node()
    node.sender.outcomes = [GONE] * 9
    node.way.lose.add("carry_out_notes")
    job = await cluster.create(spec(schedule=EVERY_SECOND))
    await fake_clock.advance(3)
    found = await cluster.store.get_job(1, job.id)
    assert (found.state, found.version) == ("paused", 2)


async def test_what_follows_a_run_starts_right_after_it(cluster, fake_clock):
    """It does not wait for a beat, nor for a poll."""
    node = await cluster.node()
    follower = await cluster.create(spec(key="b", schedule=Schedule(in_=Duration(86_400_000))))
    await cluster.create(msgspec.structs.replace(spec(schedule=Schedule(every=Duration(1500))), on_finish=["b"]))
    await fake_clock.advance(1.6)
    first, second = node.sender.sent
    assert first.startswith(f"{follower.id + 1}-")
    assert second.startswith(f"{follower.id}-")
    assert (await cluster.store.get_run(1, first)).followers == [second]
