"""claim: what is ready, in order, what the node offers, without ever waiting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from onthedot.errors import StoreUnavailable
from onthedot.model.duration import Duration
from onthedot.model.instant import format_instant
from onthedot.model.level import LEVEL
from onthedot.model.node import NodeLoad
from onthedot.model.schedule import Schedule
from onthedot.model.targets import CommandTarget, FunctionTarget
from onthedot.store import Claim, Store, Want
from onthedot.store.runs.look import Floor, Seen
from onthedot.store.runs.spec_cache import SpecCache
from tests.store.conftest import START, Times
from tests.store.hands import Hands, at, every, node_info, spec


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


class TestOneOffs:
    async def test_is_claimed_ahead_of_its_instant_and_not_before(self, hands: Hands, times: Times):
        job = await hands.job(at(START + 10_000))
        await times.set(START + 7_999)
        claim = await hands.claim()
        assert (claim.runs, claim.next_ready) == ([], START + 9_000), "with those that come ready meanwhile"
        await times.advance(1)
        claim = await hands.claim()
        (run,) = claim.runs
        assert (run.id, run.due_at, run.token, run.tries) == (f"{job}-{START + 10_000}", START + 10_000, 1, 0)
        assert (run.recurring, run.first_claimed_at, run.kind) == (False, START + 8_000, "scheduled")
        assert claim.now == START + 8_000
        await hands.check()

    async def test_is_claimed_once(self, hands: Hands):
        await hands.job(at(START + 1000))
        assert len((await hands.claim()).runs) == 1
        assert (await Hands(hands.store, "n2").claim()).runs == []

    async def test_however_late(self, hands: Hands, times: Times):
        await hands.job(at(START + 1000))
        await times.advance(40 * 86_400_000)
        assert (await hands.one()).due_at == START + 1000

    async def test_unless_it_expired(self, hands: Hands, times: Times):
        job = await hands.job(at(START + 1000), expires_in=Duration(5000))
        await times.set(START + 6001)
        claim = await hands.claim()
        assert (claim.runs, claim.skipped) == ([], 1)
        (row,) = await hands.ledger()
        assert (row["status"], row["reason"]) == ("skipped", "late")
        assert (await hands.store.get_job(1, job)).state == "ended"
        await hands.check()

    async def test_the_job_s_present_target_is_used(self, hands: Hands):
        job = await hands.job(at(START + 60_000), target=CommandTarget(command="a"))
        new = spec(at(START + 60_000), target=FunctionTarget(function="m:f"))
        await hands.store.update_job(1, job, lambda _: new)
        assert (await hands.live(job))[0]["requires"] == "function:m"

    async def test_its_finish_ends_the_job(self, hands: Hands):
        job = await hands.job(at(START + 1000))
        await hands.finish(await hands.one())
        assert (await hands.store.get_job(1, job)).state == "ended"
        await hands.check()


class TestWhoMayTakeIt:
    async def test_only_what_the_node_offers(self, hands: Hands):
        await hands.create(
            spec(target=FunctionTarget(function="mod:f")), spec(target=CommandTarget(command="c")), spec()
        )
        claim = await hands.claim(offers=["function:mod", "command:other"])
        assert [run.spec.target for run in claim.runs] == [FunctionTarget(function="mod:f")]
        assert len((await hands.claim(offers=["webhook", "command:c"])).runs) == 2

    async def test_newer_jobs_are_left_to_newer_nodes(self, hands: Hands):
        await hands.create(spec(), spec(every(1000)), spec(every(1000), overlap="skip"))
        await hands.sql("UPDATE runs SET level = 2, ready_at = due_at - 2000")
        assert (await hands.claim(level=1)).runs == []
        assert len((await hands.claim(level=2)).runs) == 3

    async def test_a_node_that_was_declared_lost_takes_nothing(self, hands: Hands):
        await hands.store.register(node_info("n1"))
        await hands.job()
        assert await hands.store.declare_lost("n1", 0)
        assert (await hands.claim()).runs == []
        assert not (await hands.store.beat("n1", NodeLoad())).alive

    async def test_no_more_than_the_limit(self, hands: Hands):
        await hands.create(*[spec() for _ in range(5)])
        first = await hands.claim(3)
        assert len(first.runs) == 3
        assert len((await hands.claim(3)).runs) == 2

    async def test_the_oldest_first(self, hands: Hands, times: Times):
        await hands.create(*[spec(at(START + after)) for after in (9000, 1000, 5000, 3000)])
        await times.advance(10_000)
        assert [run.due_at - START for run in (await hands.claim(2)).runs] == [1000, 3000]


class TestALookForSeveralPools:
    async def look(self, hands: Hands, *pools: list[str]) -> list[Seen]:
        return await hands.store.look(pools, level=LEVEL, lookahead_ms=2000, within_ms=900)

    async def test_says_for_each_where_there_is_something(self, hands: Hands, times: Times):
        await hands.create(
            spec(at(START + 1000)),
            spec(every(1000), target=CommandTarget(command="c")),
            spec(every(1000), target=FunctionTarget(function="mod:f"), overlap="skip"),
            spec(at(START + 9000), target=FunctionTarget(function="other:f")),
        )
        await times.set(START + 1000)
        pools = [["webhook"], ["command:b", "command:c"], ["function:mod", "function:other"], ["command:none"]]
        seen = await self.look(hands, *pools)
        assert [(there.free, there.cursors, there.lanes) for there in seen] == [
            (True, False, False),
            (False, True, False),
            (False, False, True),
            (False, False, False),
        ]
        assert [there.nothing for there in seen] == [False, False, False, True]
        assert [there.next_ready for there in seen] == [None, None, START + 8100, None]
        assert {there.now for there in seen} == {START + 1000}

    async def test_and_a_claim_goes_by_it(self, hands: Hands, times: Times):
        await hands.create(spec(at(START + 1000)), spec(at(START + 1000), target=CommandTarget(command="c")))
        await times.set(START + 1000)
        for offers, there in zip(pools := [["webhook"], ["command:c"]], await self.look(hands, *pools), strict=True):
            claim = await hands.claim(offers=offers, within_ms=900, seen=there)
            assert [run.spec.target.capability() for run in claim.runs] == offers
        (there, _) = await self.look(hands, *pools)
        assert there.nothing
        assert (await hands.claim(within_ms=900, seen=there)).runs == []

    async def wants(self, hands: Hands) -> list[Claim]:
        wants = [Want(offers=["webhook"], limit=1), Want(offers=["command:c"], limit=5, late=5)]
        return await hands.store.claim_each("n1", wants, level=LEVEL, lookahead_ms=2000, within_ms=900)

    async def test_each_pool_gets_what_it_wants(self, hands: Hands, times: Times):
        command = CommandTarget(command="c")
        await hands.create(*[spec(at(START + 1000), target=target) for target in (None, None, command, command)])
        await times.set(START + 1000)
        assert [len(claim.runs) for claim in await self.wants(hands)] == [1, 2]
        assert [len(claim.runs) for claim in await self.wants(hands)] == [1, 0]
        assert [len(claim.runs) for claim in await self.wants(hands)] == [0, 0]

    async def test_what_was_claimed_is_told_though_the_next_claim_got_no_answer(
        self, hands: Hands, times: Times, monkeypatch: pytest.MonkeyPatch
    ):
        await hands.create(spec(at(START + 1000)), spec(at(START + 9000), target=CommandTarget(command="c")))
        claim = hands.store.claim

        async def not_commands(node: str, *, offers: Sequence[str], **more: Any) -> Claim:
            if offers != ["webhook"]:
                raise StoreUnavailable("away")
            return await claim(node, offers=offers, **more)

        monkeypatch.setattr(hands.store, "claim", not_commands)
        with pytest.raises(StoreUnavailable):
            await self.wants(hands)  # nothing is due yet, so nothing is to be told
        await times.set(START + 1000)
        (claimed,) = await self.wants(hands)
        assert [run.due_at for run in claimed.runs] == [START + 1000]

    async def test_what_was_seen_may_be_gone(self, hands: Hands, times: Times):
        await hands.job(at(START + 1000))
        await times.set(START + 1000)
        (there,) = await self.look(hands, ["webhook"])
        assert len((await Hands(hands.store, "n2").claim()).runs) == 1
        claim = await hands.claim(within_ms=900, seen=there)
        assert (claim.runs, claim.now) == ([], START + 1000)


class TestWhatIsReadyAhead:
    async def test_is_left_until_the_first_is_due_soon_and_then_taken_with_the_rest(self, hands: Hands, times: Times):
        await hands.create(*[spec(at(START + after)) for after in (3000, 3400, 3900, 9000)])
        await times.set(START + 2000)
        claim = await hands.claim(within_ms=900)
        assert (claim.runs, claim.next_ready) == ([], START + 2100)
        await times.set(START + 2100)
        claim = await hands.claim(within_ms=900)
        assert [run.due_at - START for run in claim.runs] == [3000, 3400, 3900]
        assert claim.next_ready == START + 8100

    async def test_of_a_recurring_job_too(self, hands: Hands, times: Times):
        await hands.job(every(5000))
        await times.set(START + 3500)
        claim = await hands.claim(within_ms=900)
        assert (claim.runs, claim.next_ready) == ([], START + 4100)
        await times.set(START + 4100)
        assert [run.due_at - START for run in (await hands.claim(within_ms=900)).runs] == [5000]

    async def test_waits_for_nothing_that_is_due_at_once(self, hands: Hands, times: Times):
        """A run by hand, behind one that is ready for longer: the look sees more than the first."""
        await hands.job(at(START + 3500))
        manual = await hands.job(at(START + 60_000))
        await times.set(START + 2000)
        await hands.store.run_job(1, manual)
        assert manual in [run.job_id for run in (await hands.claim(within_ms=900)).runs]

    async def test_does_not_keep_a_lane_waiting_nor_goes_with_it(self, hands: Hands, times: Times):
        await hands.job(at(START + 3500))
        lane = await hands.job(every(2000), overlap="queue")
        await times.set(START + 2000)
        claim = await hands.claim(within_ms=900)
        assert [run.job_id for run in claim.runs] == [lane]
        assert claim.next_ready == START + 2600

    async def test_is_taken_when_many_wait(self, hands: Hands, times: Times):
        await hands.create(*[spec(at(START + 3500 + n)) for n in range(64)])
        await times.set(START + 2000)
        assert len((await hands.claim(within_ms=900)).runs) == 64


class TestBacklog:
    async def late_and_on_time(self, hands: Hands, times: Times):
        await hands.create(*[spec(at(START + 1000 + n)) for n in range(10)])
        await times.set(START + 120_000)
        await hands.create(*[spec(at(START + 121_000 + n)) for n in range(10)])

    async def test_what_is_on_time_goes_first(self, hands: Hands, times: Times):
        await self.late_and_on_time(hands, times)
        claim = await hands.claim(10)
        assert [run.due_at > START + 100_000 for run in claim.runs] == [True] * 10

    async def test_half_of_the_slots_are_kept_for_it(self, hands: Hands, times: Times):
        await hands.create(*[spec(at(START + 1000 + n)) for n in range(10)])
        await times.set(START + 120_000)
        claim = await hands.claim(8)
        assert len(claim.runs) == 4
        assert claim.next_ready == claim.now, "there is more: look again at once, with what room is left"

    async def test_it_gets_no_more_than_the_node_lets_it_have(self, hands: Hands, times: Times):
        await self.late_and_on_time(hands, times)
        late = (await hands.claim(20, late=3)).runs[:3]
        assert [run.due_at - START for run in late] == [1000, 1001, 1002]
        none = await hands.claim(20, late=0)
        assert (none.runs, none.next_ready) == ([], none.now)
        assert len((await hands.claim(20, late=2)).runs) == 2

    async def test_and_not_so_many_of_each_kind_of_run(self, hands: Hands, times: Times):
        """Cursors, lanes and free runs are claimed one kind after the other."""
        await hands.create(*[spec(at(START + 1000 + n)) for n in range(4)])
        await hands.create(*[spec(every(3_600_000, start=format_instant(START + n))) for n in range(4)])
        await times.set(START + 120_000)
        assert len((await hands.claim(20, late=3)).runs) == 3

    async def test_retries_of_old_runs_do_not_make_it_less_than_nothing(self, hands: Hands, times: Times):
        """Ready now, due long ago: more of the backlog than was asked for, and the free ones are claimed after them."""
        await hands.create(*[spec(every(3_600_000, start=format_instant(START + n))) for n in range(4)])
        await hands.create(*[spec(at(START + 1000 + n)) for n in range(4)])
        await times.set(START + 120_000)
        await hands.sql(f"UPDATE runs SET ready_at = {START + 119_000} WHERE recurring")
        claim = await hands.claim(20, late=1)
        assert sum(run.recurring for run in claim.runs) == 4
        assert len(claim.runs) == 4

    async def test_it_moves_on_with_a_single_slot(self, hands: Hands, times: Times):
        await hands.create(spec(at(START + 1000)))
        await times.set(START + 120_000)
        assert len((await hands.claim(1)).runs) == 1

    async def test_marked_rows_count_as_backlog(self, hands: Hands, times: Times):
        """They are due at once, and still no more than half of the slots are theirs."""
        job = await hands.job(every(60_000, start=format_instant(START - 600_000)))
        await hands.store.backfill_job(1, job, start=START - 600_000, end=START - 1, force=True, limit=100)
        rows = [row for row in await hands.live(job) if row["kind"] == "backfill"]
        assert [bool(row["backlog"]) for row in rows] == [True] * 10
        await times.advance(100)  # each is ready a moment after the one before
        assert len((await hands.claim(8)).runs) == 4


class TestFloor:
    def test_one_look_a_second_goes_without(self):
        floor = Floor()
        assert floor.begin(10.0) == (0, True)
        floor.end([5_000_000, 4_000_000], 6_000_000)
        assert floor.begin(10.5) == (3_970_000, False)
        assert floor.begin(10.9) == (3_970_000, False)
        assert floor.begin(11.0) == (0, True)

    def test_with_nothing_pending_it_trails_the_present(self):
        floor = Floor()
        floor.begin(0.0)
        floor.end([], 6_000_000)
        assert floor.begin(0.1) == (5_970_000, False)

    async def test_a_clock_that_was_set_back_takes_it_away(self, hands: Hands, times: Times):
        await times.advance(3_600_000)
        await hands.claim()
        await times.set(START)
        await hands.job()
        await times.advance(2000)
        assert (await hands.claim()).runs == []
        assert len((await hands.claim()).runs) == 1

    async def test_a_run_below_is_found_a_second_later(self, hands: Hands, times: Times):
        await hands.claim()
        await hands.job()
        await hands.sql("UPDATE runs SET ready_at = 5")
        assert (await hands.claim()).runs == []
        floor = hands.store._floors["webhook",]
        floor._looked_at = None  # a second has passed
        assert len((await hands.claim()).runs) == 1

    @pytest.mark.parametrize("late", [0, 1])
    async def test_a_backlog_that_was_left_behind_is_seen_by_the_next_look(self, hands: Hands, times: Times, late: int):
        """Because it has had its share, or because what was on time took the room."""
        old = [await hands.job() for _ in range(2)]
        await times.advance(119_000)
        new = await hands.job(at(START + 120_000))
        await times.advance(1000)
        offers, limit = ["webhook"], 4 if late == 0 else 1
        first = await hands.store.claim("a", offers=offers, level=LEVEL, limit=limit, late=late, lookahead_ms=2000)
        assert [run.job_id for run in first.runs] == [new]
        again = await hands.store.claim("a", offers=offers, level=LEVEL, limit=4, lookahead_ms=2000)
        assert sorted(run.job_id for run in again.runs) == old


class TestSpecs:
    async def test_a_recurring_job_is_decoded_once(self, hands: Hands):
        job = await hands.job(every(1000))
        cache = SpecCache()
        first = (await hands.store.driver.transact_slow(lambda tx: cache.read(tx, [job])))[job]
        again = (await hands.store.driver.transact_slow(lambda tx: cache.read(tx, [job])))[job]
        assert again.spec is first.spec

    async def test_until_it_changes(self, hands: Hands):
        job = await hands.job(every(1000))
        cache = SpecCache()
        await hands.store.driver.transact_slow(lambda tx: cache.read(tx, [job]))
        await hands.store.update_job(1, job, lambda _: spec(every(5000)))
        read = (await hands.store.driver.transact_slow(lambda tx: cache.read(tx, [job])))[job]
        assert (read.spec.schedule, read.version) == (every(5000), 2)

    async def test_it_is_bounded(self, hands: Hands):
        jobs = [view.id for view in await hands.create(*[spec(every(1000)) for _ in range(5)])]
        cache = SpecCache(kept=3)
        await hands.store.driver.transact_slow(lambda tx: cache.read(tx, jobs))
        assert len(cache._jobs) == 3

    async def test_a_job_that_is_gone_is_missing(self, hands: Hands):
        assert await hands.store.driver.transact_slow(lambda tx: SpecCache().read(tx, [99])) == {}


async def test_a_large_claim_takes_as_many_statements_as_a_small_one(hands: Hands, times: Times):
    counts = []
    for n in (3, 300):
        await hands.create(*[spec() for _ in range(n)], *[spec(every(1000)) for _ in range(n)])
        await times.advance(2000)
        said: list[str] = []
        driver, transaction = hands.store.driver, hands.store.driver.transaction
        _listen(driver, said)
        claim = await hands.claim(1000)
        driver.transaction = transaction  # type: ignore[method-assign]
        assert len(claim.runs) >= 2 * n
        counts.append(len(said))
        await hands.finish(*claim.runs)
    assert counts[0] <= counts[1] <= counts[0] + 1 <= 10, (
        "one more at most: a second look when a kind had too little room"
    )


def _listen(driver, said):
    """Write down the name of each statement."""
    from contextlib import asynccontextmanager

    transaction = driver.transaction

    class Listening:
        def __init__(self, tx):
            self._tx = tx

        def __getattr__(self, what):
            inner = getattr(self._tx, what)
            if what not in ("rows", "row", "execute"):
                return inner

            async def call(name, *args):
                said.append(name)
                return await inner(name, *args)

            return call

    @asynccontextmanager
    async def listening():
        async with transaction() as tx:
            yield Listening(tx)

    driver.transaction = listening


async def test_claims_of_a_schedule_in_another_zone(hands: Hands, times: Times):
    await hands.job(Schedule(cron="0 0 1 1 *", tz="Asia/Kathmandu"))
    assert (await hands.claim()).runs == []
