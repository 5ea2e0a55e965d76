"""The Dispatcher, message by message: claims what fits, fires at the instant, obeys, compares, backs off."""

from __future__ import annotations

import asyncio
import random

import pytest

from onthedot.clock import FakeClock
from onthedot.engine.claiming.capacity import Capacity
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.membership.lateness import Lateness
from onthedot.engine.messages import Claimed, Missed, OrdersRead, OwnRows, RecorderMessage, Return
from onthedot.engine.settings import EngineSettings
from onthedot.engine.tuning import NO_SLOT_MS, RECONCILE_EVERY
from onthedot.engine.wiring import Wiring
from onthedot.model.duration import Duration
from onthedot.model.node import NodeLoad
from onthedot.model.run import Attempt, ClaimedRun
from onthedot.store import Claim, Order
from tests.engine.making import FUNCTION, FakeSender, claimed
from tests.engine.scripted import AWAY, ScriptedStore
from tests.engine.test_run_log import inline

INTERRUPTED = Attempt(attempt=1, node="n", started_at=1, finished_at=2, outcome="interrupted")


class Bench:
    """A whole engine whose loops don't run: the test hands the Dispatcher its messages."""

    def __init__(self, clock: FakeClock, *, processes: int = 2, **settings) -> None:
        self.clock = clock
        self.now = clock.now_ms()
        self.store = ScriptedStore(clock)
        self.sender = FakeSender("webhook", "function:reports", now=clock.now_ms, processes=processes)
        self.furnish()
        self.settings = EngineSettings(**{"next_job_count": 10, "concurrency": 4, **settings})
        self.slots = Capacity(
            self.sender.targets.capabilities(),
            capacities=self.sender.targets.capacities(self.settings.concurrency),
            default=4,
            hold_most=self.settings.next_job_count,
        )
        self.crashes: list[BaseException] = []
        self.health = StoreHealth()
        self.wiring = Wiring(
            "me",
            store=self.store,
            targets=self.sender.targets,
            slots=self.slots,
            clock=clock,
            rng=random.Random(1),
            settings=self.settings,
            offload=inline,
            lateness=Lateness(clock),
            health=self.health,
            load=NodeLoad,
            lost=asyncio.Event(),
            crashed=self.crashes.append,
        )
        self.dispatcher = self.wiring.dispatcher
        self.wiring.time.observe(clock.now_ms(), clock.monotonic(), clock.monotonic())
        self.beat()

    def furnish(self) -> None:
        """With other kinds of targets, before anything is built on them."""

    def beat(self) -> None:
        """And there were no orders."""
        self.wiring.lease.renew(self.clock.monotonic())
        self.wiring.lease.heard(self.clock.monotonic())

    def claim(self, *runs: ClaimedRun, next_ready: int | None = None) -> Claim:
        return Claim(now=self.clock.now_ms(), runs=list(runs), next_ready=next_ready)

    def run(self, run_id: str, due_in: int = 0, **options) -> ClaimedRun:
        return claimed(run_id, due_at=self.now + due_in, **options)

    def take(self, *runs: ClaimedRun, limit: int = 100) -> None:
        """As if a claim had just brought these."""
        for run in runs:
            self.wiring.owned.add(run.id, run.token)
        self.dispatcher.handle(Claimed([("webhook", limit, self.claim(*runs))]))

    async def look(self) -> None:
        """One whole round: the question is asked, its answer is handled."""
        self.dispatcher.look()
        await self.clock.settle()
        await self.drain()

    async def drain(self) -> None:
        while len(self.dispatcher.mailbox):
            await self.dispatcher.step()
            await self.clock.settle()

    @property
    def written(self) -> list[RecorderMessage]:
        return self.wiring.recorder.mailbox.take_all()


@pytest.fixture
def bench(fake_clock: FakeClock) -> Bench:
    bench = Bench(fake_clock)
    bench.store.script("claim", *[bench.claim() for _ in range(20)])
    return bench


