"""Nodes, beats, losses, duties."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
import pytest

from onthedot import telemetry
from onthedot.errors import NotFound
from onthedot.model.duration import Duration
from onthedot.model.instant import format_instant
from onthedot.model.key import ApiKeySpec
from onthedot.model.node import NodeLoad
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.store import Store
from onthedot.store.driver import Row, Transaction
from onthedot.store.queries import Queries
from tests.store.conftest import START, Times
from tests.store.hands import FAILED, Hands, at, every, node_info, spec

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


class TestBeat:
    async def test_it_rises_and_tells_of_the_others(self, store: Store, times: Times):
        assert await store.register(node_info("a")) == START
        await store.register(node_info("b"))
        await times.advance(1000)
        beat = await store.beat("a", NodeLoad())
        assert (beat.now, beat.alive, beat.peers) == (START + 1000, True, [("b", 0)])
        assert (await store.beat("b", NodeLoad())).peers == [("a", 1)]

    async def test_three_with_the_same_host_are_three(self, store: Store, times: Times):
        for name in ("a", "b", "c"):
            await store.register(node_info(name, name="same", host="same"))
        assert len((await store.beat("a", NodeLoad())).peers) == 2

    async def test_what_it_says_is_shown(self, store: Store, times: Times):
        await store.register(node_info("a", roles=["api", "executor"], offers=["webhook", "command:x"], capacity=7))
        await store.beat("a", NodeLoad(held=3, running=2, lateness_ms=12, draining=True))
        (view,) = await store.list_nodes()
        assert (view.id, view.state, view.held, view.running, view.lateness_ms) == ("a", "draining", 3, 2, 12)
        assert (view.roles, view.offers, view.capacity) == (["api", "executor"], ["webhook", "command:x"], 7)

    async def test_it_is_told_to_drain_and_stays_so(self, store: Store, times: Times):
        await store.register(node_info("a"))
        assert not (await store.beat("a", NodeLoad())).draining
        assert (await store.drain("a")).state == "draining"
        assert (await store.beat("a", NodeLoad())).draining, "though it did not say so itself"
        assert (await store.beat("a", NodeLoad())).draining
        assert [node.state for node in await store.list_nodes()] == ["draining"]
        with pytest.raises(NotFound):
            await store.drain("nobody")

    async def test_an_unknown_node_is_not_alive(self, store: Store, times: Times):
        assert not (await store.beat("nobody", NodeLoad())).alive

    async def test_it_tells_whether_there_are_orders(self, hands: Hands):
        await hands.store.register(node_info("n1"))
        await hands.store.register(node_info("n2"))
        await hands.job()
        run = await hands.one()
        assert not (await hands.store.beat("n1", NodeLoad())).orders
        await hands.store.cancel_run(1, run.id)
        assert (await hands.store.beat("n1", NodeLoad())).orders
        assert not (await hands.store.beat("n2", NodeLoad())).orders

    async def test_it_tells_whether_the_installation_is_open(self, store: Store, times: Times):
        await store.register(node_info("a", roles=["executor"]))
        assert (await store.beat("a", NodeLoad())).open, "no API node, no key: one person's own"
        await store.register(node_info("b", roles=["api"], binding="127.0.0.1:8000"))
        assert (await store.beat("a", NodeLoad())).open
        assert await store.is_open()
        key = (await store.create_key(ApiKeySpec(name="a"), "hash", "otd_")).info
        assert not (await store.beat("a", NodeLoad())).open
        assert not await store.is_open()
        await store.revoke_key(1, key.id)
        assert not (await store.beat("a", NodeLoad())).open, "revoked ones count"

    async def test_an_api_node_that_others_reach_closes_it_while_it_lives(self, store: Store, times: Times):
        await store.register(node_info("a", roles=["executor"]))
        await store.register(node_info("b", roles=["api"], binding="0.0.0.0:8000", exposed=True))
        assert not (await store.beat("a", NodeLoad())).open
        assert not await store.is_open()
        await store.declare_lost("b", 0)
        assert (await store.beat("a", NodeLoad())).open

    async def test_it_tells_where_the_api_listens_on_the_same_machine(self, store: Store, times: Times):
        await store.register(node_info("a", host="here", roles=["executor"]))
        await store.register(node_info("b", host="here", roles=["api"], binding="127.0.0.1:8000"))
        await store.register(node_info("c", host="here", roles=["api"], binding="127.0.0.1:8000"))
        await store.register(node_info("d", host="there", roles=["api"], binding="127.0.0.1:8001"))
        assert (await store.beat("a", NodeLoad())).bindings == ["127.0.0.1:8000"]
        assert (await store.beat("d", NodeLoad())).bindings == ["127.0.0.1:8001"]

    async def test_leave(self, store: Store, times: Times):
        await store.register(node_info("a"))
        await store.take_duty("upkeep", "a")
        await store.leave("a")
        assert await store.list_nodes() == []
        await store.register(node_info("b"))
        assert await store.take_duty("upkeep", "b")


class TestLost:
    async def test_only_if_the_beat_still_is_the_one_seen(self, store: Store, times: Times):
        await store.register(node_info("a"))
        await store.beat("a", NodeLoad())
        assert not await store.declare_lost("a", 0)
        assert await store.declare_lost("a", 1)
        assert not await store.declare_lost("a", 1), "one says it first"
        beat = await store.beat("a", NodeLoad())
        assert not beat.alive
        assert [view.state for view in await store.list_nodes()] == ["lost"]

    async def test_the_lost_are_no_peers(self, store: Store, times: Times):
        await store.register(node_info("a"))
        await store.register(node_info("b"))
        await store.declare_lost("a", 0)
        assert (await store.beat("b", NodeLoad())).peers == []


class TestReclaim:
    async def held_by_lost(self, hands: Hands, **more):
        await hands.store.register(node_info("n1"))
        await hands.job(**more)
        run = await hands.one()
        await hands.store.declare_lost("n1", 0)
        return run

    async def test_a_lost_one_claims_nothing(self, hands: Hands, times: Times):
        await hands.store.register(node_info("n1"))
        await hands.job(every(60_000))
        await hands.job(at(START + 60_000))
        await hands.job(every(60_000), overlap="skip")
        await hands.store.declare_lost("n1", 0)
        await times.set(START + 60_000)
        assert (await hands.claim()).runs == []
        await hands.store.register(node_info("n2"))
        assert len((await Hands(hands.store, "n2").claim()).runs) == 3

    async def test_a_live_node_keeps_its_runs(self, hands: Hands):
        await hands.store.register(node_info("n1"))
        await hands.job()
        await hands.one()
        assert not (await hands.store.beat("n1", NodeLoad())).orphans
        assert await hands.store.reclaim() == 0

    async def test_a_lost_one_s_runs_are_taken_over_at_once(self, hands: Hands, times: Times):
        run = await self.held_by_lost(hands)
        await times.advance(6000)
        assert await hands.store.reclaim() == 1
        again = await Hands(hands.store, "n2").one()
        assert (again.id, again.token, again.tries, again.losses) == (run.id, 2, 0, 1)
        assert [(a.attempt, a.node, a.outcome) for a in again.attempts] == [(1, "n1", "lost")]
        assert (await hands.finish(run)).refused == [run.id]
        await hands.check()

    async def test_a_late_result_that_was_refused_is_kept_beside_the_run(self, hands: Hands, times: Times):
        """Once, however often it is offered; what the run says of itself does not change by it."""
        run = await self.held_by_lost(hands)
        await times.advance(6000)
        assert await hands.store.reclaim() == 1
        other = Hands(hands.store, "n2")
        again = await other.one()
        await times.advance(1000)
        assert (await other.finish(again)).recorded == 1
        before = await hands.store.get_run(1, run.id)
        assert before.refused == []
        late = Outcome(kind="error", error="x" * 5000 + "\x00", retryable=True)
        ended = hands.ended(run, late, now=times.now, started_at=START + 10, finished_at=START + 20)
        for _ in range(2):
            assert (await hands.store.finish("n1", [ended])).refused == [run.id]
            await times.advance(1000)
        view = await hands.store.get_run(1, run.id)
        assert msgspec.structs.replace(view, refused=[]) == before
        assert isinstance(view.refused, list)
        (refused,) = view.refused
        assert (refused.attempt, refused.node, refused.outcome) == (1, "n1", "error")
        assert refused.error == "x" * 1000
        times_told = (refused.started_at, refused.finished_at, refused.refused_at)
        assert times_told == tuple(map(format_instant, (START + 10, START + 20, START + 7000)))
        (listed,) = await hands.runs(job_id=run.job_id)
        assert listed.refused is msgspec.UNSET
        assert (await hands.store.get_run(1, run.id)).status == "DONE"
        await hands.store.prune(times.now - 2000)
        assert await hands.sql("SELECT run_id FROM refused_results") != []
        await hands.store.prune(times.now + 1)
        assert await hands.sql("SELECT run_id FROM refused_results") == []
        await hands.check()

    async def test_what_peers_say_of_a_lost_node_is_no_result_of_its(self, hands: Hands, times: Times):
        """Two nodes take back the same run: the second finds it gone."""
        run = await self.held_by_lost(hands)
        lost = Outcome(kind="lost", error="the node was lost")
        await times.advance(6000)
        assert await hands.store.reclaim() == 1
        assert (await hands.finish(run, outcome=lost)).refused == [run.id]
        view = await hands.store.get_run(1, run.id)
        assert view.refused == []

    async def test_each_attempt_tells_when_it_was_claimed(self, hands: Hands, times: Times):
        run = await self.held_by_lost(hands, schedule=at(START + 1500))
        live = await hands.store.get_run(1, run.id)
        assert (live.status, live.claimed_at) == ("PENDING", format_instant(START))
        await times.advance(6000)
        assert await hands.store.reclaim() == 1
        assert (await hands.store.get_run(1, run.id)).claimed_at is None
        other = Hands(hands.store, "n2")
        again = await other.one()
        assert (await other.finish(again)).recorded == 1
        attempts = (await hands.store.get_run(1, run.id)).attempts
        assert [each.claimed_at for each in attempts] == [format_instant(START), format_instant(START + 6000)]
        await hands.job()
        run = await other.one()
        await other.finish(run)
        (attempt,) = (await hands.store.get_run(1, run.id)).attempts
        assert attempt.claimed_at == format_instant(START + 6000)

    @pytest.mark.parametrize("verb", ["pause", "edit", "none"])
    async def test_a_lost_one_s_late_word_does_not_end_a_one_off(self, hands: Hands, times: Times, verb: str):
        """Found by chaos: with the job changed since the claim, the late finish of a lost node ended the job, and its
        run stayed parked for ever."""
        run = await self.held_by_lost(hands)
        await times.advance(6000)
        assert await hands.store.reclaim() == 1
        if verb == "pause":
            await hands.store.pause_job(1, run.job_id)
        elif verb == "edit":
            await hands.store.update_job(1, run.job_id, lambda old: msgspec.structs.replace(old, name="another"))
        before = (await hands.store.get_job(1, run.job_id)).state
        assert (await hands.finish(run)).refused == [run.id]
        assert (await hands.store.get_job(1, run.job_id)).state == before
        assert (await hands.store.resume_job(1, run.job_id)).state == "active"
        other = Hands(hands.store, "n2")
        again = await other.one()
        assert (again.id, again.token) == (run.id, 2)
        assert (await other.finish(again)).recorded == 1
        assert (await hands.store.get_job(1, run.job_id)).state == "ended"
        await hands.check()

    async def test_what_was_held_ahead_had_not_begun(self, hands: Hands):
        await self.held_by_lost(hands, schedule=at(START + 1500))
        await hands.store.reclaim()
        assert [row["losses"] for row in await hands.live()] == [0]

    async def test_whoever_sees_it_whenever(self, hands: Hands):
        """Level-triggered: the row says it, not an event; and each beat tells."""
        await hands.store.register(node_info("m"))
        await self.held_by_lost(hands)
        assert (await hands.store.beat("m", NodeLoad())).orphans
        assert (await hands.store.beat("m", NodeLoad())).orphans
        assert await hands.store.reclaim() == 1
        assert not (await hands.store.beat("m", NodeLoad())).orphans
        assert await hands.store.reclaim() == 0

    async def test_only_theirs_whatever_the_nodes_are_called(self, hands: Hands):
        """They are looked for between the live ones: before, amidst and after them."""
        await hands.create(*(spec() for _ in "abcde"))
        for name in "abcde":
            await Hands(hands.store, name).claim(limit=1)
        for name in "bcd":
            await hands.store.register(node_info(name))
        await hands.store.declare_lost("c", 0)
        assert (await hands.store.beat("b", NodeLoad())).orphans
        assert await hands.store.reclaim() == 3
        assert not (await hands.store.beat("b", NodeLoad())).orphans
        assert sorted(row["node"] for row in await hands.live() if row["state"] == "running") == ["b", "d"]
        assert await hands.store.reclaim() == 0

    @pytest.mark.parametrize("orphan", ["a", "c", "e"])
    async def test_a_beat_tells_wherever_their_names_are(self, hands: Hands, orphan: str):
        for name in "bd":
            await hands.store.register(node_info(name))
        await hands.job()
        await Hands(hands.store, orphan).one()
        assert (await hands.store.beat("b", NodeLoad())).orphans

    async def test_unknown_nodes_are_lost_nodes(self, hands: Hands):
        await hands.job()
        await hands.one()
        assert await hands.store.reclaim() == 1

    async def test_the_third_loss_is_poison(self, hands: Hands, times: Times):
        job = await hands.job()
        await times.advance(1000)
        events: list[tuple[str, str]] = []
        stop = telemetry.subscribe(lambda event: events.append((event.name, event.fields.get("reason", ""))))
        for _ in range(3):
            await hands.one()
            assert await hands.store.reclaim() == 1
        stop()
        (dead,) = (await hands.store.list_dead(1)).items
        assert (dead.reason, dead.losses, dead.tries) == ("poison", 3, 0)
        assert (await hands.store.get_job(1, job)).state == "ended"
        assert ("dead.letter", "poison") in events
        assert [name for name, _ in events].count("run.lost") == 3
        await hands.check()

    async def test_at_most_once_begun_is_unknown(self, hands: Hands, times: Times):
        await hands.job(delivery="at_most_once")
        run = await hands.one()
        await hands.store.begin("n1", [(run.id, run.token)])
        await hands.store.reclaim()
        view = await hands.store.get_run(1, run.id)
        assert (view.status, view.reason, view.outcome) == ("FAILED", "unknown", {"kind": "unknown"})
        assert len((await hands.store.list_dead(1)).items) == 1
        await hands.check()

    async def test_at_most_once_not_begun_is_pending(self, hands: Hands, times: Times):
        await hands.job(delivery="at_most_once")
        await times.advance(1000)
        run = await hands.one()
        await hands.store.reclaim()
        again = await hands.one()
        assert (again.id, again.losses) == (run.id, 0)

    async def change(self, hands: Hands, run: ClaimedRun, **policy):
        def changed(old):
            return msgspec.structs.replace(old, policy=msgspec.structs.replace(old.policy, **policy))

        await hands.store.update_job(1, run.job_id, changed)

    @pytest.mark.parametrize("expires_in", [None, Duration(2000)])
    async def test_made_at_most_once_after_its_claim_it_may_have_been_sent(
        self, hands: Hands, times: Times, expires_in: Duration | None
    ):
        """Found by the simulation: it was sent without a record, as it was at least once then, and the ledger said that
        it never began and was too late."""
        await hands.job(every(MINUTE))
        await times.advance(MINUTE)
        run = await hands.one()
        await self.change(hands, run, delivery="at_most_once", expires_in=expires_in)
        await times.advance(6000)
        assert await hands.store.reclaim() == 1
        again = await hands.one()
        assert (again.id, again.token, again.losses, again.begun_before) == (run.id, 2, 1, True)
        await hands.check()

    async def test_at_most_once_not_begun_is_pending_whatever_its_job_is_now(self, hands: Hands, times: Times):
        await hands.job(every(MINUTE), delivery="at_most_once")
        await times.advance(MINUTE)
        run = await hands.one()
        await self.change(hands, run, delivery="at_least_once")
        assert await hands.store.reclaim() == 1
        again = await hands.one()
        assert (again.id, again.losses, again.begun_before) == (run.id, 0, False)

    async def test_what_was_sent_at_most_once_is_not_sent_again_by_an_edit(self, hands: Hands, times: Times):
        await hands.job(every(MINUTE), delivery="at_most_once")
        await times.advance(MINUTE)
        run = await hands.one()
        await hands.store.begin("n1", [(run.id, run.token)])
        await self.change(hands, run, delivery="at_least_once")
        assert await hands.store.reclaim() == 1
        view = await hands.store.get_run(1, run.id)
        assert (view.status, view.reason) == ("FAILED", "unknown")
        await hands.check()

    async def test_what_began_at_least_once_is_sent_again_by_an_edit(self, hands: Hands, times: Times):
        """Recorded before it was sent because it can expire, not because it is at most once."""
        await hands.job(every(MINUTE), expires_in=Duration(MINUTE))
        await times.advance(MINUTE)
        run = await hands.one()
        await hands.store.begin("n1", [(run.id, run.token)])
        await self.change(hands, run, delivery="at_most_once")
        assert await hands.store.reclaim() == 1
        again = await hands.one()
        assert (again.id, again.losses) == (run.id, 1)

    @pytest.mark.parametrize("back", ["given", "failed", "lost"])
    async def test_what_goes_back_is_what_its_job_is_now(self, hands: Hands, times: Times, back: str):
        """The next send is at most once: recalled once more, and lost, it is not sent again."""
        await hands.job(every(MINUTE))
        await times.advance(MINUTE)
        run = await hands.one()
        await self.change(hands, run, delivery="at_most_once")
        if back == "given":
            await hands.store.give_back("n1", [(run.id, run.token)])
        elif back == "failed":
            await hands.finish(run, outcome=FAILED)
            await times.advance(MINUTE // 2)
        else:
            await hands.store.reclaim()
        again = await hands.one()
        assert again.id == run.id
        await hands.store.begin("n1", [(again.id, again.token)])
        await hands.store.pause_job(1, run.job_id)
        await hands.store.reclaim()
        view = await hands.store.get_run(1, run.id)
        assert (view.status, view.reason) == ("FAILED", "unknown")
        await hands.check()

    async def test_of_a_paused_job_it_is_parked(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE))
        await times.advance(MINUTE)
        await hands.one()
        await hands.store.pause_job(1, job)
        await hands.store.reclaim()
        await hands.check()
        assert (await hands.claim()).runs == []

    async def test_of_a_deleted_job_it_ends(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE))
        await times.advance(MINUTE)
        await hands.one()
        await hands.store.delete_job(1, job)
        await hands.store.reclaim()
        assert await hands.live() == []
        await hands.check()

    async def test_many_at_once(self, hands: Hands):
        await hands.create(*[spec() for _ in range(30)])
        await hands.claim(1000)
        assert await hands.store.reclaim() == 30


class TestDuties:
    async def test_one_holds_it(self, store: Store, times: Times):
        await store.register(node_info("a"))
        await store.register(node_info("b"))
        assert await store.take_duty("upkeep", "a")
        assert not await store.take_duty("upkeep", "b")
        assert await store.take_duty("upkeep", "a")
        assert await store.take_duty("other", "b")
        assert {view.id: view.leader for view in await store.list_nodes()} == {"a": True, "b": True}

    async def test_until_it_is_not_renewed(self, store: Store, times: Times):
        await store.register(node_info("a"))
        await store.register(node_info("b"))
        await store.take_duty("upkeep", "a")
        await times.advance(14_999)
        assert not await store.take_duty("upkeep", "b")
        await times.advance(1)
        assert await store.take_duty("upkeep", "b")
        assert {view.id: view.leader for view in await store.list_nodes()} == {"a": False, "b": True}

    async def test_a_lost_holder_s_duty_is_free(self, store: Store, times: Times):
        await store.register(node_info("a"))
        await store.register(node_info("b"))
        await store.take_duty("upkeep", "a")
        await store.declare_lost("a", 0)
        assert await store.take_duty("upkeep", "b")

    async def test_a_stamp_in_the_future_is_free(self, store: Store, times: Times):
        """The database's clock was set back an hour: nobody must wait for that hour."""
        await store.register(node_info("a"))
        await store.register(node_info("b"))
        await store.take_duty("upkeep", "a")
        await times.advance(-3_600_000)
        assert await store.take_duty("upkeep", "b")


