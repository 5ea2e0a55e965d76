"""Several nodes on one store: nothing lost, nothing doubled, whoever dies, freezes or is cut off."""

from __future__ import annotations

import asyncio

import pytest

from onthedot.errors import StoreUnavailable
from onthedot.model.duration import Duration
from onthedot.model.schedule import Schedule
from onthedot.telemetry import Event, subscribe
from tests.engine.cluster import Cluster
from tests.engine.making import FUNCTION, spec


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


def due_in(ms: int) -> Schedule:
    return Schedule(in_=Duration(ms))


def sends(cluster: Cluster) -> list[str]:
    return [run_id for member in cluster.members for run_id in member.sender.sent]


async def test_three_nodes_fire_each_slot_once(cluster, fake_clock):
    for _ in range(3):
        await cluster.node()
    for _ in range(30):
        await cluster.create(spec(schedule=Schedule(every=Duration(1000))))
    await fake_clock.advance(10.5)
    sent = sends(cluster)
    assert len(sent) == len(set(sent)) == 300
    assert all(member.node.ready for member in cluster.members)
    late = [at % 1000 for member in cluster.members for at in member.sender.sent_at]
    assert max(late) == 0


async def test_nodes_show_themselves(cluster, fake_clock):
    one, two = await cluster.node(name="same"), await cluster.node(name="same")
    await fake_clock.advance(7)
    nodes = await cluster.store.list_nodes()
    assert {node.id for node in nodes} == {one.id, two.id}
    assert [node.state for node in nodes] == ["alive", "alive"]
    assert [node.leader for node in nodes].count(True) == 1
    assert {node.capacity for node in nodes} == {1000 + 4 + 4}
    assert [node.clock_skew_ms for node in nodes] == [0, 0]


async def test_nodes_say_how_far_their_clocks_are_off(cluster, fake_clock):
    """The database of the tests shares the clock of the machine; so only what the node measures is set here."""
    one = await cluster.node()
    await fake_clock.advance(2)
    assert one.node.incarnation is not None
    one.node.incarnation.wiring.time.offset_us += 90_000
    assert one.node.load.clock_skew_ms == 90


async def test_a_killed_nodes_runs_are_taken_over_within_lease_and_a_second(cluster, fake_clock, events):
    victim = await cluster.node()
    victim.sender.hold = asyncio.Event()
    jobs = [await cluster.create(spec(FUNCTION, schedule=due_in(100))) for _ in range(3)]
    held = await cluster.create(spec(schedule=due_in(3000)))
    await fake_clock.advance(2.3)
    assert len(victim.sender.calls) == 3
    assert victim.node.load.held == 1
    heir = await cluster.node()
    await fake_clock.advance(0.5)
    victim.kill()
    assert await cluster.until(lambda: len(heir.sender.calls) == 4) <= 6.1
    assert "node.lost" in [event.name for event in events]
    for job in jobs:
        run = await cluster.run(job.id)
        assert (run.status, run.losses, run.node, run.attempt) == ("DONE", 1, heir.id, 2)
    assert (await cluster.run(held.id)).status == "DONE"


async def test_at_most_once_of_a_killed_node_is_unknown_not_sent_again(cluster, fake_clock):
    victim = await cluster.node()
    victim.sender.hold = asyncio.Event()
    begun = await cluster.create(spec(FUNCTION, schedule=due_in(100), delivery="at_most_once"))
    await fake_clock.advance(0.5)
    assert len(victim.sender.calls) == 1
    ahead = await cluster.create(spec(schedule=due_in(1900), delivery="at_most_once"))
    await fake_clock.advance(0.5)
    victim.kill()
    heir = await cluster.node()
    await fake_clock.advance(10)
    run = await cluster.run(begun.id)
    assert (run.status, run.reason) == ("FAILED", "unknown")
    assert [call.job_id for call in heir.sender.calls] == [ahead.id]


