"""Notes: a job that is parked by the end of a run, in a transaction of its own, whatever happens in between."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from onthedot import telemetry
from onthedot.errors import StoreUnavailable
from onthedot.model.duration import Duration
from onthedot.model.instant import NEVER
from onthedot.model.node import NodeLoad
from onthedot.model.policy import Retry
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.store import Store
from onthedot.store.jobs.carry_out import CarriedOut
from tests.store.conftest import START, Times
from tests.store.hands import FAILED, OK, Hands, at, every, node_info

MINUTE = 60_000
GONE = Outcome(kind="error", error="the receiver returned 410 Gone", parks="the receiver returned 410 Gone")
LAST = Outcome(kind="ok", parks="no more calls")
LATER = Retry(attempts=9, backoff=Duration(1000))


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


@pytest.fixture
def said():
    events: list[tuple[str, dict[str, Any]]] = []
    stop = telemetry.subscribe(lambda event: events.append((event.name, event.fields)))
    yield events
    stop()


async def a_run(hands: Hands, times: Times, **more: Any) -> ClaimedRun:
    await hands.job(every(MINUTE), **more)
    await times.advance(MINUTE)
    return await hands.one()


async def notes(hands: Hands) -> list[str]:
    return [row["run_id"] for row in await hands.sql("SELECT * FROM notes ORDER BY id")]


async def carry_out(hands: Hands) -> list[str]:
    """All of them; the runs for which a job was parked."""
    parked = []
    for _ in range(100):
        carried = await hands.store.carry_out_notes()
        if carried is None:
            break
        parked += [each.run_id for each in carried.parked]
    return parked


@pytest.mark.parametrize(("outcome", "status"), [(GONE, "failed"), (LAST, "done")])
async def test_the_end_of_a_run_parks_its_job(hands: Hands, times: Times, said, outcome: Outcome, status: str):
    run = await a_run(hands, times)
    report = await hands.finish(run, outcome=outcome)
    assert (report.recorded, report.refused, report.repeated) == (1, [], [])
    before = await hands.store.get_job(1, run.job_id)
    assert (before.state, await notes(hands)) == ("active", [run.id])
    assert await carry_out(hands) == [run.id]
    job = await hands.store.get_job(1, run.job_id)
    assert (job.state, job.paused, job.version, job.next_run) == ("paused", True, 2, None)
    assert job.pause is not None
    assert job.pause.note == f"system: {outcome.parks} (run {run.id})"
    assert job.pause.until is None
    assert await notes(hands) == []
    assert [row["status"] for row in await hands.ledger()] == [status]
    assert [fields["run_id"] for name, fields in said if name == "job.parked"] == [run.id]
    await times.advance(10 * MINUTE)
    assert (await hands.claim()).runs == []
    await hands.check()


async def test_it_is_resumed_as_from_any_pause(hands: Hands, times: Times):
    run = await a_run(hands, times)
    await hands.finish(run, outcome=GONE)
    await carry_out(hands)
    await times.advance(3 * MINUTE + 1)
    job = await hands.store.resume_job(1, run.job_id)
    assert (job.state, job.pause) == ("active", None)
    await times.advance(MINUTE)
    assert (await hands.one()).slot == START + 5 * MINUTE
    (gap,) = [row for row in await hands.ledger() if row["status"] == "skipped"]
    assert (gap["reason"], gap["slots"]) == ("paused", 3)
    await hands.check()


async def test_what_waits_for_another_try_is_parked_and_what_a_node_holds_is_recalled(hands: Hands, times: Times):
    run = await a_run(hands, times, retry=LATER)
    await hands.finish(run, outcome=FAILED)
    await times.advance(MINUTE - 500)
    second, third = sorted((await hands.claim()).runs, key=lambda found: found.id != run.id)
    assert second.id == run.id
    await hands.finish(second, outcome=GONE)
    await carry_out(hands)
    orders = {row["id"]: row["orders"] for row in await hands.live(run.job_id) if row["state"] == "running"}
    assert orders == {third.id: "recall"}
    assert all(row["ready_at"] == NEVER for row in await hands.live(run.job_id) if row["state"] == "pending")
    await hands.check()


async def test_several_runs_park_it_once(hands: Hands, times: Times, said):
    run = await a_run(hands, times)
    by_hand = await hands.store.run_job(1, run.job_id)
    (other,) = (await hands.claim()).runs
    await hands.finish(run, other, outcome=GONE)
    assert sorted(await notes(hands)) == sorted([run.id, by_hand.id])
    assert len(await carry_out(hands)) == 1
    assert await notes(hands) == []
    assert (await hands.store.get_job(1, run.job_id)).version == 2


async def test_a_job_that_was_changed_since_the_claim_goes_on(hands: Hands, times: Times):
    """Whoever gave it another receiver does not want to hear that the old one is gone."""
    run = await a_run(hands, times)
    await hands.store.update_job(1, run.job_id, lambda spec: msgspec.structs.replace(spec, params={"to": "another"}))
    await hands.finish(run, outcome=GONE)
    assert await carry_out(hands) == []
    assert await notes(hands) == []
    assert (await hands.store.get_job(1, run.job_id)).state == "active"


async def test_a_job_that_was_paused_and_resumed_before_the_note_was_carried_out_goes_on(hands: Hands, times: Times):
    run = await a_run(hands, times)
    await hands.finish(run, outcome=GONE)
    await hands.store.pause_job(1, run.job_id, note="mine")
    await hands.store.resume_job(1, run.job_id)
    assert await carry_out(hands) == []
    assert (await hands.store.get_job(1, run.job_id)).state == "active"


async def test_a_pause_of_a_user_keeps_its_note(hands: Hands, times: Times):
    run = await a_run(hands, times)
    await hands.store.pause_job(1, run.job_id, note="mine")
    await hands.finish(run, outcome=GONE)
    assert await carry_out(hands) == []
    job = await hands.store.get_job(1, run.job_id)
    assert (job.state, job.pause.note if job.pause else None, job.version) == ("paused", "mine", 2)


async def test_a_one_off_has_ended_and_a_deleted_job_is_gone(hands: Hands, times: Times):
    once = await hands.job(at(START + 1000))
    recurring = await hands.job(every(1000))
    await times.advance(1000)
    await hands.finish(*(await hands.claim()).runs, outcome=GONE)
    await hands.store.delete_job(1, recurring)
    assert await carry_out(hands) == []
    assert await notes(hands) == []
    assert (await hands.store.get_job(1, once)).state == "ended"
    await hands.check()


async def lose_the_answer(store: Store, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The next transaction is committed, and whoever asked for it never learns of it: its connection broke, or its
    process died."""
    once = getattr(store.driver, name)

    async def lost(*args: Any, **named: Any) -> Any:
        monkeypatch.setattr(store.driver, name, once)
        await once(*args, **named)
        raise StoreUnavailable("the answer was lost")

    monkeypatch.setattr(store.driver, name, lost)


