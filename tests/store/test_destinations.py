"""Runs that wait for a destination: no claim brings them with the others, nothing of them changes, all find them."""

from __future__ import annotations

import msgspec
import pytest

from onthedot.model.destination import DestinationLoad, waits_range
from onthedot.model.duration import Duration
from onthedot.model.node import NodeLoad
from onthedot.model.run import ClaimedRun
from onthedot.model.targets import WebhookTarget
from onthedot.store import NewJob, RunFilter, Store, TurnedAway
from tests.store.conftest import START, Times
from tests.store.hands import FAILED, Hands, at, every, node_info, spec

MINUTE = 60_000
PLACE = "webhook@http://example.com"
RANGE = [waits_range("webhook")]


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


async def wait(hands: Hands, *runs: ClaimedRun, requires: str = PLACE, until: int | None = None) -> None:
    away = [
        TurnedAway(run_id=run.id, token=run.token, version=run.version, requires=requires, until=until) for run in runs
    ]
    await hands.store.wait_for_destinations(hands.node, away)


async def seen(hands: Hands, most: int = 64) -> list[str]:
    return (await hands.store.waited_for(RANGE, most)).requires


class TestWaiting:
    async def test_it_is_pending_with_the_same_token_no_try_and_due_when_it_was(self, hands: Hands):
        await hands.job(at(START + 1500))
        run = await hands.one()
        await wait(hands, run)
        (row,) = await hands.live()
        assert (row["state"], row["node"], row["token"]) == ("pending", None, 1)
        assert (row["tries"], row["losses"], row["attempts"], row["begun_at"]) == (0, 0, None, None)
        assert (row["due_at"], row["requires"], row["waiting"]) == (START + 1500, PLACE, "destination")
        await hands.check()

    async def test_it_is_claimed_by_whoever_asks_for_its_destination_alone(self, hands: Hands):
        await hands.job(at(START + 1500))
        run = await hands.one()
        await wait(hands, run)
        assert (await hands.claim()).runs == []
        assert (await hands.claim(offers=["webhook@http://other.com"])).runs == []
        (again,) = (await hands.claim(offers=[PLACE])).runs
        assert (again.id, again.token, again.due_at) == (run.id, 2, run.due_at)
        await hands.finish(again)
        (ended,) = await hands.ledger()
        assert (ended["tries"], ended["attempts"]) == (1, None)
        await hands.check()

    async def test_it_is_shown(self, hands: Hands, times: Times):
        await hands.job(at(START + 500))
        run = await hands.one()
        await times.advance(1000)
        await wait(hands, run)
        view = await hands.store.get_run(1, run.id)
        assert (view.status, view.waiting, view.waiting_for) == ("PENDING", "destination", "http://example.com")
        assert view.waiting_since == "2023-11-14T22:13:21.000Z"
        (listed,) = await hands.runs()
        assert (listed.waiting, listed.waiting_since, listed.waiting_for) == (
            view.waiting,
            view.waiting_since,
            view.waiting_for,
        )

    async def test_since_when_stays_until_it_was_tried(self, hands: Hands, times: Times):
        await hands.job(at(START + 500))
        run = await hands.one()
        await wait(hands, run)
        await times.advance(5000)
        (run,) = (await hands.claim(offers=[PLACE])).runs
        assert (await hands.store.get_run(1, run.id)).waiting is None, "a node has it"
        await wait(hands, run)
        assert [row["waiting_since"] for row in await hands.live()] == [START]
        (run,) = (await hands.claim(offers=[PLACE])).runs
        await hands.finish(run, outcome=FAILED)
        (row,) = await hands.live()
        assert (row["requires"], row["waiting"], row["waiting_since"]) == ("webhook", None, None)
        await times.advance(5000)
        await wait(hands, await hands.one())
        assert [row["waiting_since"] for row in await hands.live()] == [START + 10_000]

    async def test_only_what_is_its_own(self, hands: Hands):
        await hands.job()
        run = await hands.one()
        await wait(Hands(hands.store, "n2"), run)
        await wait(hands, msgspec.structs.replace(run, token=9))
        await wait(hands)
        assert [(row["state"], row["waiting"]) for row in await hands.live()] == [("running", None)]

    async def test_said_twice_it_is_the_same(self, hands: Hands, times: Times):
        """The answer was lost."""
        await hands.job(at(START + 500))
        run = await hands.one()
        await wait(hands, run)
        before = await hands.live()
        await times.advance(700)
        await wait(hands, run)
        assert await hands.live() == before

    async def test_a_recurring_one_is_not_the_cursor_again(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE))
        await times.advance(MINUTE)
        await wait(hands, await hands.one())
        assert [(bool(row["cursor"]), row["requires"]) for row in await hands.live(job)] == [
            (False, PLACE),
            (True, "webhook"),
        ]
        await times.advance(MINUTE)
        next_one = await hands.one()
        assert next_one.slot == START + 2 * MINUTE, "the job goes on"
        await hands.check()

    async def test_many_of_a_batch_that_go_different_ways(self, hands: Hands):
        jobs = [await hands.job(at(START + 1000 + n)) for n in range(4)]
        runs = (await hands.claim()).runs
        await hands.store.delete_job(1, jobs[1])
        await hands.store.pause_job(1, jobs[2])
        await wait(hands, *runs)
        live = {row["job_id"]: row for row in await hands.live()}
        assert {job: row["requires"] for job, row in live.items()} == {
            jobs[0]: PLACE,
            jobs[2]: "webhook",
            jobs[3]: PLACE,
        }
        assert live[jobs[2]]["parked"] == "paused"
        assert [row["status"] for row in await hands.ledger()] == ["cancelled"]
        await hands.check()