async def test_a_frozen_node_is_refused_and_starts_anew(cluster, fake_clock):
    job = await cluster.create(spec(FUNCTION, schedule=due_in(100)))
    frozen = await cluster.node()
    frozen.sender.hold = asyncio.Event()
    await fake_clock.advance(0.5)
    assert len(frozen.sender.calls) == 1
    first_id = frozen.id
    heir = await cluster.node()
    frozen.way.freeze()
    await fake_clock.advance(8)
    assert len(heir.sender.calls) == 1
    frozen.way.thaw()
    await fake_clock.advance(3)
    assert frozen.id != first_id
    assert (frozen.node.incarnations, frozen.node.ready) == (2, True)
    run = await cluster.run(job.id)
    assert (run.status, run.node, run.losses) == ("DONE", heir.id, 1)
    assert frozen.sender.cancelled == [run.id]
    states = {node.id: node.state for node in await cluster.store.list_nodes()}
    assert states == {first_id: "lost", heir.id: "alive", frozen.id: "alive"}


async def test_the_late_result_of_a_frozen_node_is_refused(cluster, fake_clock, events):
    job = await cluster.create(spec(FUNCTION, schedule=due_in(100)))
    frozen = await cluster.node()
    frozen.sender.hold = asyncio.Event()
    await fake_clock.advance(0.5)
    heir = await cluster.node()
    heir.sender.hold = asyncio.Event()
    frozen.way.freeze()
    await fake_clock.advance(8)
    frozen.sender.hold.set()  # done at last, but it is another node's by now
    await fake_clock.settle()
    frozen.way.thaw()
    await fake_clock.advance(3)
    assert [event.fields["run_id"] for event in events if event.name == "run.refused"] == frozen.sender.sent
    assert (await cluster.run(job.id)).status == "EXECUTING"
    heir.sender.hold.set()
    await fake_clock.advance(1)
    run = await cluster.run(job.id)
    assert (run.status, run.node, run.attempt) == ("DONE", heir.id, 2)


async def test_a_node_that_can_t_beat_starts_nothing_after_lease_minus_a_second(cluster, fake_clock):
    node = await cluster.node(lookahead=20_000)
    await cluster.create(spec(schedule=due_in(4500)))
    await cluster.create(spec(schedule=due_in(2500)))
    await fake_clock.advance(1.2)
    beats = node.way.asked.count("beat")
    assert beats >= 1
    node.way.away = True
    await fake_clock.advance(8)
    assert len(node.sender.calls) == 1
    assert not node.node.ready
    node.way.away = False
    await fake_clock.advance(3)
    assert len(node.sender.calls) == 2
    assert node.node.ready


async def test_after_an_outage_nobody_robs_anybody(cluster, fake_clock, events):
    nodes = [await cluster.node() for _ in range(3)]
    for node in nodes:
        node.sender.hold = asyncio.Event()
    for _ in range(9):
        await cluster.create(spec(FUNCTION, schedule=due_in(100)))
    await fake_clock.advance(1)
    for node in nodes:
        node.way.away = True
    await fake_clock.advance(30)
    assert not any(node.node.ready for node in nodes)
    for node in nodes:
        node.way.away = False
    await fake_clock.advance(4)
    for node in nodes:
        node.sender.hold.set()
    await fake_clock.advance(5)
    sent = sends(cluster)
    assert len(sent) == len(set(sent)) == 9
    assert [run.status for run in await cluster.runs()] == ["DONE"] * 9
    assert "node.lost" not in [event.name for event in events]
    assert [event.name for event in events].count("store.unavailable") == 3


async def test_results_wait_for_the_database(cluster, fake_clock):
    node = await cluster.node()
    job = await cluster.create(spec(schedule=due_in(1000)))
    await fake_clock.advance(0.5)
    node.way.away = True
    await fake_clock.advance(3)
    assert len(node.sender.calls) == 1  # from the heap, while the lease lasts
    node.way.away = False
    await fake_clock.advance(3)
    assert len(node.sender.calls) == 1
    assert (await cluster.run(job.id)).status == "DONE"


