"""The machine's clock is an hour ahead for six seconds: a node on the real store finds out by itself and goes on."""

from __future__ import annotations

import pytest

from onthedot import telemetry
from onthedot.model.duration import Duration
from onthedot.model.schedule import Schedule
from onthedot.store import RunFilter
from tests.engine.cluster import Cluster
from tests.engine.making import FAILED, FUNCTION, HOOK, spec

HOUR = 3_600_000
EVERY_SECOND = Schedule(cron="* * * * * *")


@pytest.fixture
async def cluster(fake_clock):
    cluster = await Cluster.open(fake_clock)
    yield cluster
    await cluster.close()


@pytest.fixture
def events():
    said: list[telemetry.Event] = []
    stop = telemetry.subscribe(said.append)
    yield said
    stop()


def slots_sent(*members) -> list[int]:
    return [int(call.run_id.partition("-")[2]) for member in members for call in member.sender.calls]


async def six_seconds_ahead(fake_clock) -> None:
    await fake_clock.advance(5)
    fake_clock.step_wall(HOUR)
    await fake_clock.advance(6)
    fake_clock.step_wall(-HOUR)


async def test_it_fires_again_within_seconds(cluster, fake_clock, events):
    node = await cluster.node()
    await cluster.create(spec(schedule=EVERY_SECOND))
    await six_seconds_ahead(fake_clock)
    back = fake_clock.now_ms()
    sent = len(node.sender.calls)
    took = await cluster.until(lambda: len(node.sender.calls) > sent, most=10)
    assert took <= 7
    await fake_clock.advance(30)
    slots = slots_sent(node)
    assert len(slots) == len(set(slots)), "a slot was fired twice"
    recent = [slot for slot in slots if back + 7000 <= slot < back + 30_000]
    assert recent == list(range(recent[0], recent[-1] + 1, 1000))
    assert len(recent) >= 22
    assert [event.fields["by_ms"] > 0 for event in events if event.name == "clock.set"] == [True, False]
    assert [event.fields["n"] for event in events if event.name == "floor.repaired"] == [1]
    assert not [event for event in events if event.name in ("ledger.conflict", "job.quarantined", "job.silent")]
    assert cluster.store.clock_note is not None


async def test_and_passes_over_what_was_fired_then_when_it_comes_there(cluster, fake_clock, events):
    node = await cluster.node()
    await cluster.create(spec(schedule=Schedule(cron="*/10 * * * * *")))
    await six_seconds_ahead(fake_clock)
    back = fake_clock.now_ms()
    await fake_clock.advance(HOUR / 1000 + 30)
    slots = slots_sent(node)
    assert len(slots) == len(set(slots)), "a slot was fired twice"
    first = back + 20_000 - back % 10_000
    assert set(range(first, back + HOUR + 20_000, 10_000)) <= set(slots), "a slot was not fired"
    assert not [event for event in events if event.name == "ledger.conflict"]


async def test_a_restart_finds_it_too(cluster, fake_clock, events):
    first = await cluster.node()
    await cluster.create(spec(schedule=EVERY_SECOND))
    await fake_clock.advance(5)
    fake_clock.step_wall(HOUR)
    await fake_clock.advance(6)
    await cluster.finish(first.node.stop())
    fake_clock.step_wall(-HOUR)
    second = await cluster.node()
    await fake_clock.advance(10)
    slots = slots_sent(first, second)
    assert len(slots_sent(second)) >= 3
    assert len(slots) == len(set(slots))
    assert [event.fields["n"] for event in events if event.name == "floor.repaired"] == [1]


async def test_one_of_several_nodes_does_it(cluster, fake_clock, events):
    members = [await cluster.node() for _ in range(3)]
    for _ in range(5):
        await cluster.create(spec(schedule=EVERY_SECOND))
    await cluster.create(spec(schedule=Schedule(in_=Duration(HOUR // 2))))
    await six_seconds_ahead(fake_clock)
    await fake_clock.advance(20)
    slots = [call.run_id for member in members for call in member.sender.calls]
    assert len(slots) == len(set(slots))
    assert sum(event.fields["n"] for event in events if event.name == "floor.repaired") == 5
    now = fake_clock.now_ms()
    assert sum(now - 6000 < int(name.partition("-")[2]) <= now for name in slots) >= 25


class TestSetBackBeforeTheSend:
    """Recorded as begun, and before it is sent the clock goes back by 20 s: its time has not come after all."""

    @pytest.fixture
    async def node(self, cluster, fake_clock):
        node = await cluster.node()
        begin = node.way.begin

        async def slow_begin(*args):
            answer = await begin(*args)
            fake_clock.step_wall(-20_000)
            node.way.begin = begin
            await fake_clock.sleep(0.6)
            return answer

        node.way.begin = slow_begin
        return node

    @pytest.fixture(params=[{"delivery": "at_most_once"}, {"expires_in": Duration(5000)}])
    async def job(self, request, cluster, fake_clock, node):
        job = await cluster.create(spec(schedule=Schedule(in_=Duration(1000)), **request.param))
        await fake_clock.advance(5)
        assert "begin" in node.way.asked
        return job

    async def test_a_delete_is_obeyed(self, cluster, fake_clock, node, job):
        await cluster.store.delete_job(1, job.id)
        await fake_clock.advance(30)
        assert node.sender.calls == []

    async def test_it_is_sent_once_when_its_time_has_come(self, cluster, fake_clock, node, job):
        assert node.node.load.running == 0, "its slot is free meanwhile"
        await fake_clock.advance(30)
        assert len(node.sender.calls) == 1
        run = await cluster.run(job.id)
        assert (run.status, run.tries, run.losses) == ("DONE", 1, 0)
        assert run.lateness_ms == 0


@pytest.mark.parametrize("target", [HOOK, FUNCTION])
async def test_a_retry_of_what_was_fired_then_comes_at_its_time_and_nobody_holds_it(cluster, fake_clock, target):
    node = await cluster.node()
    job = await cluster.create(spec(target, schedule=Schedule(in_=Duration(60_000))))
    await cluster.create(spec(target, schedule=EVERY_SECOND))
    fake_clock.step_wall(HOUR)
    node.sender.outcomes = [FAILED, FAILED]
    await cluster.until(lambda: len(node.sender.calls) >= 2, most=10)
    fake_clock.step_wall(-HOUR)
    await fake_clock.advance(50)
    (run,) = (await cluster.store.list_runs(1, RunFilter(job_id=job.id, status="PENDING"))).items
    assert (run.tries, run.attempt, run.node) == (1, 1, None)
    await fake_clock.advance(15)
    run = await cluster.run(job.id)
    assert (run.status, run.tries, run.attempt) == ("DONE", 2, 2)
