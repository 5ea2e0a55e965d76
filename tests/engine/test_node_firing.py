"""A node on the real store: what a user's policy says is what happens, at its instant."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from onthedot.model.duration import Duration
from onthedot.model.instant import format_instant
from onthedot.model.policy import Retry
from onthedot.model.run import Outcome
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget
from onthedot.store import NewJob
from tests.engine.cluster import Cluster
from tests.engine.making import FAILED, FUNCTION, Desk, spec

EVERY_SECOND = Schedule(cron="* * * * * *")


@pytest.fixture
async def cluster(fake_clock):
    cluster = await Cluster.open(fake_clock)
    yield cluster
    await cluster.close()


def due_in(ms: int) -> Schedule:
    return Schedule(in_=Duration(ms))


async def test_a_timer_fires_at_its_instant(cluster, fake_clock):
    node = await cluster.node()
    job = await cluster.create(spec(schedule=due_in(10_000)))
    await fake_clock.advance(9.999)
    assert node.sender.calls == []
    await fake_clock.advance(0.002)
    assert node.sender.sent_at == [cluster.start + 10_000]
    run = await cluster.run(job.id)
    assert (run.status, run.lateness_ms, run.attempt, run.node) == ("DONE", 0, 1, node.id)
    assert (await cluster.store.get_job(1, job.id)).state == "ended"


async def test_a_new_timer_due_soon_is_picked_up_by_hint(cluster, fake_clock):
    node = await cluster.node(poll_interval=3_600_000, granularity=3_600_000)
    await fake_clock.advance(5)
    await cluster.create(spec(schedule=due_in(30)))
    await fake_clock.advance(0.1)
    assert node.sender.sent_at == [cluster.start + 5030]


async def test_without_hints_it_is_found_within_the_poll_gap(cluster, fake_clock):
    node = await cluster.node()
    await fake_clock.advance(5)
    cluster.store.driver.notify = lambda topic: asyncio.sleep(0)
    await cluster.create(spec(schedule=due_in(10)))
    await fake_clock.advance(1.05)
    assert len(node.sender.calls) == 1


async def test_cron_to_the_second_is_never_early_and_never_misses(cluster, fake_clock):
    node = await cluster.node()
    job = await cluster.create(spec(schedule=EVERY_SECOND))
    for _ in range(101):
        await fake_clock.advance(0.1)
    assert node.sender.sent_at == [cluster.start + 1000 * n for n in range(1, 11)]
    runs = await cluster.runs(job.id)
    assert [run.lateness_ms for run in runs if run.status == "DONE"] == [0] * 10
    stats = (await cluster.store.get_job(1, job.id)).stats
    assert (stats.runs, stats.failures, stats.last_lateness_ms) == (10, 0, 0)


async def test_a_node_that_is_drained_ends_what_it_has_and_another_one_takes_the_rest(cluster, fake_clock):
    drained = await cluster.node()
    await cluster.create(spec(schedule=EVERY_SECOND))
    await fake_clock.advance(3)
    assert await cluster.store.drain(drained.id)
    await fake_clock.advance(5)  # its next beat tells it; what it holds ahead fires
    before = len(drained.sender.calls)
    await fake_clock.advance(5)
    assert len(drained.sender.calls) == before >= 3
    assert [node.state for node in await cluster.store.list_nodes()] == ["draining"]
    other = await cluster.node()
    await fake_clock.advance(5)
    assert len(other.sender.calls) >= 5
    assert len(drained.sender.calls) == before


async def test_a_run_that_may_not_overlap_is_on_time_though_it_can_t_be_held(cluster, fake_clock):
    """Laned runs are claimed at their instant: the claim says when the next one is ready."""
    node = await cluster.node()
    await cluster.create(spec(schedule=Schedule(every=Duration(3000)), overlap="skip"))
    await fake_clock.advance(9.5)
    assert [at - cluster.start for at in node.sender.sent_at] == [3000, 6000, 9000]


async def test_a_timeout_is_a_failed_try_and_is_retried(cluster, fake_clock):
    node = await cluster.node()
    node.sender.hold = asyncio.Event()
    job = await cluster.create(spec(schedule=due_in(100), timeout=Duration(500)))
    await fake_clock.advance(0.65)
    node.sender.hold.set()
    assert node.sender.cancelled == node.sender.sent
    await fake_clock.advance(1.5)
    run = await cluster.run(job.id)
    assert (run.status, run.attempt, run.tries) == ("DONE", 2, 2)
    assert [attempt.outcome for attempt in run.attempts] == ["timeout", "ok"]


async def test_retries_back_off_and_end_as_a_dead_letter(cluster, fake_clock):
    node = await cluster.node()
    node.sender.outcomes = [FAILED] * 3
    retry = Retry(attempts=3, backoff=Duration(1000), factor=2)
    job = await cluster.create(spec(schedule=due_in(1000), retry=retry))
    await fake_clock.advance(10)
    first, second, third = node.sender.sent_at
    assert 750 <= second - first <= 1260
    assert 1500 <= third - second <= 2510
    run = await cluster.run(job.id)
    assert (run.status, run.tries, run.error, run.lateness_ms) == ("FAILED", 3, "HTTP 500", 0)
    assert [dead.id for dead in (await cluster.store.list_dead(1)).items] == [run.id]
    assert {call.run_id for call in node.sender.calls} == {run.id}  # the same idempotency key each time
    assert [call.attempt for call in node.sender.calls] == [1, 2, 3]


async def test_retry_after_is_honoured(cluster, fake_clock):
    node = await cluster.node()
    node.sender.outcomes = [Outcome(kind="error", retryable=True, retry_after_ms=20_000)]
    await cluster.create(spec(schedule=due_in(1000)))
    await fake_clock.advance(20.9)
    assert len(node.sender.calls) == 1
    await fake_clock.advance(0.5)
    assert len(node.sender.calls) == 2


async def test_what_is_not_to_be_retried_is_not(cluster, fake_clock):
    node = await cluster.node()
    node.sender.outcomes = [Outcome(kind="error", error="HTTP 404")]
    job = await cluster.create(spec(schedule=due_in(100)))
    await fake_clock.advance(10)
    assert (await cluster.run(job.id)).status == "FAILED"
    assert len(node.sender.calls) == 1


async def test_at_most_once_is_recorded_before_it_is_sent_and_never_sent_again(cluster, fake_clock):
    node = await cluster.node()
    node.sender.outcomes = [FAILED]
    job = await cluster.create(spec(schedule=due_in(100), delivery="at_most_once"))
    await fake_clock.advance(10)
    assert "begin" in node.way.asked
    assert len(node.sender.calls) == 1
    run = await cluster.run(job.id)
    assert (run.status, run.reason) == ("FAILED", "at_most_once")


async def test_expired_while_nobody_could_run_it(cluster, fake_clock):
    job = await cluster.create(spec(schedule=due_in(1000), expires_in=Duration(2000)))
    late = await cluster.create(spec(schedule=due_in(1000)))
    await fake_clock.advance(60)
    node = await cluster.node()
    await fake_clock.advance(2)
    run = await cluster.run(job.id)
    assert (run.status, run.reason) == ("SKIPPED", "late")
    assert (await cluster.run(late.id)).status == "DONE"  # one-off jobs fire, however late
    assert len(node.sender.calls) == 1


@pytest.mark.parametrize(
    ("overlap", "statuses"),
    [
        ("allow", ["DONE", "DONE", "DONE"]),
        ("skip", ["DONE", "SKIPPED", "SKIPPED"]),
        ("queue", ["DONE", "DONE", "SKIPPED"]),
        ("replace", ["CANCELLED", "CANCELLED", "DONE"]),
    ],
)
async def test_overlap(cluster, fake_clock, overlap, statuses):
    """Three slots, the first one's run lasts until after the third."""
    node = await cluster.node()
    node.sender.hold = asyncio.Event()
    schedule = Schedule(every=Duration(10_000), count=3)
    job = await cluster.create(spec(FUNCTION, schedule=schedule, overlap=overlap))
    await fake_clock.advance(32)
    node.sender.hold.set()
    await fake_clock.advance(2)
    runs = await cluster.runs(job.id)
    assert [run.status for run in runs] == statuses
    assert (await cluster.store.get_job(1, job.id)).state == "ended"
    told = [(run.reason, run.error) for run in runs if run.status == "CANCELLED"]
    assert told == [("replaced", f"replaced by run {newer.id}") for newer in runs[1:] if overlap == "replace"]