async def test_claims_kind_by_kind_what_there_is_room_for(bench):
    await bench.look()
    assert bench.store.asked_for("claim") == [(["webhook"], 4), (["function:reports"], 2)]


async def test_what_is_held_or_runs_takes_room(bench):
    bench.sender.hold = asyncio.Event()
    bench.take(bench.run("1-1"), bench.run("2-1", due_in=1000), bench.run("3-1", target=FUNCTION))
    await bench.look()
    assert bench.store.asked_for("claim") == [(["webhook"], 3), (["function:reports"], 1)]
    bench.sender.hold.set()


async def test_a_full_node_claims_nothing(bench):
    bench.take(*(bench.run(f"{n}-1", due_in=1000) for n in range(5)))
    bench.take(*(bench.run(f"{n}-2", due_in=1000, target=FUNCTION) for n in range(3)))
    await bench.look()
    assert bench.store.asked_for("claim") == []


async def test_runs_wait_in_the_heap_for_their_instant(bench, fake_clock):
    bench.take(bench.run("late-1".replace("late", "9"), due_in=1500), bench.run("8-1", due_in=500))
    assert bench.slots.held == 2
    for passed, sent in ((0.499, []), (0.001, ["8-1"]), (0.999, ["8-1"]), (0.001, ["8-1", "9-1"])):
        await fake_clock.advance(passed)
        bench.dispatcher.tick()
        await fake_clock.settle()
        assert bench.sender.sent == sent
    assert bench.sender.sent_at == [bench.now + 500, bench.now + 1500]


async def test_what_is_due_already_starts_with_the_answer(bench, fake_clock):
    bench.take(bench.run("1-1", due_in=-5000), bench.run("2-1"))
    await fake_clock.settle()
    assert bench.sender.sent == ["1-1", "2-1"]
    assert [item.run.id for item in bench.written] == ["1-1", "2-1"]


async def test_a_slow_claim_does_not_delay_what_is_held(bench, fake_clock):
    answer = asyncio.get_running_loop().create_future()

    async def claim_each(*args, **kwargs):
        return await answer

    bench.store.claim_each = claim_each
    bench.take(bench.run("1-1", due_in=100))
    bench.dispatcher.look()
    await fake_clock.advance(0.1)
    bench.dispatcher.tick()
    await fake_clock.settle()
    assert bench.sender.sent == ["1-1"]
    answer.set_result([bench.claim(), bench.claim()])
    await fake_clock.settle()


async def test_one_question_at_a_time(bench, fake_clock):
    for _ in range(3):
        bench.dispatcher.look()
    await fake_clock.settle()
    assert len(bench.store.asked_for("claim")) == 2  # one per kind, once
    await bench.drain()
    assert len(bench.store.asked_for("claim")) == 4  # and once more for what was asked meanwhile


async def test_no_claim_before_the_last_ones_answer_was_taken(fake_clock):
    """Otherwise both would fill the same room."""
    bench = Bench(fake_clock)
    bench.store.script("claim", bench.claim(*(bench.run(f"{n}-1", due_in=900) for n in range(4))))
    bench.store.script("claim", *[bench.claim() for _ in range(5)])
    bench.dispatcher.look()
    await fake_clock.settle()
    assert len(bench.dispatcher.mailbox) == 1  # the answer waits
    bench.dispatcher.look()
    await fake_clock.settle()
    assert len(bench.store.asked_for("claim")) == 2
    await bench.drain()
    assert bench.store.asked_for("claim")[2:] == [(["webhook"], 1), (["function:reports"], 2)]


async def test_a_claim_that_filled_its_limit_is_followed_by_another(fake_clock):
    bench = Bench(fake_clock)
    bench.store.script("claim", bench.claim(*(bench.run(f"{n}-1") for n in range(4))), bench.claim())
    bench.store.script("claim", bench.claim(bench.run("5-1")), *[bench.claim() for _ in range(5)])
    await bench.look()
    assert bench.sender.sent == ["0-1", "1-1", "2-1", "3-1", "5-1"]