class TestVerbs:
    async def waiting_job(self, hands: Hands, **policy: object) -> tuple[int, ClaimedRun]:
        job = await hands.job(at(START + 500), **policy)
        run = await hands.one()
        await wait(hands, run)
        return job, run

    async def test_cancel(self, hands: Hands):
        _, run = await self.waiting_job(hands)
        await hands.store.cancel_run(1, run.id)
        assert await hands.live() == []
        (ended,) = await hands.ledger()
        assert (ended["status"], ended["tries"]) == ("cancelled", 0)
        assert await seen(hands) == []

    async def test_delete(self, hands: Hands):
        job, _ = await self.waiting_job(hands)
        await hands.store.delete_job(1, job)
        assert await hands.live() == []

    async def test_pause_and_resume(self, hands: Hands, times: Times):
        job, run = await self.waiting_job(hands)
        await hands.store.pause_job(1, job)
        assert (await hands.claim(offers=[PLACE])).runs == []
        view = await hands.store.get_run(1, run.id)
        assert (view.reason, view.waiting) == ("paused", None)
        await times.advance(MINUTE)
        await hands.store.resume_job(1, job)
        (again,) = (await hands.claim(offers=[PLACE])).runs
        assert (again.id, again.due_at) == (run.id, run.due_at)
        await hands.check()

    async def test_an_edit_of_the_target_makes_it_require_what_the_job_does(self, hands: Hands):
        job, run = await self.waiting_job(hands)
        target = WebhookTarget(url="http://other.com/")
        await hands.store.update_job(1, job, lambda old: msgspec.structs.replace(old, target=target))
        assert (await hands.store.get_run(1, run.id)).waiting is None
        assert await seen(hands) == []
        again = await hands.one()
        assert (again.id, again.spec.target) == (run.id, target)

    async def test_so_does_one_between_the_claim_and_the_wait(self, hands: Hands):
        job = await hands.job(at(START + 500))
        run = await hands.one()
        target = WebhookTarget(url="http://other.com/")
        await hands.store.update_job(1, job, lambda old: msgspec.structs.replace(old, target=target))
        await wait(hands, run)
        (row,) = await hands.live()
        assert (row["requires"], row["waiting"]) == ("webhook", None)
        assert (await hands.one()).spec.target == target

    async def test_a_lane_is_free_while_its_run_waits(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE), overlap="queue")
        await times.advance(MINUTE)
        first = await hands.one()
        await times.advance(MINUTE)
        assert (await hands.claim()).runs == [], "it waits for the lane"
        await wait(hands, first)
        second = await hands.one()
        assert second.slot == first.slot + MINUTE
        assert (await hands.claim(offers=[PLACE])).runs == [], "the lane is held"
        await wait(hands, second)
        assert await seen(hands) == [PLACE]
        (again,) = (await hands.claim(offers=[PLACE])).runs
        assert again.slot == first.slot, "one at a time, the older first"
        await hands.finish(again)
        ((last),) = (await hands.claim(offers=[PLACE])).runs
        assert last.slot == second.slot
        assert (await hands.store.get_job(1, job)).id == job
        await hands.check()

    async def test_what_a_lost_node_had_claimed_there_is_claimed_as_all_others(self, hands: Hands, times: Times):
        await hands.store.register(node_info("n1"))
        _, run = await self.waiting_job(hands)
        await hands.claim(offers=[PLACE])
        assert await hands.store.declare_lost("n1", 0)
        assert await hands.store.reclaim() == 1
        await times.advance(5000)
        again = await Hands(hands.store, "n2").one()
        assert (again.id, again.token) == (run.id, 3)

    async def test_at_most_once_is_not_begun_by_it(self, hands: Hands):
        await hands.job(at(START + 500), delivery="at_most_once")
        run = await hands.one()
        await wait(hands, run)
        (again,) = (await hands.claim(offers=[PLACE])).runs
        assert await hands.store.begin("n1", [(again.id, again.token)]) == {again.id}