async def test_a_lost_answer_to_a_claim_orphans_nothing(cluster, fake_clock):
    node = await cluster.node()
    await fake_clock.advance(0.1)
    node.way.lose = {"claim_each"}
    job = await cluster.create(spec(schedule=due_in(50)))
    await fake_clock.advance(2.0)
    run = await cluster.run(job.id)
    assert (run.status, run.attempt, run.losses, run.tries) == ("DONE", 2, 0, 1)
    assert len(node.sender.calls) == 1


async def test_a_lost_answer_to_a_finish_writes_nothing_twice(cluster, fake_clock, events):
    node = await cluster.node()
    node.way.lose = {"finish"}
    job = await cluster.create(spec(schedule=due_in(50)))
    await fake_clock.advance(2.0)
    assert node.way.asked.count("finish") == 2
    assert (await cluster.run(job.id)).status == "DONE"
    assert not {"run.refused", "ledger.conflict"} & {event.name for event in events}


async def test_a_lost_answer_to_a_begin_is_asked_for_again(cluster, fake_clock):
    node = await cluster.node()
    node.way.lose = {"begin"}
    job = await cluster.create(spec(schedule=due_in(50), delivery="at_most_once"))
    await fake_clock.advance(2.0)
    assert len(node.sender.calls) == 1
    assert (await cluster.run(job.id)).status == "DONE"


@pytest.mark.parametrize("verb", ["delete_job", "pause_job"])
async def test_a_lost_answer_to_a_begin_and_then_a_verb_sends_nothing(cluster, fake_clock, verb):
    """Seen: acknowledged, and sent 32 s later, when the node reached the database again and asked once more."""
    node = await cluster.node(lease=60_000)
    await fake_clock.advance(0.1)
    node.way.lose = {"begin"}
    job = await cluster.create(spec(schedule=due_in(500), delivery="at_most_once"))
    await cluster.until(lambda: "begin" in node.way.asked)
    node.way.away = True
    await getattr(cluster.store, verb)(1, job.id)
    await fake_clock.advance(32)
    node.way.away = False
    await fake_clock.advance(5)
    assert node.way.asked.count("begin") > 1
    assert node.sender.calls == []
    runs = [run.status for run in await cluster.runs(job.id)]
    assert runs == (["CANCELLED"] if verb == "delete_job" else ["PENDING"])
    if verb == "pause_job":
        await cluster.store.resume_job(1, job.id)
        await cluster.store.notify("due")
        await fake_clock.advance(2)
        assert len(node.sender.calls) == 1


async def test_an_answer_lost_on_the_way_is_found_by_comparing_rows(cluster, fake_clock):
    """The claim was answered to nobody: the row carries our name, we know nothing of it."""
    node = await cluster.node()
    await fake_clock.advance(1)
    job = await cluster.create(spec(schedule=due_in(2500)))
    await cluster.store.claim(node.id, offers=["webhook"], level=1, limit=10, lookahead_ms=2000)
    await fake_clock.advance(0.6)
    await cluster.store.claim(node.id, offers=["webhook"], level=1, limit=10, lookahead_ms=2000)
    await fake_clock.advance(8)
    assert (await cluster.run(job.id)).status == "DONE"
    assert len(node.sender.calls) == 1


async def test_a_stop_waits_for_tasks_and_gives_the_rest_back(cluster, fake_clock):
    node = await cluster.node(grace=3000)
    node.sender.hold = asyncio.Event()
    stuck = await cluster.create(spec(FUNCTION, schedule=due_in(100)))
    held = await cluster.create(spec(schedule=due_in(2500)))
    await fake_clock.advance(1.8)
    assert (node.node.load.held, node.node.load.running) == (1, 1)
    stopping = asyncio.ensure_future(node.node.stop())
    await fake_clock.advance(0.3)
    assert node.node.load.draining
    assert node.node.load.held == 0  # given back at once, so that others fire it on time
    assert not node.node.ready
    heir = await cluster.node()
    await fake_clock.advance(0.7)
    assert [call.job_id for call in heir.sender.calls] == [held.id]
    assert not stopping.done()
    await cluster.finish(stopping)
    assert node.sender.cancelled == node.sender.sent
    await fake_clock.advance(1)
    run = await cluster.run(stuck.id)
    assert (run.status, run.tries, run.losses, run.node) == ("DONE", 1, 0, heir.id)
    assert [info.id for info in await cluster.store.list_nodes()] == [heir.id]


