"""The client against the real API: what one says, the other understands."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from onthedot.client import AsyncClient
from onthedot.errors import (
    Conflict,
    IdempotencyMismatch,
    Invalid,
    NotAvailable,
    NotFound,
    TooLarge,
    Unauthorized,
    VersionMismatch,
)
from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.key import ApiKeySpec
from onthedot.model.policy import Policy, Retry
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget
from onthedot.model.timer import TimerSpec

URL = "http://127.0.0.1:9/"


def spec(key: str | None = None, **fields) -> JobSpec:
    given = {"schedule": Schedule(every=Duration.parse("1h")), "target": WebhookTarget(url=URL), **fields}
    return JobSpec(key=key, **given)


@pytest.fixture
async def client(address) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(address) as client:
        yield client


async def test_a_job_s_whole_life(client):
    full = spec(
        "report",
        name="Report",
        policy=Policy(timeout=Duration.parse("10s"), retry=Retry(attempts=5), overlap="skip"),
        params={"n": 1},
        tags=["a"],
    )
    made = await client.create_job(full)
    assert (made.key, made.policy, made.params, made.tags) == ("report", full.policy, {"n": 1}, ["a"])
    assert await client.get_job(made.id) == made
    assert await client.get_job_by_key("report") == made
    patched = await client.patch_job(made.id, {"name": None, "tags": ["b"]}, if_match=made.version)
    assert (patched.name, patched.tags, patched.version) == (None, ["b"], made.version + 1)
    with pytest.raises(VersionMismatch):
        await client.patch_job(made.id, {"name": "x"}, if_match=made.version)
    replaced = await client.replace_job(made.id, spec("report"))
    assert replaced.tags == []
    assert (await client.put_job_by_key("report", spec("report"))).version == replaced.version
    assert (await client.pause_job(made.id)).state == "paused"
    assert (await client.resume_job(made.id)).state == "active"
    await client.delete_job(made.id)
    with pytest.raises(NotFound):
        await client.get_job(made.id)


async def test_what_is_refused_comes_back_field_by_field(client):
    with pytest.raises(Invalid) as caught:
        await client.create_job(spec(schedule=Schedule(cron="61 * * * *", tz="Mars/Base")))
    assert {problem.path for problem in caught.value.problems} == {"schedule.cron", "schedule.tz"}
    assert all(problem.accepted for problem in caught.value.problems)
    with pytest.raises(NotAvailable):
        await client.create_job(spec(schedule=Schedule(rrule="FREQ=DAILY")))
    await client.create_job(spec("taken"))
    with pytest.raises(Conflict):
        await client.create_job(spec("taken"))
    with pytest.raises(TooLarge):
        await client.create_job(spec(params={"x": "y" * 2_000_000}))


async def test_the_same_request_twice_is_one(client):
    first = await client.create_job(spec(), idempotency_key="once")
    assert (await client.create_job(spec(), idempotency_key="once")).id == first.id
    with pytest.raises(IdempotencyMismatch):
        await client.create_job(spec(name="other"), idempotency_key="once")


async def test_a_batch_and_all_its_pages(client):
    answers = await client.create_many([spec(f"job-{n:02}", tags=["many"]) for n in range(25)])
    assert [answer.status for answer in answers] == [201] * 25
    wrong = await client.create_many([spec("job-00"), spec("new", schedule=Schedule(cron="x"))])
    assert [answer.status for answer in wrong] == [409, 422]
    assert wrong[1].errors[0].path == "schedule.cron"
    page = await client.list_jobs(tag="many", limit=10)
    assert len(page.items) == 10
    assert page.next is not None
    seen = [job.key async for job in client.iter_jobs(tag="many", limit=10)]
    assert sorted(seen) == [f"job-{n:02}" for n in range(25)]
    assert [job.key async for job in client.iter_jobs(q="JOB-1", limit=3)] == [f"job-1{n}" for n in range(10)]


async def test_runs_by_hand(client):
    job = await client.create_job(spec("hand", schedule=Schedule(every=Duration.parse("1h"), start="2024-01-01")))
    run = await client.run_job(job.id, idempotency_key="now")
    assert (run.kind, run.status, run.key) == ("manual", "PENDING", "hand")
    assert (await client.run_job(job.id, idempotency_key="now")).id == run.id
    assert (await client.get_run(run.id)).id == run.id
    assert await client.run_logs(run.id) == ""
    assert (await client.cancel_run(run.id)).status == "CANCELLED"
    with pytest.raises(Conflict):
        await client.cancel_run(run.id)
    again = await client.retry_run(run.id)
    assert again.kind == "redrive"
    made = await client.backfill_job(job.id, "2024-01-02T00:00:00Z", "2024-01-02T05:00:00Z")
    assert len(made) == 6
    assert {item.id async for item in client.iter_runs(job_id=job.id, status="CANCELLED")} == {run.id}
    assert [item async for item in client.iter_dead()] == []
    assert await client.redrive() == []


async def test_timers_previews_and_explanations(client):
    timer = await client.create_timer(TimerSpec(minutes=1, url=URL))
    assert timer.time_left == 60
    assert 0 < (await client.get_timer(timer.id)).time_left <= 60
    with pytest.raises(NotFound):
        await client.get_timer(4711)
    seen = await client.preview(Schedule(cron="0 3 * * *"), after="2026-01-01T00:00:00Z", count=2)
    assert seen.fires == ["2026-01-01T03:00:00.000Z", "2026-01-02T03:00:00.000Z"]
    job = await client.create_job(spec(schedule=Schedule(cron="0 3 * * *")))
    told = await client.explain(job.id, "2033-01-01T03:00:00Z")
    assert (told.slot, told.because) == (True, "it will fire")


async def test_a_file_is_applied_as_a_whole(client):
    report = await client.sync_jobs("jobs.json", [spec("a"), spec("b")], dry_run=True)
    assert report.created == ["a", "b"]
    await client.sync_jobs("jobs.json", [spec("a"), spec("b")])
    report = await client.sync_jobs("jobs.json", [spec("a", name="new")], prune=True)
    assert (report.updated, report.removed) == (["a"], ["b"])
    with pytest.raises(Invalid) as caught:
        await client.sync_jobs("jobs.json", [spec("a"), spec("c", schedule=Schedule(cron="x"))], prune=True)
    assert caught.value.problems[0].path == "jobs[1].schedule.cron"
    assert [job.key async for job in client.iter_jobs()] == ["a"]


async def test_keys_close_the_door_behind_them(client, address):
    assert await client.list_keys() == []
    admin = await client.create_key(ApiKeySpec(name="admin", scope="admin"))
    with pytest.raises(Unauthorized):
        await client.list_keys()
    async with AsyncClient(address, admin.key) as known:
        reader = await known.create_key(ApiKeySpec(name="reader", scope="read", expires=Duration.parse("1h")))
        assert {key.name for key in await known.list_keys()} == {"admin", "reader"}
        await known.revoke_key(reader.info.id)
        assert [key.name for key in await known.list_keys() if key.revoked_at] == ["reader"]
    async with AsyncClient(address, reader.key) as revoked:
        with pytest.raises(Unauthorized):
            await revoked.list_jobs()


async def test_the_cluster_is_told(client):
    assert await client.list_nodes() == []
    assert (await client.stats())["jobs"] is not None
    assert (await client.health())["status"] == "ok"
    assert (await client.ready())["status"] == "ready"
