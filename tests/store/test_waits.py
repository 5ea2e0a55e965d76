"""What a run says it waits for, by its row and by what the live nodes offer."""

from __future__ import annotations

from typing import Any

import pytest

from onthedot.model.run import RunView
from onthedot.model.targets import CommandTarget, QueueTarget
from onthedot.model.work import Work
from onthedot.store import StartedWork, Store, TurnedAway
from onthedot.store.runs.views import TAKEN_WITHIN, asks_for_nodes
from tests.store.conftest import START, Times
from tests.store.hands import Hands, at, node_info, spec

SECOND, HOUR = 1000, 3_600_000
PLACE = "webhook@here"
Said = tuple[str | None, str | None, str | None]


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


def said(run: RunView) -> Said:
    return run.waiting, run.waiting_for, run.waiting_since


async def everywhere(hands: Hands) -> Said:
    """The same in lists and alone."""
    (listed,) = await hands.runs()
    (of_job,) = await hands.runs(job_id=listed.job_id, status=listed.status)
    alone = await hands.store.get_run(1, listed.id)
    present = await hands.store.run_at_present(1, listed.job_id)
    assert present is not None
    assert said(listed) == said(of_job) == said(alone) == said(present)
    return said(listed)


class TestCapability:
    async def test_no_live_node_offers_it(self, hands: Hands, times: Times):
        await hands.store.register(node_info("n1", offers=["webhook", "command:other"]))
        await hands.create(spec(target=CommandTarget(command="backup")))
        assert [run.waiting for run in await hands.runs(status="PENDING")] == [None], "it is not due yet"
        await times.advance(3 * SECOND)
        (run,) = await hands.runs()
        assert await everywhere(hands) == ("capability", "command:backup", run.due_at)
        await hands.store.register(node_info("n2", offers=["command:backup"]))
        assert await everywhere(hands) == (None, None, None)
        await hands.store.declare_lost("n2", 0)
        assert (await everywhere(hands))[0] == "capability"

    async def test_who_waits_for_its_destination_needs_a_node_first(self, hands: Hands, times: Times):
        await hands.store.register(node_info("n1"))
        await hands.create(spec(at(START + SECOND)))
        run = await hands.one()
        away = TurnedAway(run_id=run.id, token=run.token, version=run.version, requires="webhook@http://a.example")
        await hands.store.wait_for_destinations(hands.node, [away])
        await times.advance(3 * SECOND)
        assert (await everywhere(hands))[:2] == ("destination", "http://a.example")
        await hands.store.declare_lost("n1", 0)
        assert (await everywhere(hands))[:2] == ("capability", "webhook")

    @pytest.mark.parametrize(
        ("row", "asks"),
        [
            ({"ready_at": START}, False),
            ({"ready_at": START - TAKEN_WITHIN}, True),
            ({"ready_at": START, "requires": "webhook+gpu"}, True),
            ({"ready_at": START - SECOND, "parked": "paused"}, False),
            ({"ready_at": START - SECOND, "state": "running"}, False),
            ({"ready_at": START, "state": "running", "open": "adopt"}, True),
            ({"ready_at": START, "state": "running", "open": "callback"}, False),
        ],
        ids=str,
    )
    def test_nodes_are_not_read_for_what_has_just_come_due(self, row: dict[str, Any], asks: bool):
        plain = {"state": "pending", "open": None, "parked": None, "requires": "webhook", "due_at": 0}
        assert asks_for_nodes({**plain, **row}, START) == asks


class TestPlace:
    async def test_no_live_node_reaches_where_its_work_goes_on(self, hands: Hands, times: Times):
        await hands.store.register(node_info("n1", offers=["webhook", PLACE]))
        await hands.create(spec(at(START + SECOND)))
        await times.advance(SECOND)
        run = await hands.one()
        work = Work(target={"type": "webhook"}, try_number=1, place="here", started_at=times.now)
        started = StartedWork(run_id=run.id, token=run.token, work=work, capability=PLACE, within_ms=HOUR)
        await hands.store.begin_work(hands.node, [started])
        assert await everywhere(hands) == (None, None, None), "its node has it"
        await hands.store.detach(hands.node, [(run.id, run.token, HOUR)])
        assert await everywhere(hands) == (None, None, None), "a node reaches it"
        await hands.store.declare_lost("n1", 0)
        assert await everywhere(hands) == ("place", PLACE, None)
        (view,) = await hands.runs(status="EXECUTING")
        assert (view.node, view.started_at) == (None, view.due_at)
        await hands.store.register(node_info("n2", offers=[PLACE]))
        assert await everywhere(hands) == (None, None, None)


class TestBroker:
    async def test_a_message_waits_for_its_broker(self, hands: Hands, times: Times):
        await hands.store.register(node_info("n1", offers=["queue:orders"]))
        await hands.create(spec(at(START + SECOND), target=QueueTarget(broker="orders", topic="created")))
        (run,) = (await hands.claim(offers=["queue:orders"])).runs
        requires = "queue:orders@orders"
        away = TurnedAway(run_id=run.id, token=run.token, version=run.version, requires=requires)
        await hands.store.wait_for_destinations(hands.node, [away])
        await times.advance(3 * SECOND)
        since = "2023-11-14T22:13:20.000Z"
        assert await everywhere(hands) == ("broker", "orders", since)

    async def test_a_share_is_none(self, hands: Hands, times: Times):
        await hands.store.register(node_info("n1", offers=["queue:orders"]))
        await hands.create(spec(at(START + SECOND), target=QueueTarget(broker="orders", topic="created")))
        (run,) = (await hands.claim(offers=["queue:orders"])).runs
        requires = f"queue:orders@job:{run.job_id}"
        away = TurnedAway(run_id=run.id, token=run.token, version=run.version, requires=requires, waiting="slot")
        await hands.store.wait_for_destinations(hands.node, [away])
        await times.advance(3 * SECOND)
        assert (await everywhere(hands))[:2] == ("slot", f"job:{run.job_id}")
