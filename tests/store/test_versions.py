"""What a job was: written with the change, never with the create, kept for a while, gone with the job."""

from __future__ import annotations

import msgspec
import pytest

from onthedot.errors import NotFound
from onthedot.model.actor import ChangeActor
from onthedot.model.job import JobView
from onthedot.service.stored_spec import act_as
from onthedot.store import Store
from onthedot.store.abandoned_requests import ASKER
from onthedot.store.jobs.versions import KEPT_VERSIONS
from tests.store.conftest import START, Times
from tests.store.given import create, execute, fetch, spec


async def rename(store: Store, job: JobView, name: str) -> None:
    await store.update_job(1, job.id, lambda old: msgspec.structs.replace(old, name=name))


async def test_a_create_writes_none_and_the_first_change_writes_both(store: Store, times: Times) -> None:
    job = await create(store, name="a")
    assert await fetch(store, "SELECT * FROM job_versions") == []
    (only,) = (await store.list_versions(1, job.id)).items
    assert (only.version, only.verb, only.actor, only.current, only.spec.name) == (1, "create", None, True, "a")
    await times.advance(1000)
    token = ASKER.set(None)
    act_as(ChangeActor(kind="key", name="ops", key_id=3))
    await store.update_job(1, job.id, lambda old: msgspec.structs.replace(old, name="b"))
    ASKER.reset(token)
    await store.pause_job(1, job.id)
    await store.update_job(1, job.id, lambda old: old)  # nothing changed: no version
    found = (await store.list_versions(1, job.id)).items
    assert [(each.version, each.verb, each.actor, each.spec.name, each.spec.paused) for each in found] == [
        (3, "pause", "onthedot", "b", True),
        (2, "edit", "ops", "b", False),
        (1, "create", None, "a", False),
    ]
    assert [each.current for each in found] == [True, False, False]
    assert (await store.spec_at(1, job.id, 1)).name == "a"
    with pytest.raises(NotFound, match="version 9"):
        await store.spec_at(1, job.id, 9)
    with pytest.raises(NotFound):
        await store.list_versions(2, job.id)


async def test_secrets_are_masked_and_pages_go_on(store: Store, times: Times) -> None:
    target = {"type": "webhook", "url": "https://example.com/hook", "secret": "whsec_" + "a" * 32}
    job = await create(store, target=target)
    for n in range(4):
        await rename(store, job, str(n))
    first = await store.list_versions(1, job.id, limit=3)
    assert [each.version for each in first.items] == [5, 4, 3]
    rest = await store.list_versions(1, job.id, limit=3, cursor=first.next)
    assert ([each.version for each in rest.items], rest.next) == ([2, 1], None)
    assert {getattr(each.spec.target, "secret", "") for each in (*first.items, *rest.items)} == {"••••••"}
    assert getattr((await store.spec_at(1, job.id, 1)).target, "secret", "") == target["secret"]


async def test_the_file_is_named_that_changed_it(store: Store, times: Times) -> None:
    await store.sync_jobs(1, "shop.yaml", [spec(key="a")], prune=False)
    await store.sync_jobs(1, "shop.yaml", [spec(key="a", name="x")], prune=False)
    job = await store.get_job_by_key(1, "a")
    found = (await store.list_versions(1, job.id)).items
    assert [(each.version, each.actor_kind, each.actor) for each in found] == [
        (2, "file", "shop.yaml"),
        (1, "file", "shop.yaml"),
    ]


async def test_old_ones_go(store: Store, times: Times) -> None:
    """The last fifty, and none older than the retention; the present one is known from its job."""
    job = await create(store)
    for n in range(KEPT_VERSIONS + 3):
        await rename(store, job, str(n))
    found = (await store.list_versions(1, job.id, limit=500)).items
    assert [each.version for each in found] == [*range(KEPT_VERSIONS + 4, 4, -1)]
    await times.advance(1000)
    await store.prune(times.now)
    (left,) = (await store.list_versions(1, job.id)).items
    assert (left.version, left.verb, left.current) == (KEPT_VERSIONS + 4, None, True)


async def test_those_of_expired_one_offs_go_with_them(store: Store, times: Times) -> None:
    job = await create(store, schedule={"in": "1s"})
    await store.update_job(1, job.id, lambda old: msgspec.structs.replace(old, name="x"))
    (run,) = await fetch(store, "SELECT id FROM runs")
    await store.cancel_run(1, run["id"])
    await times.advance(10_000)
    await store.close_one_offs()
    await execute(store, f"UPDATE job_versions SET at = {times.now}")  # not their age is to take them away
    await store.prune(START + 5000)
    assert await fetch(store, "SELECT id FROM jobs") == []
    assert await fetch(store, "SELECT job_id FROM job_versions") == []
