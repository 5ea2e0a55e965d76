"""Creating and changing jobs: checked as a whole, stored once, hinted at when due soon."""

from __future__ import annotations

import pytest

from onthedot.errors import Conflict, IdempotencyMismatch, Invalid, NotAvailable, NotFound, TooLarge, VersionMismatch
from onthedot.model.duration import Duration
from onthedot.model.instant import format_instant
from onthedot.model.job import JobView
from onthedot.model.policy import Policy
from onthedot.model.schedule import Schedule
from onthedot.model.secret_text import MASK
from onthedot.model.targets import CommandTarget, WebhookTarget
from onthedot.store import JobFilter
from onthedot.telemetry import subscribe
from tests.service.conftest import TENANT, URL, spec


async def test_a_job_is_created_and_read_back(service):
    made = await service.create_job(TENANT, spec(key="a"))
    assert made.state == "active"
    assert await service.get_job(TENANT, made.id) == made
    assert await service.get_job_by_key(TENANT, "a") == made


async def test_a_webhook_s_default_timeout_reads_back_and_is_no_change(service):
    made = await service.create_job(TENANT, spec(key="a"))
    assert str(made.policy.timeout) == "3s"
    assert (await service.replace_job(TENANT, made.id, spec(key="a"))).version == made.version
    kept = await service.patch_job(TENANT, made.id, {"policy": {"timeout": None}})
    assert (str(kept.policy.timeout), kept.version) == ("3s", made.version)
    (batched,) = await service.create_many(TENANT, [spec(key="b")])
    assert str(batched.policy.timeout) == "3s"
    command = spec(key="c", target=CommandTarget(command="backup"))
    assert (await service.create_job(TENANT, command)).policy.timeout is None


async def test_everything_that_is_wrong_is_told_at_once(service):
    wrong = spec(
        schedule=Schedule(cron="0 0 31 2 *", tz="Europe/Berlinn"),
        target=WebhookTarget(url="http://forbidden.example/"),
        policy=Policy(timeout=Duration(0)),
    )
    with pytest.raises(Invalid) as caught:
        await service.create_job(TENANT, wrong)
    assert {problem.path for problem in caught.value.problems} >= {
        "schedule.cron",
        "schedule.tz",
        "target.url",
        "policy.timeout",
    }


async def test_what_is_not_built_says_so(service):
    with pytest.raises(NotAvailable, match="not available"):
        await service.create_job(TENANT, spec(schedule=Schedule(rrule="FREQ=DAILY")))


async def test_a_past_time_is_judged_by_the_store_s_clock(service, fake_clock):
    fake_clock.step_wall(0)
    with pytest.raises(Invalid, match="past"):
        await service.create_job(TENANT, spec(schedule=Schedule(at="2001-01-01T00:00:00Z")))


async def test_a_repeat_after_its_time_is_answered_with_the_job_that_was_made(service, fake_clock):
    """The first answer was lost, the user asks again under the same key; meanwhile the instant has passed."""
    soon = spec(schedule=Schedule(at=format_instant(fake_clock.now_ms() + 1000)))
    first = await service.create_job(TENANT, soon, "once")
    (batched,) = await service.create_many(TENANT, [soon], "batch")
    await fake_clock.advance(5)
    assert (await service.create_job(TENANT, soon, "once")).id == first.id
    (again,) = await service.create_many(TENANT, [soon], "batch")
    assert again.id == batched.id
    (fresh,) = await service.create_many(TENANT, [soon], "another")
    assert isinstance(fresh, Invalid)
    with pytest.raises(IdempotencyMismatch):
        await service.create_many(TENANT, [soon, soon], "batch")
    for key in ("another", None):
        with pytest.raises(Invalid, match="past"):
            await service.create_job(TENANT, soon, key)


async def test_the_same_request_twice_makes_one_job(service):
    first = await service.create_job(TENANT, spec(), "once")
    again = await service.create_job(TENANT, spec(), "once")
    assert again.id == first.id
    with pytest.raises(IdempotencyMismatch):
        await service.create_job(TENANT, spec(name="another"), "once")
    assert len((await service.list_jobs(TENANT, JobFilter())).items) == 1


async def test_a_key_that_is_taken_is_a_conflict(service):
    await service.create_job(TENANT, spec(key="a"))
    with pytest.raises(Conflict):
        await service.create_job(TENANT, spec(key="a"))


async def test_a_job_due_soon_is_hinted_at_and_a_later_one_is_not(service, hints):
    await service.create_job(TENANT, spec(schedule=Schedule(in_=Duration.parse("1h"))))
    assert hints == []
    await service.create_job(TENANT, spec(schedule=Schedule(in_=Duration.parse("3s"))))
    assert hints == ["due"]


async def test_what_happened_is_said(service):
    told = []
    stop = subscribe(lambda event: told.append((event.name, event.fields.get("tenant"), event.fields.get("job_id"))))
    job = await service.create_job(TENANT, spec())
    await service.patch_job(TENANT, job.id, {"name": "x"})
    await service.delete_job(TENANT, job.id)
    stop()
    assert told == [(name, TENANT, job.id) for name in ("job.created", "job.changed", "job.deleted")]


async def test_a_batch_answers_each_item_in_its_place(service):
    undecoded = Invalid.one("schedule", "missing")
    answers = await service.create_many(
        TENANT, [spec(key="a"), undecoded, spec(target=WebhookTarget(url="http://forbidden.x/")), spec(key="a"), spec()]
    )
    first, second, third, fourth, fifth = answers
    assert isinstance(first, JobView)
    assert second is undecoded
    assert isinstance(third, Invalid)
    assert isinstance(fourth, Conflict)
    assert isinstance(fifth, JobView)


