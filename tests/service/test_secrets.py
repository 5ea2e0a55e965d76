"""Secrets of targets: shown to nobody, kept when the mask comes back, on both stores."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from onthedot.clock import SystemClock
from onthedot.errors import Invalid
from onthedot.model.decoding import encode_json
from onthedot.model.secret_text import MASK
from onthedot.model.targets import WebhookTarget
from onthedot.service import Service
from onthedot.settings import Settings
from onthedot.store import JobFilter, open_store
from onthedot.store.jobs.rows import decode_spec
from tests.service.conftest import TENANT, Agreeable, spec

SECRETS = ("hunter2", "grandma", "AAAAAAAA")
TARGET = WebhookTarget(
    url="https://example.com/?token=hunter2&page=1",
    headers={"Authorization": "Bearer grandma", "X-Page": "1"},
    secret="whsec_" + "A" * 40,
)
HIDDEN = WebhookTarget(
    url=f"https://example.com/?token={MASK}&page=1", headers={"Authorization": MASK, "X-Page": "1"}, secret=MASK
)


@pytest.fixture
async def service(store_url) -> AsyncIterator[Service]:
    store = await open_store(store_url)
    made = Service(store, Agreeable(), SystemClock(), Settings())
    yield made
    await made.close()
    await store.close()


async def written(service: Service, job_id: int) -> WebhookTarget:
    (row,) = await service.store.driver.read(lambda tx: tx.sql(f"SELECT spec FROM jobs WHERE id = {job_id}"))
    target = decode_spec(row["spec"]).target
    assert isinstance(target, WebhookTarget)
    return target


async def test_no_answer_has_them_and_sent_back_they_are_kept(service):
    made = await service.create_job(TENANT, spec(key="a", target=TARGET))
    (batch,) = await service.create_many(TENANT, [spec(key="b", target=TARGET)])
    put, _ = await service.put_job_by_key(TENANT, "c", spec(target=TARGET))
    answers = [
        made,
        batch,
        put,
        await service.get_job(TENANT, made.id),
        await service.get_job_by_key(TENANT, "a"),
        *(await service.list_jobs(TENANT, JobFilter())).items,
        await service.replace_job(TENANT, made.id, spec(key="a", name="new", target=HIDDEN)),
        await service.patch_job(TENANT, made.id, {"target": {"headers": {"Authorization": MASK, "X-Page": "2"}}}),
        (await service.put_job_by_key(TENANT, "a", spec(name="newer", target=HIDDEN)))[0],
        await service.pause_job(TENANT, made.id),
        await service.resume_job(TENANT, made.id),
        await service.run_job(TENANT, made.id),
    ]
    for answer in answers:
        text = encode_json(answer).decode()
        assert not [secret for secret in SECRETS if secret in text], text
    assert answers[3].target == HIDDEN
    assert await written(service, made.id) == TARGET


async def test_a_changed_one_replaces_what_there_was(service):
    made = await service.create_job(TENANT, spec(target=TARGET))
    await service.patch_job(TENANT, made.id, {"target": {"headers": {"Authorization": "Bearer new"}}})
    assert (await written(service, made.id)).headers == {"Authorization": "Bearer new", "X-Page": "1"}


async def test_the_mask_where_there_is_nothing_is_refused(service):
    only = WebhookTarget(url="https://example.com/", headers={"X-Api-Key": MASK})
    plain = await service.create_job(TENANT, spec(key="plain"))
    calls = [
        lambda: service.create_job(TENANT, spec(target=only)),
        lambda: service.replace_job(TENANT, plain.id, spec(key="plain", target=only)),
        lambda: service.put_job_by_key(TENANT, "plain", spec(target=only)),
        lambda: service.put_job_by_key(TENANT, "none-yet", spec(target=only)),
        lambda: service.patch_job(TENANT, plain.id, {"target": {"headers": {"X-Api-Key": MASK}}}),
    ]
    for call in calls:
        with pytest.raises(Invalid) as caught:
            await call()
        assert [problem.path for problem in caught.value.problems] == ["target.headers.X-Api-Key"]
    (refused,) = await service.create_many(TENANT, [spec(target=only)])
    assert isinstance(refused, Invalid)
    assert len((await service.list_jobs(TENANT, JobFilter())).items) == 1


async def test_what_was_exported_can_be_applied(service):
    await service.sync(TENANT, "jobs.yaml", [spec(key="a", target=TARGET)])
    assert (await service.sync(TENANT, "jobs.yaml", [spec(key="a", target=HIDDEN)])).unchanged == ["a"]
    report = await service.sync(TENANT, "jobs.yaml", [spec(key="a", name="new", target=HIDDEN)])
    assert report.updated == ["a"]
    assert await written(service, (await service.get_job_by_key(TENANT, "a")).id) == TARGET
    with pytest.raises(Invalid) as caught:
        await service.sync(TENANT, "jobs.yaml", [spec(key="a", target=HIDDEN), spec(key="b", target=HIDDEN)])
    assert [problem.path for problem in caught.value.problems] == [
        "jobs[1].target.headers.Authorization",
        "jobs[1].target.secret",
        "jobs[1].target.url",
    ]