async def test_missed_slots_fire_once_by_default(cluster, fake_clock):
    job = await cluster.create(spec(schedule=EVERY_SECOND))
    await fake_clock.advance(60.5)
    node = await cluster.node()
    await fake_clock.advance(0.4)
    first = node.sender.calls[0]
    assert first.slot == cluster.start + 60_000
    skipped = [run for run in await cluster.runs(job.id) if run.status == "SKIPPED"]
    assert [(run.slots, run.reason) for run in skipped] == [(59, "coalesced")]


async def test_catch_up_all_fires_each_missed_slot(cluster, fake_clock):
    await cluster.create(spec(schedule=Schedule(every=Duration(10_000)), catch_up="all"))
    await fake_clock.advance(35)
    node = await cluster.node()
    await fake_clock.advance(1)
    assert sorted(call.slot - cluster.start for call in node.sender.calls) == [10_000, 20_000, 30_000]


async def test_a_job_whose_schedule_fails_is_parked_and_the_others_go_on(cluster, fake_clock):
    bad = await cluster.create(spec(schedule=Schedule(cron="0 0 * * *", tz="Europe/Berlin")))
    good = await cluster.create(spec(schedule=Schedule(every=Duration(1000))))
    async with cluster.store.driver.transaction() as tx:  # a zone that this machine no longer knows
        await tx.sql("UPDATE jobs SET spec = replace(spec, 'Europe/Berlin', 'Mars/Olympus') WHERE id = ?1", bad.id)
        await tx.sql("UPDATE runs SET due_at = ?2, ready_at = ?2 WHERE job_id = ?1", bad.id, cluster.start + 500)
    await cluster.node()
    await fake_clock.advance(3.1)
    parked = await cluster.store.get_job(1, bad.id)
    assert parked.state == "quarantined"
    assert "unknown time zone" in (parked.reason or "")
    assert (await cluster.store.get_job(1, good.id)).stats.runs == 3