async def test_unless_what_it_brought_lasts_for_a_while(fake_clock):
    """Then a portion of the room has to come free before, or half that time pass: else it claims what has just come
    free, run by run."""
    bench = Bench(fake_clock, concurrency=100, next_job_count=40)
    bench.store.script("claim", *[bench.claim() for _ in range(20)])
    bench.take(*(bench.run(f"{n}-1", due_in=1000 if n < 9 else 1200 + n) for n in range(40)), limit=40)
    assert bench.wiring.look_times.latest <= fake_clock.monotonic() + 0.62
    await fake_clock.advance(1.0)
    bench.dispatcher.tick()
    await fake_clock.settle()
    await bench.drain()
    assert len(bench.sender.sent) == 9
    assert bench.store.asked_for("claim") == []
    await fake_clock.advance(0.209)
    bench.dispatcher.tick()
    await fake_clock.settle()
    await bench.drain()
    assert len(bench.sender.sent) == 10
    assert bench.store.asked_for("claim") == [(["webhook"], 10)]


async def test_a_hint_to_a_full_node_is_followed_once_a_single_slot_is_free(fake_clock):
    """Something may be due before all that it holds: it need not wait until a whole portion has gone."""
    bench = Bench(fake_clock, concurrency=100, next_job_count=40)
    bench.store.script("claim", *[bench.claim() for _ in range(20)])
    bench.take(*(bench.run(f"{n}-1", due_in=1000 + 10 * n) for n in range(40)), limit=40)
    await bench.look()
    assert [kinds for kinds, _ in bench.store.asked_for("claim")] == [["function:reports"]]
    await fake_clock.advance(1.0)
    bench.dispatcher.tick()
    await fake_clock.settle()
    bench.dispatcher.tick()
    await fake_clock.settle()
    await bench.drain()
    assert bench.store.asked_for("claim")[1:] == [(["webhook"], 1)]


async def test_what_the_backlog_had_no_room_for_is_claimed_when_it_has(fake_clock):
    bench = Bench(fake_clock)
    bench.sender.hold = asyncio.Event()
    late = [bench.run(f"{n}-1", due_in=-100_000) for n in range(3)]
    bench.store.script("claim", bench.claim(*late, next_ready=bench.now), bench.claim())
    bench.store.script("claim", bench.claim(next_ready=bench.now), *[bench.claim() for _ in range(9)])
    await bench.look()
    assert bench.slots.pools["webhook"].backlog.room(1, 4) == 0
    asked = len(bench.store.asked_for("claim"))
    await bench.drain()
    assert len(bench.store.asked_for("claim")) == asked  # three of four slots are taken: nothing for now
    bench.sender.hold.set()
    await fake_clock.settle()
    await bench.drain()
    assert [kinds for kinds, _ in bench.store.asked_for("claim")[asked:]] == [["webhook"]]


async def test_a_claim_that_left_late_runs_behind_is_followed_by_another(fake_clock):
    bench = Bench(fake_clock)
    bench.store.script("claim", bench.claim(bench.run("1-1"), next_ready=bench.now), bench.claim())
    bench.store.script("claim", bench.claim(bench.run("2-1")), *[bench.claim() for _ in range(5)])
    await bench.look()
    assert bench.sender.sent == ["1-1", "2-1"]


async def test_a_look_while_all_slots_are_taken_does_not_put_off_the_next_claim(bench, fake_clock):
    """It found no room, and switched off what a free slot tells: the next claim came with the poll, a second
    later. The other pool had no room for the look either."""
    bench.sender.hold = asyncio.Event()
    bench.take(*(bench.run(f"{n}-2", target=FUNCTION) for n in range(2)))
    bench.take(*(bench.run(f"{n}-1") for n in range(4)), limit=4)
    await fake_clock.settle()
    assert bench.slots.running == 6
    await bench.look()
    assert bench.store.asked_for("claim") == []
    bench.sender.hold.set()
    await fake_clock.settle()
    await bench.drain()  # what the slots that came free say; no time passes, nobody else looks
    assert [kinds for kinds, _ in bench.store.asked_for("claim")] == [["webhook"], ["function:reports"]]