async def test_who_dies_right_after_the_commit_of_the_end_has_left_the_note(
    hands: Hands, times: Times, monkeypatch: pytest.MonkeyPatch
):
    run = await a_run(hands, times)
    await lose_the_answer(hands.store, monkeypatch, "transact")
    with pytest.raises(StoreUnavailable):
        await hands.finish(run, outcome=GONE)
    assert [row["id"] for row in await hands.ledger()] == [run.id]
    assert await notes(hands) == [run.id]
    again = await hands.finish(run, outcome=GONE)
    assert (again.recorded, again.repeated) == (0, [run.id])
    assert await notes(hands) == [run.id]


async def test_who_dies_right_after_it_was_carried_out_has_done_it_once(
    hands: Hands, times: Times, monkeypatch: pytest.MonkeyPatch
):
    run = await a_run(hands, times)
    await hands.finish(run, outcome=GONE)
    await lose_the_answer(hands.store, monkeypatch, "transact_slow")
    with pytest.raises(StoreUnavailable):
        await hands.store.carry_out_notes()
    assert (await hands.store.get_job(1, run.job_id)).state == "paused"
    await hands.store.resume_job(1, run.job_id)
    assert await carry_out(hands) == []
    assert (await hands.store.get_job(1, run.job_id)).state == "active"


async def test_a_refused_result_leaves_no_note(hands: Hands, times: Times):
    run = await a_run(hands, times)
    report = await Hands(hands.store, "n2").finish(run, outcome=GONE)
    assert report.refused == [run.id]
    assert await notes(hands) == []