async def test_a_running_run_is_cancelled_within_a_second(cluster, fake_clock):
    node = await cluster.node()
    node.sender.hold = asyncio.Event()
    job = await cluster.create(spec(FUNCTION, schedule=due_in(100)))
    await fake_clock.advance(0.5)
    (run_id,) = node.sender.sent
    await cluster.store.cancel_run(1, run_id)
    await fake_clock.advance(1.0)
    run = await cluster.run(job.id)
    assert (run.status, node.sender.cancelled) == ("CANCELLED", [run_id])


async def test_a_cancel_that_meets_a_failing_try_wins(cluster, fake_clock):
    """The order stands in the row when the try ends by itself: it must not come back as a retry."""
    node = await cluster.node()
    node.sender.hold = asyncio.Event()
    node.sender.outcomes = [FAILED]
    job = await cluster.create(spec(FUNCTION, schedule=due_in(100)))
    await fake_clock.advance(0.5)
    await cluster.store.cancel_run(1, node.sender.sent[0])
    node.sender.hold.set()
    await fake_clock.advance(5)
    assert (await cluster.run(job.id)).status == "CANCELLED"
    assert len(node.sender.calls) == 1


async def test_a_cancel_of_a_run_held_ahead_survives_that_it_is_given_back(cluster, fake_clock):
    node = await cluster.node()
    job = await cluster.create(spec(schedule=due_in(2500)))
    await fake_clock.advance(1.8)
    (run_id,) = [run_id for run_id, _ in await cluster.store.held(node.id)]
    await cluster.store.cancel_run(1, run_id)
    await cluster.finish(node.node.stop())
    assert (await cluster.run(job.id)).status == "CANCELLED"


async def test_a_cancelled_at_most_once_run_is_not_sent(cluster, fake_clock):
    node = await cluster.node()
    job = await cluster.create(spec(schedule=due_in(2000), delivery="at_most_once"))
    await fake_clock.advance(1.9)
    (run_id,) = [run_id for run_id, _ in await cluster.store.held(node.id)]
    await cluster.store.cancel_run(1, run_id)
    await fake_clock.advance(2)
    assert (await cluster.run(job.id)).status == "CANCELLED"
    assert node.sender.calls == []


async def test_a_pause_recalls_what_is_held_ahead(cluster, fake_clock):
    node = await cluster.node()
    job = await cluster.create(spec(schedule=Schedule(every=Duration(5000))))
    await fake_clock.advance(4.2)  # half the lookahead before it is due, a node has it
    assert node.node.load.held == 1
    await cluster.store.pause_job(1, job.id)
    await fake_clock.advance(10)
    assert node.sender.calls == []
    assert node.node.load.held == 0
    await cluster.store.resume_job(1, job.id)
    await fake_clock.advance(2)
    assert [call.slot - cluster.start for call in node.sender.calls] == [15_000]