async def test_ready_runs_that_could_not_be_taken_are_no_reason_to_spin(fake_clock):
    """Another node is at them this moment: look again soon, not at once."""
    bench = Bench(fake_clock)
    bench.store.script("claim", *[bench.claim(next_ready=bench.now) for _ in range(20)])
    await bench.look()
    assert len(bench.store.asked_for("claim")) == 2


async def test_what_was_claimed_before_the_store_went_away_is_kept(bench, fake_clock):
    """One kind's claim came through, the next one's did not: the first is ours, and rows are compared before more."""

    async def claim_each(*args, **kwargs):
        return [bench.claim(bench.run("1-1", due_in=500))]

    bench.store.claim_each = claim_each
    await bench.look()
    assert bench.slots.held == 1
    assert bench.wiring.owned.snapshot() == {"1-1": 1}
    assert not bench.health.ok
    bench.store.script("held", [("1-1", 1)])
    await fake_clock.advance(0.2)
    bench.dispatcher.look()
    await fake_clock.settle()
    assert [name for name, _ in bench.store.asked] == ["held"]


async def test_without_a_good_lease_nothing_is_started(bench, fake_clock):
    await fake_clock.advance(4.5)
    bench.take(bench.run("1-1"))
    bench.dispatcher.tick()
    await fake_clock.settle()
    assert bench.sender.sent == []
    bench.beat()
    bench.dispatcher.tick()
    await fake_clock.settle()
    assert bench.sender.sent == ["1-1"]


@pytest.mark.parametrize("wanted_back", [True, False])
async def test_who_was_frozen_reads_its_orders_before_it_starts_anything(bench, fake_clock, wanted_back):
    """Seen: sent 3.8 s after its job was deleted, by a node that was frozen in between and still had its lease."""
    bench.take(bench.run("1-1", due_in=500))
    await fake_clock.advance(3)  # nothing runs here meanwhile
    assert bench.wiring.lease.left() > 0
    bench.dispatcher.tick()
    await fake_clock.settle()
    assert bench.sender.sent == []
    asked = fake_clock.monotonic()
    if wanted_back:
        bench.dispatcher.handle(OrdersRead([Order(run_id="1-1", token=1, what="recall")], asked))
    else:
        bench.wiring.lease.heard(asked)
    bench.dispatcher.tick()
    await fake_clock.settle()
    assert bench.sender.sent == ([] if wanted_back else ["1-1"])


async def test_a_run_without_a_slot_waits_a_moment(bench, fake_clock):
    bench.sender.hold = asyncio.Event()
    bench.take(*(bench.run(f"{n}-1") for n in range(5)))
    await fake_clock.settle()
    assert len(bench.sender.sent) == 4
    bench.sender.hold.set()
    await fake_clock.settle()
    assert len(bench.sender.sent) == 5
    assert (bench.slots.held, bench.slots.running) == (0, 0)


async def test_a_run_without_a_slot_for_100_ms_is_given_back(bench, fake_clock):
    bench.sender.hold = asyncio.Event()
    bench.take(*(bench.run(f"{n}-1") for n in range(5)))
    await fake_clock.advance(NO_SLOT_MS / 1000 - 0.001)
    bench.dispatcher.tick()
    assert bench.written == []
    await fake_clock.advance(0.001)
    bench.dispatcher.tick()
    assert bench.written == [Return("4-1", 1)]
    assert bench.slots.held == 0
    bench.sender.hold.set()
    await fake_clock.settle()
    assert len(bench.sender.sent) == 4