async def test_a_stop_lets_tasks_end_within_the_grace(cluster, fake_clock):
    node = await cluster.node()
    node.sender.hold = asyncio.Event()
    job = await cluster.create(spec(FUNCTION, schedule=due_in(100)))
    await fake_clock.advance(1)
    node.node.request_stop()
    await fake_clock.advance(2)
    node.sender.hold.set()
    await cluster.finish(node.node.wait(), most=1.0)
    assert node.sender.cancelled == []
    assert (await cluster.run(job.id)).status == "DONE"
    assert await cluster.store.list_nodes() == []


async def test_a_second_stop_is_at_once(cluster, fake_clock):
    node = await cluster.node(grace=3_600_000)
    node.sender.hold = asyncio.Event()
    job = await cluster.create(spec(FUNCTION, schedule=due_in(100)))
    await fake_clock.advance(1)
    node.node.request_stop()
    await fake_clock.advance(30)
    assert node.sender.cancelled == []
    node.node.request_stop()
    await cluster.finish(node.node.wait(), most=1.0)
    assert node.sender.cancelled == node.sender.sent
    heir = await cluster.node()
    await fake_clock.advance(1.5)
    assert (await cluster.run(job.id)).node == heir.id


async def test_an_interrupted_at_most_once_run_is_not_sent_again(cluster, fake_clock):
    node = await cluster.node(grace=0)
    node.sender.hold = asyncio.Event()
    job = await cluster.create(spec(FUNCTION, schedule=due_in(100), delivery="at_most_once"))
    await fake_clock.advance(1)
    await cluster.finish(node.node.stop())
    heir = await cluster.node()
    await fake_clock.advance(2)
    assert heir.sender.calls == []
    assert (await cluster.run(job.id)).reason == "unknown"


async def test_a_stop_without_a_database_ends_and_loses_nothing(cluster, fake_clock):
    node = await cluster.node()
    job = await cluster.create(spec(schedule=due_in(1000)))
    await fake_clock.advance(0.5)
    node.way.away = True
    await fake_clock.advance(1)
    assert len(node.sender.calls) == 1
    await cluster.finish(node.node.stop(), most=30)
    heir = await cluster.node()
    await fake_clock.advance(10)
    run = await cluster.run(job.id)
    assert (run.status, run.losses) == ("DONE", 1)  # at least once: nobody could know
    assert len(heir.sender.calls) == 1


async def test_a_loop_that_takes_its_end_for_trouble_is_told_again(cluster, fake_clock):
    """A rollback on a broken connection can hide a cancellation: the loop backs off and goes on, and the node must not
    wait for it for ever."""
    node = await cluster.node(grace=1000)
    mistaken: list[str] = []

    async def begin(*_: object) -> set[str]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not mistaken:
                mistaken.append("begin")
                raise StoreUnavailable("connection lost") from None
            raise
        return set()

    node.way.begin = begin
    await cluster.create(spec(schedule=due_in(1000), delivery="at_most_once"))
    await fake_clock.advance(1.5)
    await cluster.finish(node.node.stop(), most=30)
    assert mistaken == ["begin"]


async def test_a_recorder_that_takes_its_end_for_trouble_is_told_again(cluster, fake_clock):
    """The same while its last results are waited for, found by the simulation: the node was stopping for ever, beat all
    the while, and so nobody took its runs."""
    node = await cluster.node(grace=1000)
    mistaken: list[str] = []

    async def finish(*_: object) -> object:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not mistaken:
                mistaken.append("finish")
                raise StoreUnavailable("connection lost") from None
            raise
        raise AssertionError("nobody answers")

    node.way.finish = finish
    await cluster.create(spec(schedule=due_in(1000)))
    await fake_clock.advance(1.5)
    await cluster.finish(node.node.stop(), most=30)
    assert mistaken == ["finish"]


