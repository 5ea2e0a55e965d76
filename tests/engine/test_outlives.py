"""Work that outlives its node: detached, not given back; adopted, not begun again; killed only if wanted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from onthedot.clock import FakeClock
from onthedot.engine.messages import Detach
from onthedot.model.duration import Duration
from onthedot.model.policy import Retry
from onthedot.model.run import RunView
from onthedot.model.work import Work
from onthedot.store import Store, open_store
from tests.engine.cluster import Cluster, Member
from tests.engine.making import COMMAND, claimed, spec, stop
from tests.engine.outside import Reach, World
from tests.engine.test_monitor import Bench


class Stage(Cluster):
    def __init__(self, clock: FakeClock, store: Store) -> None:
        super().__init__(clock, store)
        self.world = World(clock)

    async def reach(self, *, lose: Any = (), grace: int = 60_000, **reach: Any) -> Member:
        return await self.node(sender=Reach(self.world, **reach), lose=lose, grace=Duration(grace))

    async def begin(self, **policy: Any) -> int:
        """A job whose work has begun; its id."""
        job = await self.create(spec(COMMAND, **policy))
        await self.until(lambda: self.world.calls)
        return job.id

    async def let_go(self, member: Member) -> float:
        """The orderly stop; how long it took."""
        began = self.clock.monotonic()
        await self.finish(member.node.stop(), most=5.0)
        return self.clock.monotonic() - began

    async def adopted(self, attempt: int) -> None:
        await self.until(lambda: self.world.calls[-1].attempt == attempt, most=20.0)

    async def ended(self, job_id: int) -> RunView:
        run = await self.run(job_id)
        for _ in range(200):
            if run.status not in ("PENDING", "EXECUTING"):
                break
            await self.clock.advance(0.1)
            run = await self.run(job_id)
        return run


@pytest.fixture
async def stage(fake_clock: FakeClock):
    stage = Stage(fake_clock, await open_store("sqlite:///:memory:", fake_clock, threads=False))
    yield stage
    await stage.close()


async def test_what_it_starts_is_recorded_before_it_is_started(stage):
    member = await stage.reach(lose=["begin_work"])
    await stage.begin()
    asked = [name for name in member.way.asked if name in ("claim_each", "begin", "begin_work")]
    assert asked[-2:] == ["begin_work", "begin_work"], "asked again when the answer was lost"
    assert len(stage.world.created) == 1
    (call,) = stage.world.calls
    assert (call.try_number, call.adopted, call.may_create) == (1, False, True)


async def test_a_stop_detaches_it_at_once_and_counts_nothing(stage):
    member = await stage.reach()
    job_id = await stage.begin()
    assert await stage.let_go(member) < 2.0, "it waited for the grace"
    run = await stage.run(job_id)
    assert (run.status, run.node, run.tries, run.losses, run.attempts) == ("EXECUTING", None, 0, 0, [])
    assert stage.world.only.killed_at is None
    await stage.reach()
    await stage.adopted(2)
    stage.world.only.over.set()
    run = await stage.ended(job_id)
    assert (run.status, run.attempt, run.tries, run.losses) == ("DONE", 2, 1, 0)
    assert stage.world.created == [f"{run.id}-1"]
    assert stage.world.only.recorded


async def test_adopted_it_is_the_same_try_and_as_old_as_it_is(stage, fake_clock):
    member = await stage.reach()
    job_id = await stage.begin()
    await stage.let_go(member)
    await fake_clock.advance(7)
    await stage.reach()
    await stage.adopted(2)
    assert [(call.try_number, call.adopted) for call in stage.world.calls] == [(1, False), (1, True)]
    stage.world.only.over.set()
    run = await stage.ended(job_id)
    assert run.lateness_ms is not None
    assert run.lateness_ms < 1000, "it is not late because it was adopted late"
    assert run.duration_ms is not None
    assert run.duration_ms >= 7000


async def test_three_lost_nodes_are_no_poison(stage):
    job_id = None
    for attempt in (1, 2, 3, 4):
        member = await stage.reach()
        job_id = job_id or await stage.begin()
        await stage.adopted(attempt)
        if attempt < 4:
            member.kill()
    stage.world.only.over.set()
    run = await stage.ended(job_id)
    assert (run.status, run.attempt, run.tries, run.losses) == ("DONE", 4, 1, 0)
    assert len(stage.world.created) == 1


async def test_a_cancel_kills_it(stage):
    await stage.reach()
    job_id = await stage.begin()
    await stage.store.cancel_run(1, (await stage.run(job_id)).id)
    run = await stage.ended(job_id)
    assert (run.status, run.tries) == ("CANCELLED", 1)
    assert stage.world.only.killed_at is not None


async def test_a_cancel_while_nobody_has_it_waits_for_who_adopts_it(stage, fake_clock):
    member = await stage.reach()
    job_id = await stage.begin()
    await stage.let_go(member)
    await stage.store.cancel_run(1, (await stage.run(job_id)).id)
    await fake_clock.advance(2)
    assert (await stage.run(job_id)).status == "EXECUTING"
    assert stage.world.only.killed_at is None
    await stage.reach()
    assert (await stage.ended(job_id)).status == "CANCELLED"
    assert stage.world.only.killed_at is not None


async def test_what_was_cancelled_before_it_was_there_is_not_created(stage):
    member = await stage.reach(creates=False)
    job_id = await stage.begin()
    member.kill()
    other = await stage.node("webhook")
    await stage.until(lambda: "reclaim" in other.way.asked)
    await stage.store.cancel_run(1, (await stage.run(job_id)).id)
    await stage.reach()
    assert (await stage.ended(job_id)).status == "CANCELLED"
    assert stage.world.created == []


async def test_a_time_out_counts_from_the_true_start(stage, fake_clock):
    member = await stage.reach()
    job_id = await stage.begin(timeout=Duration(20_000), retry=Retry(attempts=1))
    began = stage.world.only.began
    await fake_clock.advance(4)
    await stage.let_go(member)
    await fake_clock.advance(4)
    await stage.reach()
    run = await stage.ended(job_id)
    assert (run.status, run.outcome["kind"] if run.outcome else None) == ("FAILED", "timeout")
    assert stage.world.only.killed_at == pytest.approx(began + 20, abs=0.2)


async def test_a_time_out_that_passed_while_nobody_had_it_is_carried_out_at_once(stage, fake_clock):
    member = await stage.reach()
    job_id = await stage.begin(timeout=Duration(5000), retry=Retry(attempts=1))
    await stage.let_go(member)
    await fake_clock.advance(10)
    assert stage.world.only.killed_at is None
    await stage.reach()
    assert (await stage.ended(job_id)).status == "FAILED"
    assert stage.world.only.killed_at is not None


async def test_the_next_try_is_another_piece_of_work(stage, fake_clock):
    await stage.reach()
    job_id = await stage.begin(timeout=Duration(2000), retry=Retry(attempts=2, backoff=Duration(1000)))
    await stage.until(lambda: len(stage.world.created) == 2)
    first, second = stage.world.created
    assert (first[-2:], second[-2:]) == ("-1", "-2")
    assert stage.world.things[first].recorded, "its end was recorded: it may go"
    assert (await stage.run(job_id)).tries == 1


async def test_who_died_before_it_was_created_leaves_that_to_the_next(stage):
    member = await stage.reach(creates=False)
    job_id = await stage.begin()
    assert stage.world.created == []
    member.kill()
    await stage.reach()
    await stage.adopted(2)
    assert len(stage.world.created) == 1
    stage.world.only.over.set()
    assert (await stage.ended(job_id)).status == "DONE"


async def test_after_its_job_was_deleted_it_is_not_created_by_the_next(stage):
    member = await stage.reach(creates=False)
    job_id = await stage.begin()
    run_id = (await stage.run(job_id)).id
    member.kill()
    await stage.store.delete_job(1, job_id)
    await stage.reach()
    await stage.adopted(2)
    await stage.clock.advance(2)
    run = await stage.store.get_run(1, run_id)
    assert (run.status, run.reason, run.tries) == ("CANCELLED", "the job was deleted", 0)
    assert stage.world.created == []


async def test_after_its_target_was_changed_the_new_one_is_begun(stage):
    member = await stage.reach(creates=False)
    job_id = await stage.begin()
    member.kill()
    changed = msgspec.structs.replace(COMMAND, command="other")
    await stage.store.update_job(1, job_id, lambda old: msgspec.structs.replace(old, target=changed))
    await stage.reach(places=("backup", "other"))
    await stage.until(lambda: stage.world.created, most=20.0)
    assert [call.target for call in stage.world.calls if call.may_create][-1] == changed
    stage.world.only.over.set()
    run = await stage.ended(job_id)
    assert (run.status, run.tries, len(stage.world.created)) == ("DONE", 1, 1)


async def test_while_its_job_is_paused_it_is_not_created_by_the_next(stage):
    member = await stage.reach(creates=False)
    job_id = await stage.begin(retry=Retry(attempts=1))
    member.kill()
    await stage.store.pause_job(1, job_id)
    await stage.reach()
    await stage.adopted(2)
    await stage.clock.advance(2)
    run = await stage.run(job_id)
    assert (run.status, run.tries, stage.world.created) == ("PENDING", 0, [])
    await stage.store.resume_job(1, job_id)
    await stage.until(lambda: stage.world.created, most=10.0)
    stage.world.only.over.set()
    run = await stage.ended(job_id)
    assert (run.status, run.tries) == ("DONE", 1)


async def test_at_most_once_it_is_not_created_by_the_next(stage):
    member = await stage.reach(creates=False)
    job_id = await stage.begin(delivery="at_most_once")
    member.kill()
    await stage.reach()
    run = await stage.ended(job_id)
    assert (run.status, run.outcome["kind"] if run.outcome else None) == ("FAILED", "unknown")
    assert stage.world.created == []


async def test_it_does_not_expire_while_it_goes_on(stage, fake_clock):
    member = await stage.reach()
    job_id = await stage.begin(expires_in=Duration(2000))
    await stage.let_go(member)
    await fake_clock.advance(10)
    await stage.reach()
    await stage.adopted(2)
    stage.world.only.over.set()
    assert (await stage.ended(job_id)).status == "DONE"


async def test_only_who_reaches_its_place_adopts_it(stage, fake_clock):
    member = await stage.reach()
    job_id = await stage.begin()
    await stage.let_go(member)
    await stage.reach(places=["elsewhere"])
    await fake_clock.advance(5)
    assert (await stage.run(job_id)).node is None
    near = await stage.reach()
    await stage.adopted(2)
    assert (await stage.run(job_id)).node == near.id


async def test_what_nobody_reaches_any_more_is_as_late_as_its_first_try(stage, fake_clock):
    member = await stage.reach()
    retry = Retry(attempts=2, backoff=Duration(4000))
    job_id = await stage.begin(timeout=Duration(2000), retry=retry)
    await stage.until(lambda: len(stage.world.created) == 2, most=20.0)
    await stage.let_go(member)
    await stage.reach(places=["elsewhere"])
    await fake_clock.advance(35)
    run = await stage.ended(job_id)
    assert (run.status, run.tries) == ("FAILED", 2)
    assert run.lateness_ms is not None
    assert run.lateness_ms < 1000, "it is not late because its first try took too long"


async def test_what_was_adopted_without_an_answer_is_open_again_not_pending(stage, fake_clock):
    member = await stage.reach()
    job_id = await stage.begin(overlap="skip")
    await stage.let_go(member)
    await stage.reach(lose=["adopt"])
    await stage.adopted(3)
    run = await stage.run(job_id)
    assert (run.status, run.tries, stage.world.calls[-1].adopted) == ("EXECUTING", 0, True)
    assert len(stage.world.created) == 1


async def test_what_finds_no_slot_is_open_again(stage, fake_clock):
    member = await stage.reach(capacity=2)
    one, two = await stage.create(spec(COMMAND)), await stage.create(spec(COMMAND))
    await stage.until(lambda: len(stage.world.created) == 2)
    await stage.let_go(member)
    await stage.reach(capacity=1)
    await fake_clock.advance(5)
    runs = [await stage.run(one.id), await stage.run(two.id)]
    assert [run.status for run in runs] == ["EXECUTING", "EXECUTING"]
    for thing in stage.world.things.values():
        thing.over.set()
    assert {(await stage.ended(job.id)).status for job in (one, two)} == {"DONE"}
    assert len(stage.world.created) == 2


async def test_a_node_that_was_frozen_leaves_it_to_who_has_it(stage, fake_clock):
    frozen = await stage.reach()
    job_id = await stage.begin(timeout=Duration(60_000))
    frozen.way.freeze()
    await stage.reach()
    await stage.adopted(2)
    frozen.way.thaw()
    await fake_clock.advance(5)
    assert stage.world.only.killed_at is None
    stage.world.only.over.set()
    run = await stage.ended(job_id)
    assert (run.status, run.attempt, run.losses) == ("DONE", 2, 0)
    assert len(stage.world.created) == 1


async def test_who_lost_touch_with_the_store_does_not_kill_it_by_its_own_time_out(stage, fake_clock):
    """Somebody may have given it more time meanwhile."""
    alone = await stage.reach()
    await stage.begin(timeout=Duration(8000))
    alone.way.away = True
    await fake_clock.advance(10)
    assert stage.world.only.killed_at is None


async def test_the_end_of_the_lease_does_not_stop_it_though_it_has_a_lane(stage, fake_clock):
    alone = await stage.reach()
    job_id = await stage.begin(overlap="skip")
    alone.way.away = True
    await fake_clock.advance(8)
    alone.way.away = False
    stage.world.only.over.set()
    run = await stage.ended(job_id)
    assert (run.status, run.attempt) == ("DONE", 1)


async def test_a_pause_leaves_it_alone(stage, fake_clock):
    member = await stage.reach()
    job_id = await stage.begin()
    await stage.let_go(member)
    await stage.store.pause_job(1, job_id)
    await stage.reach()
    await stage.adopted(2)
    await fake_clock.advance(2)
    assert (await stage.run(job_id)).attempt == 2
    stage.world.only.over.set()
    assert (await stage.ended(job_id)).status == "DONE"


async def test_only_one_of_several_adopts_it(stage, fake_clock):
    member = await stage.reach()
    job_id = await stage.begin()
    await stage.let_go(member)
    for _ in range(3):
        await stage.reach()
    await fake_clock.advance(10)
    assert [call.attempt for call in stage.world.calls] == [1, 2]
    assert (await stage.run(job_id)).attempt == 2


async def test_what_is_left_of_tries_that_are_over_is_removed(stage, fake_clock):
    stage.world.create("9-1000-1")
    await stage.reach()
    await fake_clock.advance(1)
    assert stage.world.things == {}, "at the start"
    job_id = await stage.begin()
    run = await stage.run(job_id)
    stage.world.create("9-2000-1")
    stage.world.create(f"{run.id}-7")
    stage.world.create("not ours")
    await fake_clock.advance(61)
    assert set(stage.world.things) == {f"{run.id}-1", "not ours"}, "once a minute, and never what goes on"


async def test_what_can_not_be_removed_is_tried_again_and_ends_nobody(stage, fake_clock):
    member = await stage.reach()
    stage.world.create("9-1000-1")
    stage.world.is_stubborn = True
    await fake_clock.advance(61)
    assert (len(stage.world.things), member.node.ready) == (1, True)
    stage.world.is_stubborn = False
    await fake_clock.advance(61)
    assert stage.world.things == {}


async def test_a_stop_right_after_a_cancel_does_not_record_what_was_not_done(fake_clock):
    """The adopter has read the order and not looked for the work yet when it is told to stop."""
    bench = Bench(fake_clock)
    work = Work(target={"type": "webhook"}, try_number=1, place="here")
    monitor = bench.monitor(msgspec.structs.replace(claimed("1-1", due_at=bench.now, token=2), work=work))
    stop(monitor, "cancelled")
    assert (bench.recorder.take_all(), bench.ended) == ([], []), "it is to be started, and killed"
    stop(monitor, "interrupted")
    assert bench.recorder.take_all() == [Detach("1-1", 2)]
    assert bench.ended == [monitor]