async def test_expired_runs_are_skipped_not_sent(bench, fake_clock):
    bench.take(
        bench.run("1-1", due_in=-2001, expires_in=Duration(2000)),
        bench.run("2-1", due_in=-2000, expires_in=Duration(2000)),
    )
    await bench.wiring.gate.step()  # whether it began must be known, should we be lost
    await fake_clock.settle()
    assert bench.sender.sent == ["2-1"]
    expired = bench.written[0]
    assert (expired.run.id, expired.outcome.kind, expired.started_at) == ("1-1", "expired", None)
    assert bench.slots.held == 0


@pytest.mark.parametrize("before", [{"tries": 1}, {"losses": 1}, {"attempts": [INTERRUPTED]}])
async def test_what_began_in_time_does_not_expire(bench, fake_clock, before):
    """It would be in the ledger as skipped, and was sent."""
    bench.take(bench.run("1-1", due_in=-60_000, expires_in=Duration(2000), **before))
    await fake_clock.settle()
    assert bench.sender.sent == ["1-1"]


async def test_at_most_once_goes_to_the_gate_first(bench, fake_clock):
    bench.take(bench.run("1-1", delivery="at_most_once"))
    await fake_clock.settle()
    assert bench.sender.sent == []
    await bench.wiring.gate.step()
    await fake_clock.settle()
    assert bench.sender.sent == ["1-1"]


async def test_a_recall_gives_back_what_has_not_started(bench, fake_clock):
    bench.sender.hold = asyncio.Event()
    bench.take(bench.run("1-1", due_in=1000), bench.run("2-1"))
    await fake_clock.settle()
    recalls = [Order(run_id=run_id, token=1, what="recall") for run_id in ("1-1", "2-1", "unknown")]
    bench.dispatcher.handle(OrdersRead(recalls))
    bench.dispatcher.handle(OrdersRead(recalls))
    assert bench.written == [Return("1-1", 1)]
    assert bench.sender.cancelled == []
    bench.sender.hold.set()
    await fake_clock.advance(1.0)
    bench.dispatcher.tick()
    assert bench.sender.sent == ["2-1"]


async def test_a_cancel_ends_what_is_held_and_what_runs(bench, fake_clock):
    bench.sender.hold = asyncio.Event()
    bench.take(bench.run("1-1", due_in=1000), bench.run("2-1"))
    await fake_clock.settle()
    cancels = [Order(run_id=run_id, token=1, what="cancel") for run_id in ("1-1", "2-1")]
    bench.dispatcher.handle(OrdersRead(cancels))
    bench.dispatcher.handle(OrdersRead(cancels))
    await fake_clock.settle()
    assert [(item.run.id, item.outcome.kind, item.started_at) for item in bench.written] == [
        ("1-1", "cancelled", None),
        ("2-1", "cancelled", bench.now),
    ]
    assert (bench.slots.held, bench.slots.running) == (0, 0)


async def test_an_order_for_another_token_is_not_for_us(bench, fake_clock):
    bench.take(bench.run("1-1", due_in=1000, token=3))
    bench.dispatcher.handle(
        OrdersRead([Order(run_id="1-1", token=2, what=what) for what in ("cancel", "recall", "gone")])
    )
    assert bench.written == []
    assert bench.slots.held == 1


async def test_what_is_gone_is_dropped(bench, fake_clock):
    bench.sender.hold = asyncio.Event()
    bench.take(bench.run("1-1", due_in=1000), bench.run("2-1"))
    await fake_clock.settle()
    bench.dispatcher.handle(OrdersRead([Order(run_id=run_id, token=1, what="gone") for run_id in ("1-1", "2-1")]))
    await fake_clock.settle()
    assert bench.written == []
    assert bench.sender.cancelled == ["2-1"]
    assert len(bench.wiring.owned) == 0
    assert (bench.slots.held, bench.slots.running) == (0, 0)


async def test_every_five_seconds_rows_are_compared(bench, fake_clock):
    await bench.look()
    assert bench.store.asked_for("held") == []
    await fake_clock.advance(RECONCILE_EVERY)
    bench.beat()
    bench.store.script("held", [("stray-1", 7)])
    bench.dispatcher.tick()
    await fake_clock.settle()
    await bench.drain()
    assert bench.store.asked_for("held") == ["me"]
    assert bench.written == [Return("stray-1", 7)]


