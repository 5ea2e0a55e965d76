"""Nodes with labels: who takes what, and that what waited for one is taken when it joins."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from onthedot.engine.claiming.node_offers import NodeOffers
from onthedot.engine.look_times import LookTimes
from onthedot.engine.running.destinations import Destinations
from onthedot.engine.tuning import LABEL_SETS_KEPT, LABEL_SETS_OFFERED
from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.schedule import Schedule
from tests.engine.cluster import Cluster
from tests.engine.making import FakeSender, claimed, spec
from tests.engine.test_destinations import Hosts

NEVER_POLLS = {"poll_interval": 3_600_000, "granularity": 3_600_000}


@pytest.fixture
async def cluster(fake_clock):
    cluster = await Cluster.open(fake_clock)
    yield cluster
    await cluster.close()


def labelled(*labels: str, **more: Any) -> JobSpec:
    return msgspec.structs.replace(spec(schedule=Schedule(in_=Duration(10)), **more), requires=list(labels))


async def test_it_waits_for_a_node_with_its_labels_and_is_taken_when_one_joins(cluster, fake_clock):
    plain = await cluster.node()
    european = await cluster.node(labels=("eu",))
    job = await cluster.create(labelled("gpu", "eu"))
    await fake_clock.advance(30)
    waiting = await cluster.run(job.id)
    assert (waiting.status, waiting.waiting, waiting.waiting_for) == ("PENDING", "label", "gpu")
    joined = await cluster.node(labels=("gpu", "eu", "fast"), **NEVER_POLLS)
    await fake_clock.advance(0.05)
    assert [len(node.sender.calls) for node in (plain, european, joined)] == [0, 0, 1]
    done = await cluster.run(job.id)
    assert (done.status, done.attempt, done.node) == ("DONE", 1, joined.id)
    await fake_clock.advance(30)
    assert len(joined.sender.calls) == 1


async def test_a_hint_is_enough_for_labels_that_were_never_seen(cluster, fake_clock):
    node = await cluster.node(labels=("gpu", "eu"), **NEVER_POLLS)
    await fake_clock.advance(5)
    for labels in ("gpu",), ("gpu", "eu"):
        await cluster.create(labelled(*labels))
        await fake_clock.advance(0.2)
    assert len(node.sender.calls) == 2


async def test_without_hints_they_are_found_within_a_second(cluster, fake_clock):
    node = await cluster.node(labels=("gpu",))
    await fake_clock.advance(5)
    cluster.store.notify = no_hint
    await cluster.create(labelled("gpu"))
    await fake_clock.advance(2.2)
    assert len(node.sender.calls) == 1


async def no_hint(topic: str) -> None:
    """Lost."""


async def test_a_node_with_labels_runs_what_asks_for_none(cluster, fake_clock):
    node = await cluster.node(labels=("gpu",))
    await cluster.create(spec(schedule=Schedule(in_=Duration(10))))
    await fake_clock.advance(0.1)
    assert len(node.sender.calls) == 1
    assert (await cluster.store.list_nodes())[0].labels == ["gpu"]


async def test_an_edit_of_its_labels_sets_it_free(cluster, fake_clock):
    node = await cluster.node()
    job = await cluster.create(labelled("gpu"))
    await fake_clock.advance(5)
    assert node.sender.calls == []
    await cluster.store.update_job(1, job.id, lambda old: msgspec.structs.replace(old, requires=[]))
    await fake_clock.advance(1.1)
    assert len(node.sender.calls) == 1


def offers_of(*labels: str) -> NodeOffers:
    return NodeOffers(FakeSender("webhook", "function:reports").targets, labels)


def test_it_offers_the_sets_that_occur_and_no_others():
    offers = offers_of("eu", "gpu")
    assert offers.capabilities() == ["webhook", "function:reports"]
    there = ["command:c+gpu", "function:reports", "function:reports+eu,gpu", "webhook+fast,gpu", "webhook+gpu"]
    assert offers.seen(there, 0.0)
    assert offers.capabilities() == ["webhook", "function:reports", "function:reports+eu,gpu", "webhook+gpu"]
    assert not offers.seen(["webhook+gpu@https://example.com"], LABEL_SETS_KEPT), "it is known"
    assert offers.seen(["webhook+eu@https://example.com"], LABEL_SETS_KEPT + 1)
    assert offers.capabilities()[2:] == ["webhook+eu", "webhook+gpu"], "nobody asks for the other any more"


def test_it_offers_so_many_sets_at_a_time():
    labels = [f"l{number}" for number in range(30)]
    offers = offers_of(*labels)
    pairs = [f"webhook+{one},{two}" for one in labels for two in labels if one < two]
    seen = set[str]()
    for start in range(0, len(pairs), LABEL_SETS_OFFERED):
        offers.seen(pairs[start : start + LABEL_SETS_OFFERED], 0.0)
        offered = offers.capabilities()[2:]
        assert len(offered) <= LABEL_SETS_OFFERED
        seen.update(offered)
    assert seen == set(pairs), "all of them in turn"


async def test_what_is_turned_away_keeps_its_labels(fake_clock):
    sender = FakeSender("webhook")
    Hosts(sender)
    destinations = Destinations(sender.targets, fake_clock, LookTimes(fake_clock))
    plain = claimed()
    gpu = msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, requires=["gpu"]))
    one, other = destinations.of(plain), destinations.of(gpu)
    assert one is not None
    assert other is not None
    assert (one.requires.partition("@")[0], other.requires.partition("@")[0]) == ("webhook", "webhook+gpu")
    assert destinations.of(gpu) is other