async def test_an_edit_recalls_and_the_run_uses_the_new_target(cluster, fake_clock):
    node = await cluster.node()
    job = await cluster.create(spec(schedule=Schedule(every=Duration(5000))))
    await fake_clock.advance(4.2)  # half the lookahead before it is due, a node has it
    assert node.node.load.held == 1
    new = WebhookTarget(url="http://example.com/new")
    await cluster.store.update_job(1, job.id, lambda old: msgspec.structs.replace(old, target=new), if_match=None)
    await fake_clock.advance(2)
    assert [(call.slot - cluster.start, call.target) for call in node.sender.calls] == [(5000, new)]


async def test_a_delete_stops_what_has_not_started(cluster, fake_clock):
    node = await cluster.node()
    job = await cluster.create(spec(schedule=due_in(5000)))
    await fake_clock.advance(4.2)  # half the lookahead before it is due, a node has it
    assert node.node.load.held == 1
    await cluster.store.delete_job(1, job.id, if_match=None)
    await fake_clock.advance(5)
    assert node.sender.calls == []
    assert node.node.load.held == 0


async def test_run_now(cluster, fake_clock):
    node = await cluster.node()
    job = await cluster.create(spec(schedule=Schedule(cron="0 0 1 1 *")))
    await cluster.store.run_job(1, job.id)
    await fake_clock.advance(1.1)
    assert len(node.sender.calls) == 1
    assert node.sender.sent[0].endswith("-m1") or "-m" in node.sender.sent[0]


async def test_run_now_does_not_wait_for_slots_that_are_kept_for_later(cluster, fake_clock):
    node = await cluster.node(processes=2)
    for _ in range(2):
        await cluster.create(spec(FUNCTION, schedule=due_in(3000)))
    job = await cluster.create(spec(FUNCTION, schedule=Schedule(cron="0 0 1 1 *")))
    await fake_clock.advance(2.3)
    assert node.node.load.held == 2
    await cluster.store.run_job(1, job.id)
    await cluster.store.notify("due")
    await fake_clock.advance(0.1)
    assert [call.job_id for call in node.sender.calls] == [job.id]
    await fake_clock.advance(2)
    assert len(node.sender.calls) == 3


async def test_a_held_run_that_finds_no_slot_goes_to_who_has_one(cluster, fake_clock):
    node = await cluster.node(processes=1)
    node.sender.hold = asyncio.Event()
    job = await cluster.create(spec(FUNCTION, schedule=Schedule(cron="0 0 1 1 *")))
    late = await cluster.create(spec(FUNCTION, schedule=due_in(3000)))
    await fake_clock.advance(1.5)
    await cluster.store.run_job(1, job.id)
    await cluster.store.notify("due")
    await fake_clock.advance(0.5)
    assert node.node.load.held == 1
    other = await cluster.node()
    await fake_clock.advance(2.5)
    assert [call.job_id for call in other.sender.calls] == [late.id]
    assert (await cluster.run(late.id)).tries == 1
    node.sender.hold.set()
    await fake_clock.advance(0.5)


async def test_a_node_that_offers_nothing_beats_and_claims_nothing(cluster, fake_clock):
    node = await cluster.node("none:at-all")
    await cluster.create(spec(schedule=due_in(100)))
    await fake_clock.advance(5)
    assert node.node.ready
    assert "claim_each" not in node.way.asked
    assert [info.capacity for info in await cluster.store.list_nodes()] == [0]


async def test_logs_are_on_disk_and_in_the_store(cluster, fake_clock, tmp_path):
    node = await cluster.node(logs_base_directory=tmp_path)
    node.sender.says = ["all is well\n"]
    job = await cluster.create(spec(FUNCTION, key="nightly", schedule=due_in(100)))
    await fake_clock.advance(1)
    run = await cluster.run(job.id)
    assert await cluster.store.run_logs(1, run.id) == "all is well\n"
    text = (tmp_path / "nightly" / f"{run.id}.log").read_text()
    assert "all is well" in text
    assert "execution time" in text


async def test_the_log_of_what_never_began_is_kept_too(cluster, fake_clock, tmp_path):
    """It says why: the engine of a workflow did not answer, an image could not be pulled."""
    node = await cluster.node(logs_base_directory=tmp_path)
    desk = Desk(node.sender)
    job = await cluster.create(spec(key="nightly", schedule=due_in(100)))
    await fake_clock.advance(1)
    (started,) = desk.calls
    started.call.log("Airflow does not answer\n")
    started.tell(Outcome(kind="timeout", error="not started within 60 s"))
    await fake_clock.advance(1)
    run = await cluster.run(job.id)
    assert (run.status, run.started_at) == ("FAILED", None)
    assert await cluster.store.run_logs(1, run.id) == "Airflow does not answer\n"
    last = (tmp_path / "nightly" / f"{run.id}.log").read_text().splitlines()[-1]
    assert last.endswith("attempt 1 timeout: not started within 60 s")