async def test_rows_that_are_known_or_were_finished_meanwhile_stay(bench, fake_clock):
    bench.take(bench.run("1-1", due_in=1000))
    bench.dispatcher.handle(OwnRows([("1-1", 1), ("2-1", 1)], {"1-1": 1, "2-1": 1}))
    assert bench.written == []


async def test_what_we_hold_without_a_row_is_let_go(bench, fake_clock):
    bench.take(bench.run("1-1", due_in=1000))
    bench.dispatcher.handle(OwnRows([], {"1-1": 1}))
    assert bench.slots.held == 0
    assert bench.written == []
    await fake_clock.advance(1.0)
    bench.dispatcher.tick()
    assert bench.sender.sent == []


async def test_after_a_claim_without_an_answer_rows_are_compared_before_anything_else(fake_clock):
    bench = Bench(fake_clock)
    bench.store.script("claim", AWAY, *[bench.claim() for _ in range(5)])
    bench.store.script("held", [("1-1", 4)])
    await bench.look()
    assert [name for name, _ in bench.store.asked] == ["claim"]
    await fake_clock.advance(0.1)
    await bench.look()
    assert [name for name, _ in bench.store.asked] == ["claim", "held", "claim", "claim"]
    assert bench.written == [Return("1-1", 4)]


async def test_a_round_that_failed_half_way_keeps_what_was_answered(bench, fake_clock):
    bench.wiring.owned.add("1-1", 1)
    bench.dispatcher.handle(Missed([("webhook", 4, bench.claim(bench.run("1-1")))], AWAY))
    await fake_clock.settle()
    assert bench.sender.sent == ["1-1"]


async def test_backs_off_while_the_database_is_away(fake_clock):
    bench = Bench(fake_clock)
    bench.store.script("held", *[AWAY] * 1000)
    bench.store.script("claim", AWAY)
    for _ in range(600):
        bench.dispatcher.look()
        await fake_clock.advance(0.1)
        await bench.drain()
    assert 25 <= len(bench.store.asked) <= 80  # a minute at up to 2 s, not 600


async def test_an_error_nobody_expected_stops_the_node(bench, fake_clock):
    bench.store.script("held", ValueError("a bug"))
    await fake_clock.advance(RECONCILE_EVERY)
    bench.dispatcher.tick()
    await fake_clock.settle()
    assert [str(error) for error in bench.crashes] == ["a bug"]


async def test_closing_gives_back_what_is_held_and_what_a_claim_still_brings(fake_clock):
    bench = Bench(fake_clock)
    answer = asyncio.get_running_loop().create_future()

    async def claim_each(*args, **kwargs):
        return await answer

    bench.store.claim_each = claim_each  # type: ignore[method-assign]  # an answer that takes its time
    bench.take(bench.run("1-1", due_in=1000))
    bench.dispatcher.look()
    closing = asyncio.ensure_future(bench.dispatcher.close(5.0))
    await fake_clock.settle()
    assert not closing.done()
    answer.set_result([bench.claim(bench.run("2-1")), bench.claim()])
    await fake_clock.settle()
    await closing
    assert {item.run_id for item in bench.written if isinstance(item, Return)} == {"1-1", "2-1"}
    assert bench.sender.sent == []
    assert bench.slots.held == 0


async def test_closing_does_not_wait_for_ever_for_a_claim(fake_clock):
    bench = Bench(fake_clock)
    never = asyncio.get_running_loop().create_future()

    async def claim_each(*args, **kwargs):
        return await never

    bench.store.claim_each = claim_each  # type: ignore[method-assign]  # no answer at all
    bench.dispatcher.look()
    closing = asyncio.ensure_future(bench.dispatcher.close(5.0))
    await fake_clock.advance(4.9)
    assert not closing.done()
    await fake_clock.advance(0.2)
    assert closing.done()
    assert never.cancelled()