async def test_a_beat_may_bring_new_offers(store):
    await store.register(node_info("a"))
    (before,) = await store.list_nodes()
    await store.beat("a", NodeLoad(offers=["webhook", "function:new"], capacity=99))
    (after,) = await store.list_nodes()
    assert (after.offers, after.capacity) == (["webhook", "function:new"], 99)
    await store.beat("a", NodeLoad(held=1))
    (kept,) = await store.list_nodes()
    assert (kept.offers, kept.capacity, kept.held) == (after.offers, 99, 1)
    assert before.offers != after.offers


async def test_how_far_the_clock_of_each_node_is_off(store: Store, times: Times):
    """As each says with its beat; nothing is known of one that was lost."""
    for name in "abc":
        await store.register(node_info(name))
    await store.beat("a", NodeLoad(clock_skew_ms=-1200))
    await store.beat("b", NodeLoad(clock_skew_ms=3))
    skews = {node.id: node.clock_skew_ms for node in await store.list_nodes()}
    assert skews == {"a": -1200, "b": 3, "c": None}
    assert await store.declare_lost("a", 1)
    assert {node.id: node.clock_skew_ms for node in await store.list_nodes()}["a"] is None


class TestNamesOfNodes:
    async def test_are_known_after_a_node_has_left_or_was_lost_and_forgotten(self, store: Store, times: Times):
        for name in "abc":
            await store.register(node_info(name))
        named = await store.names_of_nodes(["a", "b", "nobody"])
        assert set(named) == {"a", "b"}
        await store.leave("a")
        assert await store.declare_lost("b", 0)
        await times.advance(2 * DAY)
        await store.beat("c", NodeLoad())
        await store.prune(times.now - 30 * DAY)
        assert [node.id for node in await store.list_nodes()] == ["c"]
        assert await store.names_of_nodes(["a", "b", "nobody"]) == named
        assert await store.names_of_nodes([]) == {}

    async def test_go_with_the_runs_that_refer_to_them(self, store: Store, times: Times):
        """Those of nodes that live stay, however long ago they registered."""
        for name in "ab":
            await store.register(node_info(name))
        await store.leave("a")
        for _ in range(31):
            await times.advance(DAY)
            await store.beat("b", NodeLoad())
            await store.prune(times.now - 30 * DAY)
        assert set(await store.names_of_nodes(["a", "b"])) == {"a", "b"}
        await store.leave("b")
        await times.advance(HOUR)
        await store.prune(times.now - 30 * DAY)
        assert set(await store.names_of_nodes(["a", "b"])) == {"b"}
        await times.advance(31 * DAY)
        await store.prune(times.now - 30 * DAY)
        assert await store.names_of_nodes(["a", "b"]) == {}

    async def test_are_written_once_an_hour(self, store: Store, times: Times):
        await store.register(node_info("a"))
        seen = []
        for _ in range(3):
            await store.beat("a", NodeLoad())
            await store.prune(0)
            rows = await store.driver.read(lambda tx: tx.sql("SELECT seen_at FROM node_names"))
            seen.append(rows[0]["seen_at"] - START)
            await times.advance(HOUR // 2)
        assert seen == [0, 0, HOUR]

    async def test_are_found_and_pruned_by_an_index(self, store: Store, times: Times):
        postgres = store.driver.dialect == "postgres"
        queries = Queries(store.driver.dialect, str(START))
        numbers = "generate_series(1, 5000) AS n"
        if not postgres:
            numbers = "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5000) SELECT n FROM c)"
        fill = f"INSERT INTO node_names (id, name, seen_at) SELECT 'n' || n, 'x', n FROM {numbers}"
        await store.driver.transact_slow(lambda tx: tx.script(f"{fill}; ANALYZE node_names;"))
        for name, args, index in (
            ("names_of_nodes", [["n1", "n2"]], "node_names_pkey" if postgres else "PRIMARY KEY"),
            ("prune_node_names", [2, 10], "node_names_age"),
        ):
            given = args if postgres else [json.dumps(each) if isinstance(each, list) else each for each in args]
            text = f"EXPLAIN {'' if postgres else 'QUERY PLAN '}{queries[name]}"
            steps = await store.driver.read(partial(_sql, text, given))
            plan = "\n".join(str(step["QUERY PLAN" if postgres else "detail"]) for step in steps)
            assert index in plan, plan
            assert "SCAN node_names" not in plan.replace("SCAN node_names USING", ""), plan
            assert "Seq Scan on node_names" not in plan, plan


async def _sql(text: str, given: list[Any], tx: Transaction) -> Sequence[Row]:
    return await tx.sql(text, *given)
