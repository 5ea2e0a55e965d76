"""A node while the whole installation is paused."""

from __future__ import annotations

import pytest

from onthedot.model.duration import Duration
from onthedot.model.schedule import Schedule
from tests.engine.cluster import Cluster
from tests.engine.making import spec

EVERY_SECOND = Schedule(cron="* * * * * *")


@pytest.fixture
async def cluster(fake_clock):
    cluster = await Cluster.open(fake_clock)
    yield cluster
    await cluster.close()


async def test_nothing_starts_later_than_a_second_after_it_also_on_new_nodes(cluster, fake_clock):
    node = await cluster.node()
    job = await cluster.create(spec(schedule=EVERY_SECOND))
    once = await cluster.create(spec(schedule=Schedule(in_=Duration(7500))))
    await fake_clock.advance(5.2)
    before = len(node.sender.calls)
    assert before >= 4
    await cluster.store.freeze(1, "maintenance")
    await fake_clock.advance(1.0)
    last = max(node.sender.sent_at)
    new = await cluster.node()
    await fake_clock.advance(10)
    assert max(node.sender.sent_at) == last
    assert new.sender.calls == []

    run = await cluster.store.run_job(1, job.id)
    await fake_clock.advance(2)
    assert (await cluster.store.get_run(1, run.id)).status == "DONE", "what is asked for by hand runs"

    thawed = await cluster.store.now()
    await cluster.store.unfreeze(1)
    await fake_clock.advance(4)
    sent = [at for at in (*node.sender.sent_at, *new.sender.sent_at) if at >= thawed]
    assert len(sent) >= 4
    assert (await cluster.run(once.id)).status == "DONE", "a one-off is made up for"
    runs = await cluster.runs(job.id)
    ranges = [each for each in runs if each.status == "SKIPPED"]
    assert {each.reason for each in ranges} == {"paused"}
    fired = [each for each in runs if each.status in ("DONE", "EXECUTING") and each.kind == "scheduled"]
    decided = len(fired) + sum(each.slots or 1 for each in ranges)
    seconds = {each.scheduled_for for each in fired}
    assert len(seconds) == len(fired)
    elapsed = (await cluster.store.now() - cluster.start) // 1000
    assert elapsed - 1 <= decided <= elapsed + 1, "every slot was fired or recorded as paused"