class TestExpiry:
    async def test_it_is_let_go_when_it_has_expired(self, hands: Hands, times: Times):
        await hands.job(at(START + 500), expires_in=Duration(10_000))
        run = await hands.one()
        await wait(hands, run, until=START + 10_501)
        await times.advance(10_500)
        assert not (await hands.store.waited_for(RANGE, 64)).expired
        assert await hands.store.release_expired_waiting() == 0
        await times.advance(1)
        assert (await hands.store.waited_for(RANGE, 64)).expired
        assert await hands.store.release_expired_waiting() == 1
        assert await hands.store.release_expired_waiting() == 0
        found = await hands.store.waited_for(RANGE, 64)
        assert (found.requires, found.expired) == ([], False)
        assert (await hands.one()).id == run.id

    async def test_not_what_a_node_has_or_a_pause_holds(self, hands: Hands, times: Times):
        held, paused = [await hands.job(at(START + 500), expires_in=Duration(1000)) for _ in range(2)]
        await wait(hands, *(await hands.claim()).runs, until=START + 1501)
        await hands.store.pause_job(1, paused)
        await times.advance(2000)
        assert [run.job_id for run in (await hands.claim(offers=[PLACE])).runs] == [held]
        assert await hands.store.release_expired_waiting() == 0


class TestHopping:
    async def places(self, hands: Hands, times: Times, *requires: str, **policy: object) -> None:
        for each in requires:
            await hands.job(at(times.now + 1), **policy)
            await times.advance(1)  # what has a lane is claimed when it is due
            await wait(hands, await hands.one(), requires=each)

    async def test_each_once_however_many_wait_there(self, hands: Hands, times: Times):
        await self.places(
            hands, times, "webhook@http://b", "webhook@http://a", "webhook@http://b", "webhook@#2/http://c"
        )
        await self.places(hands, times, "webhook@http://lane", "webhook@http://a", overlap="queue")
        await hands.job(at(START + 500))
        assert await seen(hands) == [
            "webhook@#2/http://c",
            "webhook@http://a",
            "webhook@http://b",
            "webhook@http://lane",
        ]
        assert (await hands.store.waited_for([waits_range("queue:x")], 64)).requires == []

    async def test_so_many_at_a_time_and_the_next_after_the_last(self, hands: Hands, times: Times):
        names = [f"webhook@http://{n}" for n in range(7)]
        await self.places(hands, times, *names[::2])
        await self.places(hands, times, *names[1::2], overlap="queue")
        low, high = RANGE[0]
        found: list[str] = []
        for _ in range(4):
            here = (await hands.store.waited_for([(low, high)], 2)).requires
            found += here
            low = here[-1]
        assert found == names

    async def test_counted(self, hands: Hands, times: Times):
        await self.places(hands, times, "webhook@http://a")
        await times.advance(100)
        await self.places(hands, times, "webhook@http://a", "webhook@http://b")
        await self.places(hands, times, "webhook@http://a", overlap="queue")
        counts = await hands.store.count_waiting(["webhook@http://a", "webhook@http://b", "webhook@http://none"])
        assert {count.requires: (count.waiting, count.since) for count in counts} == {
            "webhook@http://a": (3, START + 1),
            "webhook@http://b": (1, START + 103),
        }

    async def test_one_kind_in_the_backlog_whatever_the_destinations(self, hands: Hands, times: Times):
        await hands.store.register(node_info("n1"))
        await self.places(hands, times, "webhook@http://a", "webhook@http://b")
        await self.places(hands, times, "webhook@#7/http://c", overlap="queue")
        await hands.job(at(START + 500))
        await times.set(START + 1000)
        backlog = await hands.store.backlog()
        assert (backlog.due, backlog.waiting, backlog.unoffered) == (4, 3, {})
        assert backlog.oldest_ms == 999
        await hands.store.declare_lost("n1", 0)
        assert (await hands.store.backlog()).unoffered == {"webhook": 4}


async def test_another_tenant_s_are_told_apart(hands: Hands):
    await hands.store.create_jobs([NewJob(tenant=2, spec=spec(at(START + 500)))])
    run = await hands.one()
    await wait(hands, run, requires="webhook@#2/http://example.com")
    assert (await hands.store.list_runs(1, RunFilter())).items == []
    assert (await hands.store.get_run(2, run.id)).waiting_for == "http://example.com"
    own = waits_range("webhook", 1)
    assert (await hands.store.waited_for([own], 64)).requires == []


async def test_a_beat_tells_of_destinations(hands: Hands):
    told = [DestinationLoad(requires=PLACE, breaker="open", in_flight=3, failures=12, since=START)]
    await hands.store.register(node_info("n1"))
    await hands.store.beat("n1", NodeLoad(destinations=told))
    assert await hands.store.destinations_of_nodes() == {"n1": told}
    await hands.store.beat("n1", NodeLoad())
    assert await hands.store.destinations_of_nodes() == {}