async def test_a_batch_sent_again_makes_nothing_new(service):
    first = await service.create_many(TENANT, [spec(), spec(name="b")], "batch")
    again = await service.create_many(TENANT, [spec(), spec(name="b")], "batch")
    assert [job.id for job in first] == [job.id for job in again]


async def test_a_batch_is_bounded(service):
    with pytest.raises(TooLarge, match="at most 5000"):
        await service.create_many(TENANT, [spec()] * 5001)


async def test_an_empty_batch_is_nothing(service):
    assert await service.create_many(TENANT, []) == []


async def test_replacing_by_the_same_changes_nothing(service):
    job = await service.create_job(TENANT, spec(key="a"))
    assert (await service.replace_job(TENANT, job.id, spec(key="a"))).version == job.version
    changed = await service.replace_job(TENANT, job.id, spec(key="a", name="b"), job.version)
    assert changed.version == job.version + 1
    with pytest.raises(VersionMismatch):
        await service.replace_job(TENANT, job.id, spec(key="a"), job.version)


async def test_a_patch_changes_what_it_names(service):
    job = await service.create_job(TENANT, spec(key="a", name="old", tags=["x"]))
    patched = await service.patch_job(TENANT, job.id, {"name": None, "policy": {"timeout": "9s"}, "tags": ["y"]})
    assert (patched.name, patched.policy.timeout, patched.tags) == (None, Duration.parse("9s"), ["y"])
    assert patched.key == "a"


async def test_a_patch_to_another_kind_needs_no_nulls(service):
    job = await service.create_job(TENANT, spec())
    patched = await service.patch_job(
        TENANT, job.id, {"schedule": {"cron": "0 3 * * *"}, "target": {"type": "command", "command": "backup"}}
    )
    assert (patched.schedule.cron, patched.schedule.every) == ("0 3 * * *", None)
    assert patched.target == CommandTarget(command="backup")


async def test_a_wrong_patch_changes_nothing(service):
    job = await service.create_job(TENANT, spec())
    with pytest.raises(Invalid) as caught:
        await service.patch_job(TENANT, job.id, {"schedule": {"every": "0s"}, "colour": "red"})
    assert "colour" in {problem.path for problem in caught.value.problems}
    assert (await service.get_job(TENANT, job.id)).version == job.version


async def test_a_time_that_passed_is_no_mistake_when_something_else_changes(service, fake_clock):
    job = await service.create_job(TENANT, spec(schedule=Schedule(at="2023-11-14T22:13:30Z")))
    await fake_clock.advance(60)
    renamed = await service.patch_job(TENANT, job.id, {"name": "late"})
    assert renamed.name == "late"
    with pytest.raises(Invalid, match="past"):
        await service.patch_job(TENANT, job.id, {"schedule": {"at": "2023-11-14T22:13:31Z"}})


async def test_the_mask_keeps_the_secret(service, store):
    secret = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    job = await service.create_job(TENANT, spec(target=WebhookTarget(url=URL, secret=secret)))
    assert job.target.secret == MASK
    await service.patch_job(TENANT, job.id, {"target": {"method": "PUT"}})
    await service.replace_job(TENANT, job.id, spec(name="b", target=WebhookTarget(url=URL, secret=MASK)))
    kept = await store.get_record(TENANT, job.id)
    assert kept.spec.target.secret == secret


async def test_the_mask_is_no_secret(service):
    with pytest.raises(Invalid, match="mask"):
        await service.create_job(TENANT, spec(target=WebhookTarget(url=URL, secret=MASK)))


async def test_by_key_a_job_is_created_then_replaced(service):
    made, created = await service.put_job_by_key(TENANT, "a", spec())
    assert (created, made.key) == (True, "a")
    changed, created = await service.put_job_by_key(TENANT, "a", spec(name="b"))
    assert (created, changed.id, changed.name) == (False, made.id, "b")


async def test_by_key_the_two_keys_must_agree(service):
    with pytest.raises(Invalid, match="differs from the key in the URL"):
        await service.put_job_by_key(TENANT, "a", spec(key="b"))


async def test_by_key_a_wrong_job_is_refused(service):
    with pytest.raises(Invalid):
        await service.put_job_by_key(TENANT, "a", spec(target=WebhookTarget(url="http://forbidden.x/")))
    with pytest.raises(NotFound):
        await service.get_job_by_key(TENANT, "a")


async def test_a_change_is_told_to_those_who_hold_runs(service, hints):
    job = await service.create_job(TENANT, spec(schedule=Schedule(every=Duration.parse("1h"))))
    await service.patch_job(TENANT, job.id, {"name": "x"})
    await service.pause_job(TENANT, job.id)
    await service.delete_job(TENANT, job.id)
    assert hints == ["orders", "orders", "orders"]


async def test_a_deleted_job_is_gone(service):
    job = await service.create_job(TENANT, spec())
    await service.delete_job(TENANT, job.id)
    with pytest.raises(NotFound):
        await service.get_job(TENANT, job.id)


async def test_no_tenant_sees_another_s_jobs(service):
    job = await service.create_job(TENANT, spec(key="a"))
    for verb in (service.get_job, service.delete_job, service.pause_job, service.resume_job, service.run_job):
        with pytest.raises(NotFound):
            await verb(TENANT + 1, job.id)
    with pytest.raises(NotFound):
        await service.patch_job(TENANT + 1, job.id, {"name": "x"})
    assert (await service.list_jobs(TENANT + 1, JobFilter())).items == []
