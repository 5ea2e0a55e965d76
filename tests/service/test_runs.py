"""Verbs on runs, and the hints that go with them."""

from __future__ import annotations

import pytest

from onthedot.errors import IdempotencyMismatch, Invalid, NotFound
from onthedot.model.dead import DeadFilter
from onthedot.model.duration import Duration
from onthedot.model.schedule import Schedule
from onthedot.store import RunFilter
from tests.service.conftest import TENANT, spec


async def test_a_run_now_is_hinted_at(service, hints):
    job = await service.create_job(TENANT, spec(schedule=Schedule(every=Duration.parse("1h"))))
    run = await service.run_job(TENANT, job.id)
    assert (run.kind, run.status, run.job_id) == ("manual", "PENDING", job.id)
    assert hints == ["due"]


async def test_the_same_run_now_twice_is_one_run(service):
    job = await service.create_job(TENANT, spec())
    first = await service.run_job(TENANT, job.id, "once")
    assert (await service.run_job(TENANT, job.id, "once")).id == first.id
    assert (await service.run_job(TENANT, job.id, "twice")).id != first.id


async def test_a_run_can_be_read_and_cancelled(service, hints):
    job = await service.create_job(TENANT, spec(schedule=Schedule(every=Duration.parse("1h"))))
    run = await service.run_job(TENANT, job.id)
    assert (await service.get_run(TENANT, run.id)).id == run.id
    cancelled = await service.cancel_run(TENANT, run.id)
    assert cancelled.status == "CANCELLED"
    assert hints == ["due", "orders"]
    page = await service.list_runs(TENANT, RunFilter(job_id=job.id))
    assert [item.id for item in page.items] == [run.id]


async def test_a_cancelled_run_is_run_again_as_a_new_one(service):
    job = await service.create_job(TENANT, spec())
    run = await service.run_job(TENANT, job.id)
    await service.cancel_run(TENANT, run.id)
    again = await service.retry_run(TENANT, run.id, "once")
    assert again.id != run.id
    assert again.status == "PENDING"
    assert (await service.retry_run(TENANT, run.id, "once")).id == again.id
    with pytest.raises(IdempotencyMismatch):
        await service.run_job(TENANT, job.id, "once")


async def test_backfill_runs_the_slots_of_a_span(service, fake_clock, hints):
    job = await service.create_job(
        TENANT, spec(schedule=Schedule(every=Duration.parse("1h"), start="2023-11-01T00:00:00Z"))
    )
    span = ("2023-11-02T00:00:00Z", "2023-11-02T03:00:00Z")
    ids = await service.backfill_job(TENANT, job.id, *span, idempotency_key="once")
    assert len(ids) == 4
    assert await service.backfill_job(TENANT, job.id, *span, idempotency_key="once") == ids
    assert all("-b" in run_id for run_id in ids)
    assert set(hints) == {"due"}


@pytest.mark.parametrize(
    ("start", "end", "path"),
    [
        ("yesterday", "2023-11-02T00:00:00Z", "start"),
        ("2023-11-02T00:00:00Z", "2023-11-03", "end"),
        ("2023-11-02T00:00:00Z", "2023-11-01T00:00:00Z", "end"),
    ],
)
async def test_a_wrong_span_is_refused(service, start, end, path):
    job = await service.create_job(TENANT, spec())
    with pytest.raises(Invalid) as caught:
        await service.backfill_job(TENANT, job.id, start, end)
    assert caught.value.problems[0].path == path


async def test_a_span_without_slots_hints_at_nothing(service, hints):
    job = await service.create_job(TENANT, spec(schedule=Schedule(every=Duration.parse("1h"))))
    assert await service.backfill_job(TENANT, job.id, "2001-01-01T00:00:00Z", "2001-01-02T00:00:00Z") == []
    assert hints == []


async def test_without_dead_letters_there_is_nothing_to_redrive(service, hints):
    assert (await service.list_dead(TENANT)).items == []
    assert await service.redrive(TENANT) == []
    assert await service.redrive(TENANT, wanted=DeadFilter(job_id=1), idempotency_key="once") == []
    assert hints == []


async def test_resuming_hints_at_the_next_run(service, hints):
    job = await service.create_job(TENANT, spec(schedule=Schedule(every=Duration.parse("2s")), paused=True))
    resumed = await service.resume_job(TENANT, job.id)
    assert resumed.state == "active"
    assert "due" in hints


async def test_what_is_unknown_is_not_found(service):
    for verb in (service.get_run, service.cancel_run, service.retry_run, service.run_logs):
        with pytest.raises(NotFound):
            await verb(TENANT, "4711-1")


async def test_no_tenant_touches_another_s_runs(service):
    job = await service.create_job(TENANT, spec())
    run = await service.run_job(TENANT, job.id)
    for verb in (service.get_run, service.cancel_run, service.retry_run, service.run_logs):
        with pytest.raises(NotFound):
            await verb(TENANT + 1, run.id)
