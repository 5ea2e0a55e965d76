"""The load by which nodes are added and removed."""

from __future__ import annotations

import pytest

from onthedot.model.node import NodeView, SlotUse
from onthedot.service.load import load_of
from onthedot.store import BacklogCount


def node(name: str, *offers: str, labels: tuple[str, ...] = (), **more: object) -> NodeView:
    fields = {"roles": ["executor"], "state": "alive", "running": 0, "capacity": 10, **more}
    return NodeView(
        id=name,
        name=name,
        host="h",
        pid=1,
        version="1",
        offers=list(offers or ("webhook",)),
        started_at="",
        beat_at="",
        leader=False,
        held=0,
        lateness_ms=None,
        labels=list(labels),
        **fields,  # type: ignore[arg-type]
    )


def due(waiting: int = 0, unoffered: int = 0, **claimable: int) -> BacklogCount:
    named = {requires.replace("_", ":"): count for requires, count in claimable.items()}
    total = sum(named.values()) + waiting + unoffered
    return BacklogCount(due=total, running=0, oldest_ms=None, unoffered={}, waiting=waiting, claimable=named)


WEBHOOKS = {"webhook": SlotUse(4, 10)}


def test_what_it_runs_and_its_share_of_what_is_due_by_its_slots():
    assert load_of("a", WEBHOOKS, [node("a")], due()) == pytest.approx(0.4)
    assert load_of("a", WEBHOOKS, [node("a")], due(webhook=6)) == pytest.approx(1.0)
    assert load_of("a", WEBHOOKS, [node("a"), node("b")], due(webhook=12)) == pytest.approx(1.0)


def test_the_sum_over_the_executors_is_how_many_the_work_would_fill():
    nodes = [node("a"), node("b"), node("c")]
    assert sum(load_of(each.id, WEBHOOKS, nodes, due(webhook=28)) for each in nodes) == pytest.approx(4.0)


def test_the_fullest_kind_counts():
    slots = {"webhook": SlotUse(0, 1000), "function": SlotUse(2, 2)}
    nodes = [node("a", "webhook", "function:reports")]
    assert load_of("a", slots, nodes, due(webhook=10, function_reports=4)) == pytest.approx(3.0)


def test_only_those_count_that_can_take_it():
    nodes = [
        node("a", labels=("gpu",)),
        node("b"),
        node("c", labels=("gpu",), state="draining"),
        node("d", labels=("gpu",), state="lost"),
        node("e", roles=["api"]),
    ]
    work = BacklogCount(due=12, running=0, oldest_ms=None, unoffered={}, claimable={"webhook+gpu": 12})
    idle = {"webhook": SlotUse(0, 10)}
    assert load_of("a", idle, nodes, work) == pytest.approx(1.2)
    assert load_of("b", idle, nodes, work) == 0
    assert load_of("c", idle, nodes, work) == 0, "it claims no more"
    assert load_of(None, idle, nodes, work) == 0, "not registered yet"


def test_what_more_nodes_would_not_help_does_not_count():
    assert load_of("a", WEBHOOKS, [node("a")], due(waiting=500, unoffered=500)) == pytest.approx(0.4)


def test_a_node_that_executes_nothing_tells_of_all_who_do():
    nodes = [node("a", running=5), node("b", running=5), node("e", roles=["api"], capacity=0)]
    assert load_of("e", {}, nodes, due(webhook=10)) == pytest.approx(1.0)
    assert load_of("e", {}, nodes[2:], due(unoffered=7, waiting=2)) == pytest.approx(7.0), "so that one is started"
    assert load_of("e", {}, [], due()) == 0


def test_slots_that_are_gone_are_not_divided_by():
    assert load_of("a", {"webhook": SlotUse(3, 0)}, [node("a")], due()) == 3.0