async def test_a_thousand_timers_at_one_instant(cluster, fake_clock):
    node = await cluster.node(concurrency=300)
    at = format_instant(cluster.start + 5000)
    for _ in range(1000):
        await cluster.create(spec(schedule=Schedule(at=at)))
    await fake_clock.advance(5.5)
    assert len(set(node.sender.sent)) == len(node.sender.sent) == 1000
    assert min(node.sender.sent_at) == cluster.start + 5000
    assert node.node.load.running == 0


async def test_a_function_waits_for_a_process_not_for_webhooks(cluster, fake_clock):
    node = await cluster.node(concurrency=1, processes=2)
    node.sender.hold = asyncio.Event()
    for _ in range(4):
        await cluster.create(spec(schedule=due_in(10), timeout=Duration(60_000)))
        await cluster.create(spec(FUNCTION, schedule=due_in(10)))
    await fake_clock.advance(2)
    kinds = sorted(type(call.target).__name__ for call in node.sender.calls)
    assert kinds == ["FunctionTarget", "FunctionTarget", "WebhookTarget"]
    node.sender.hold.set()
    await fake_clock.advance(3)
    assert len(node.sender.calls) == 8


async def test_what_nobody_offers_stays_pending(cluster, fake_clock):
    node = await cluster.node("webhook")
    job = await cluster.create(spec(FUNCTION, schedule=due_in(10)))
    await fake_clock.advance(5)
    assert node.sender.calls == []
    assert (await cluster.store.get_job(1, job.id)).state == "active"


async def test_a_run_by_hand_has_its_own_params_over_those_of_the_job(cluster, fake_clock):
    node = await cluster.node()
    plain = spec(schedule=Schedule(cron="0 0 1 1 *"))
    job = await cluster.create(msgspec.structs.replace(plain, params={"a": 1, "b": 1}))
    await cluster.store.run_job(1, job.id, params={"b": 2})
    await fake_clock.advance(1)
    await cluster.store.run_job(1, job.id)
    await fake_clock.advance(1)
    assert [call.params for call in node.sender.calls] == [{"a": 1, "b": 2}, {"a": 1, "b": 1}]


async def test_a_pause_is_over_at_its_instant(cluster, fake_clock):
    """Whoever has the duty wakes for it; what came due before it was not fired for the pause."""
    node = await cluster.node()
    job = await cluster.create(spec(schedule=Schedule(every=Duration(5000))))
    await cluster.store.pause_job(1, job.id, until=cluster.start + 22_000)
    await fake_clock.advance(21)
    assert node.sender.calls == []
    await fake_clock.advance(10)
    assert [call.slot - cluster.start for call in node.sender.calls] == [25_000, 30_000]
    (gap,) = [row for row in await cluster.runs(job.id) if row.status == "SKIPPED"]
    assert (gap.reason, gap.slots) == ("paused", 4)


async def test_a_pause_that_ended_while_all_nodes_were_away_ends_when_one_is_back(cluster, fake_clock):
    job = await cluster.create(spec(schedule=Schedule(every=Duration(60_000)), catch_up="latest"))
    await cluster.store.pause_job(1, job.id, until=cluster.start + 90_000)
    await fake_clock.advance(300)
    node = await cluster.node()
    await fake_clock.advance(10)
    assert [call.slot - cluster.start for call in node.sender.calls] == [300_000]


async def test_a_store_that_records_nothing_lets_no_memory_grow(cluster, fake_clock):
    """Results wait in a bounded mailbox, their runs keep their slots, and the rest stays in the store."""
    recording = asyncio.Event()
    node = await cluster.node(concurrency=20, next_job_count=50)
    finish = node.way.finish

    async def slow(*args, **named):
        await recording.wait()
        return await finish(*args, **named)

    node.way.finish = slow
    await cluster.store.create_jobs([NewJob(tenant=1, spec=spec(schedule=due_in(100))) for _ in range(2000)])
    for _ in range(30):
        await fake_clock.advance(1)
    depth, size = node.node.mailboxes["recorder"]
    assert size == 100
    assert 100 <= depth <= 2 * 100 + 20 + 50, "twice its size, what runs and what is held"
    backlog = await cluster.store.backlog()
    assert backlog.kinds["webhook"] == backlog.due >= 1600, "what is not taken waits in the store, and is counted"
    recording.set()
    await cluster.until(lambda: len(node.sender.calls) == 2000)
    await cluster.until(lambda: node.node.mailboxes["recorder"][0] == 0)
