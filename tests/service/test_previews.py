"""What a schedule will do, and why a job fired or did not."""

from __future__ import annotations

import pytest

from onthedot.errors import Invalid, NotFound
from onthedot.model.duration import Duration
from onthedot.model.schedule import Schedule
from onthedot.service import preview_schedule
from tests.service.conftest import TENANT, spec

AFTER = "2026-03-28T00:00:00Z"


async def test_the_next_fires_in_utc_with_their_meaning(service):
    seen = await service.preview(Schedule(cron="0 3 * * *", tz="Europe/Berlin"), AFTER, 3)
    assert seen.fires == ["2026-03-28T02:00:00.000Z", "2026-03-29T01:00:00.000Z", "2026-03-30T01:00:00.000Z"]
    assert "03:00" in seen.description


async def test_daylight_saving_is_remarked_on(service):
    seen = await service.preview(Schedule(cron="30 2 * * *", tz="Europe/Berlin"), AFTER, 3)
    assert seen.remarks


async def test_without_after_it_begins_now(service, fake_clock):
    seen = await service.preview(Schedule(every=Duration.parse("1m")), count=2)
    assert seen.fires == ["2023-11-14T22:14:20.000Z", "2023-11-14T22:15:20.000Z"]


async def test_count_bounds_what_there_is(service):
    assert len((await service.preview(Schedule(cron="* * * * *", count=3), AFTER, 10)).fires) == 3
    assert len((await service.preview(Schedule(at="2026-03-28T10:00:00Z"), AFTER, 10)).fires) == 1


@pytest.mark.parametrize(
    ("schedule", "after", "count", "path"),
    [
        (Schedule(cron="61 * * * *"), AFTER, 1, "schedule.cron"),
        (Schedule(), AFTER, 1, "schedule"),
        (Schedule(cron="* * * * *"), "tomorrow", 1, "after"),
        (Schedule(cron="* * * * *"), "2026-03-28T00:00:00", 1, "after"),
        (Schedule(cron="* * * * *"), AFTER, 0, "count"),
        (Schedule(cron="* * * * *"), AFTER, 1001, "count"),
    ],
)
def test_a_wrong_question_is_refused(schedule, after, count, path):
    with pytest.raises(Invalid) as caught:
        preview_schedule(schedule, now=0, after=after, count=count)
    assert caught.value.problems[0].path.startswith(path)


async def test_explain_an_instant_to_come(service):
    job = await service.create_job(TENANT, spec(schedule=Schedule(cron="0 3 * * *")))
    told = await service.explain(TENANT, job.id, "2033-05-05T03:00:00Z")
    assert (told.slot, told.because) == (True, "it will fire")
    assert (told.previous, told.next) == ("2033-05-04T03:00:00.000Z", "2033-05-06T03:00:00.000Z")


async def test_explain_what_is_no_slot(service):
    job = await service.create_job(TENANT, spec(schedule=Schedule(cron="0 3 * * *")))
    told = await service.explain(TENANT, job.id, "2033-05-05T03:00:01Z")
    assert not told.slot
    assert "does not fire at this instant" in told.because


async def test_explain_a_paused_job(service):
    job = await service.create_job(TENANT, spec(schedule=Schedule(cron="0 3 * * *"), paused=True))
    told = await service.explain(TENANT, job.id, "2033-05-05T03:00:00Z")
    assert told.because == "it would fire, but the job is paused"


async def test_explain_what_was_before_the_job(service):
    job = await service.create_job(TENANT, spec(schedule=Schedule(cron="0 3 * * *")))
    told = await service.explain(TENANT, job.id, "2001-05-05T03:00:00Z")
    assert "do not count" in told.because


async def test_explain_slots_that_a_pause_passed_over(service, fake_clock):
    job = await service.create_job(TENANT, spec(schedule=Schedule(every=Duration.parse("1m"))))
    await service.pause_job(TENANT, job.id)
    await fake_clock.advance(600)
    await service.resume_job(TENANT, job.id)
    told = await service.explain(TENANT, job.id, "2023-11-14T22:16:20Z")
    assert told.because == "skipped: the job was paused"
    assert told.run is not None
    assert told.run.status == "SKIPPED"


async def test_explain_needs_an_instant_and_a_job(service):
    job = await service.create_job(TENANT, spec())
    with pytest.raises(Invalid, match="not a valid timestamp"):
        await service.explain(TENANT, job.id, "noon")
    with pytest.raises(NotFound):
        await service.explain(TENANT, 4711, AFTER)


async def test_explain_after_a_run_far_ahead_was_cancelled(service):
    """The cancelled instant is named, and the new schedule fires from now on as it says."""
    job = await service.create_job(TENANT, spec(schedule=Schedule(cron="0 0 1 1 *")))
    await service.cancel_run(TENANT, f"{job.id}-1704067200000")
    told = await service.explain(TENANT, job.id, "2024-01-01T00:00:00Z")
    assert told.because == f"run {job.id}-1704067200000: CANCELLED"
    changed = await service.patch_job(TENANT, job.id, {"schedule": {"cron": "* * * * * *"}})
    told = await service.explain(TENANT, job.id, "2023-11-14T22:13:25Z")
    assert (told.slot, told.because) == (True, "it will fire")
    assert changed.next_run == "2023-11-14T22:13:21.000Z"
    assert (await service.explain(TENANT, job.id, "2024-01-01T00:00:00Z")).run is not None


async def test_explain_an_instant_that_the_job_has_passed_over(service):
    job = await service.create_job(TENANT, spec(schedule=Schedule(cron="0 3 * * *")))
    first = await service.explain(TENANT, job.id, "2023-11-15T03:00:00Z")
    assert "PENDING" in first.because or first.because == "it will fire"
    await service.store.driver.transact_slow(
        lambda tx: tx.sql("UPDATE runs SET slot = slot + 86400000, due_at = due_at + 86400000 WHERE cursor")
    )
    told = await service.explain(TENANT, job.id, "2023-11-15T03:00:00Z")
    assert told.because == "it will not fire: the job continues at 2023-11-16T03:00:00.000Z"