async def test_the_beat_says_that_there_are_some(hands: Hands, times: Times):
    await hands.store.register(node_info("n1"))
    run = await a_run(hands, times)
    assert not (await hands.store.beat("n1", NodeLoad())).noted
    await hands.finish(run, outcome=GONE)
    assert (await hands.store.beat("n1", NodeLoad())).noted
    await carry_out(hands)
    assert not (await hands.store.beat("n1", NodeLoad())).noted


async def test_what_a_newer_release_wrote_is_left_to_it_and_keeps_nobody_waiting(hands: Hands, times: Times):
    run = await a_run(hands, times)
    await hands.sql(
        "INSERT INTO notes (kind, tenant, job_id, run_id, said, created_at) VALUES ('chime', 1, 99, '99-1', '{}', 1)"
    )
    await hands.finish(run, outcome=GONE)
    first = await hands.store.carry_out_notes()
    assert first is not None
    assert first.parked == []
    second = await hands.store.carry_out_notes(first.passed)
    assert second is not None
    assert [each.run_id for each in second.parked] == [run.id]
    assert await hands.store.carry_out_notes(first.passed) is None
    assert await notes(hands) == ["99-1"]


async def test_one_that_fails_is_told_and_passed_over(hands: Hands, times: Times, said):
    run = await a_run(hands, times)
    await hands.sql(
        "INSERT INTO notes (kind, tenant, job_id, run_id, said, created_at) "
        f"SELECT 'park', 1, id, 'x', 'not JSON', 1 FROM jobs WHERE id = {run.job_id}"
    )
    other = await hands.job(every(MINUTE))
    await times.advance(MINUTE)
    (theirs,) = [found for found in (await hands.claim()).runs if found.job_id == other]
    await hands.finish(theirs, outcome=GONE)
    first = await hands.store.carry_out_notes()
    assert first is not None
    assert (first.parked, len([name for name, _ in said if name == "note.failed"])) == ([], 1)
    second = await hands.store.carry_out_notes(first.passed)
    assert isinstance(second, CarriedOut)
    assert [each.run_id for each in second.parked] == [theirs.id]


async def test_all_nodes_at_once_park_each_job_once(hands: Hands, times: Times):
    jobs = [await hands.job(every(MINUTE)) for _ in range(8)]
    await times.advance(MINUTE)
    await hands.finish(*(await hands.claim()).runs, outcome=GONE)
    found = await asyncio.gather(*(hands.store.carry_out_notes() for _ in range(20)))
    parked = [each.job_id for carried in found if carried is not None for each in carried.parked]
    parked += [int(run.partition("-")[0]) for run in await carry_out(hands)]
    assert sorted(parked) == sorted(jobs)
    assert {(await hands.store.get_job(1, job)).version for job in jobs} == {2}


async def test_good_ends_beside_it_take_the_short_way(hands: Hands, times: Times):
    gone, good = await hands.job(every(MINUTE)), await hands.job(every(MINUTE))
    await times.advance(MINUTE)
    runs = {run.job_id: run for run in (await hands.claim()).runs}
    now = await hands.store.now()
    results = [hands.ended(runs[gone], GONE, now=now), hands.ended(runs[good], OK, now=now)]
    assert (await hands.store.finish("n1", results)).recorded == 2
    assert await notes(hands) == [runs[gone].id]


async def test_a_call_that_was_accepted_for_later_may_have_been_the_last(hands: Hands, times: Times):
    run = await a_run(hands, times, completion="callback")
    await hands.finish(run, outcome=LAST)
    assert await hands.ledger() == []
    assert await carry_out(hands) == [run.id]
    assert (await hands.store.get_job(1, run.job_id)).state == "paused"
    assert [row["open"] for row in await hands.live(run.job_id) if row["id"] == run.id] == ["callback"]


async def test_those_that_nobody_carries_out_are_counted_with_their_age(hands: Hands, times: Times):
    run = await a_run(hands, times)
    await hands.finish(run, outcome=GONE)
    await times.advance(MINUTE)
    assert await hands.store.count_old_notes(MINUTE + 1) == (0, 0)
    assert await hands.store.count_old_notes(MINUTE) == (1, MINUTE)
    await carry_out(hands)
    assert await hands.store.count_old_notes(0) == (0, 0)