async def test_a_restart_on_sqlite_takes_back_at_once(cluster, fake_clock):
    """Holding the file's lock proves all others dead: no lease to wait for."""
    dead = await cluster.node()
    dead.sender.hold = asyncio.Event()
    job = await cluster.create(spec(FUNCTION, schedule=due_in(100)))
    await fake_clock.advance(1)
    dead.kill()
    heir = await cluster.node(alone=True)
    await fake_clock.advance(0.2)
    assert len(heir.sender.calls) == 1
    run = await cluster.run(job.id)
    assert (run.status, run.losses) == ("DONE", 1)


async def test_a_node_starts_while_the_database_is_away(cluster, fake_clock):
    node = await cluster.node(away=True)
    await fake_clock.advance(20)
    assert not node.node.ready
    assert node.node.info is not None
    node.way.away = False
    await fake_clock.advance(3)
    assert node.node.ready
    assert [info.id for info in await cluster.store.list_nodes()] == [node.id]


async def test_a_lost_answer_to_the_registration_is_another_incarnation(cluster, fake_clock):
    node = await cluster.node(lose=("register",))
    job = await cluster.create(spec(schedule=due_in(1000)))
    await fake_clock.advance(3)
    assert (node.node.ready, node.node.incarnations) == (True, 2)
    assert (await cluster.run(job.id)).status == "DONE"
    await fake_clock.advance(6)
    states = {info.id: info.state for info in await cluster.store.list_nodes()}
    assert states.pop(node.id) == "alive"
    assert list(states.values()) == ["lost"]  # the row that nobody beats for


async def test_a_restart_on_sqlite_in_bad_weather(cluster, fake_clock):
    dead = await cluster.node()
    dead.sender.hold = asyncio.Event()
    job = await cluster.create(spec(FUNCTION, schedule=due_in(100)))
    await fake_clock.advance(1)
    dead.kill()
    heir = await cluster.node(alone=True, lose=("declare_lost", "beat", "reclaim"))
    await fake_clock.advance(2)
    assert heir.node.ready
    assert (await cluster.run(job.id)).status == "DONE"


async def test_a_stop_before_the_database_came_back_ends_at_once(cluster, fake_clock):
    node = await cluster.node(away=True)
    await fake_clock.advance(5)
    await cluster.finish(node.node.stop(), most=0.1)
    assert await cluster.store.list_nodes() == []


async def test_an_error_nobody_expected_stops_in_order_and_comes_out(cluster, fake_clock):
    node = await cluster.node(grace=0)
    job = await cluster.create(spec(schedule=due_in(1500)))
    await fake_clock.advance(0.8)
    assert node.node.load.held == 1

    async def broken(*args, **kwargs):
        raise ZeroDivisionError("a bug")

    node.way.beat = broken
    await fake_clock.advance(2)
    with pytest.raises(ZeroDivisionError):
        await cluster.finish(node.node.wait())
    assert await cluster.store.list_nodes() == []
    heir = await cluster.node()
    await fake_clock.advance(3)
    assert (await cluster.run(job.id)).status == "DONE"
    assert len(sends(cluster)) == 1
    assert heir.node.ready


async def test_a_wall_clock_set_wrong_moves_no_firing(cluster, fake_clock):
    """On SQLite the machine's clock is the database's: set ahead, what is due by it fires; nothing fires twice."""
    node = await cluster.node()
    await cluster.create(spec(schedule=due_in(3_600_000)))
    await fake_clock.advance(2)
    fake_clock.step_wall(3_600_000)
    await fake_clock.advance(3)
    assert len(node.sender.calls) == 1
    fake_clock.step_wall(-3_600_000)
    await fake_clock.advance(3)
    assert len(node.sender.calls) == 1
    assert node.node.ready


async def test_a_clock_set_back_fires_nothing_early(cluster, fake_clock):
    node = await cluster.node()
    await cluster.create(spec(schedule=due_in(10_000)))
    await fake_clock.advance(9.3)  # claimed, in the heap
    assert node.node.load.held == 1
    fake_clock.step_wall(-5_000)
    await fake_clock.advance(5.5)
    assert node.sender.calls == []
    await fake_clock.advance(0.6)
    assert node.sender.sent_at == [cluster.start + 10_000]
