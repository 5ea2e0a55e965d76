"""Who changed what: a row for each verb of a user, in its transaction, and lists of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from onthedot.errors import Conflict, Invalid
from onthedot.model.actor import ChangeActor
from onthedot.model.duration import MINUTE
from onthedot.model.key import ApiKeySpec
from onthedot.service.stored_spec import act_as
from onthedot.store import AuditFilter, LetterFilter, Store
from onthedot.store.abandoned_requests import ASKER
from tests.store.conftest import START, Times
from tests.store.given import change, create, fetch, spec
from tests.store.hands import FAILED, Hands, node_info

OPS = ChangeActor(kind="key", name="ops", key_id=7, address="10.0.0.1")
EVERY = {"every": "1m"}


@pytest.fixture(autouse=True)
def asked_by_nobody_afterwards() -> Iterator[None]:
    token = ASKER.set(None)
    yield
    ASKER.reset(token)


async def said(store: Store, tenant: int = 1, **wanted: object) -> list[tuple[str, str | None]]:
    """Oldest first: the verb and the summary."""
    page = await store.list_audit(tenant, AuditFilter(**wanted))  # type: ignore[arg-type]
    return [(entry.verb, entry.summary) for entry in reversed(page.items)]


async def test_each_verb_of_a_user_is_written_down(store: Store, times: Times) -> None:
    hands = Hands(store)
    await store.register(node_info(hands.node))
    act_as(OPS)
    job = await create(store, key="a", schedule=EVERY, policy={"retry": {"attempts": 1}})
    await change(store, job, key="a", schedule={"every": "2m"}, name="x", policy={"retry": {"attempts": 1}})
    await change(store, job, key="a", schedule={"every": "2m"}, name="x", policy={"retry": {"attempts": 1}})
    await store.pause_job(1, job.id, note="why not")
    await store.pause_job(1, job.id)
    await store.resume_job(1, job.id)
    await store.skip_slot(1, job.id, START + 2 * MINUTE)
    await store.unskip_slot(1, job.id, START + 2 * MINUTE)
    run = await store.run_job(1, job.id, params={"a": 1})
    await hands.finish(await hands.one(), outcome=FAILED)
    (again,) = await store.redrive(1, LetterFilter(job_id=job.id))
    await store.cancel_run(1, again)
    retried = await store.retry_run(1, run.id)
    with pytest.raises(Conflict):
        await store.cancel_run(1, run.id)
    await store.delete_job(1, job.id)
    await store.undelete_job(1, job.id)
    found = (await store.list_audit(1, AuditFilter())).items[::-1]
    slot = "2023-11-14T22:15:20.000Z"
    assert [(each.verb, each.summary, each.run_id) for each in found] == [
        ("edit", "name, schedule.every", None),
        ("pause", "why not", None),
        ("resume", None, None),
        ("skip", slot, f"{job.id}-{START + 2 * MINUTE}"),
        ("unskip", slot, f"{job.id}-{START + 2 * MINUTE}"),
        ("run", "with other params", run.id),
        ("redrive", None, again),
        ("cancel", None, again),
        ("retry", f"tries {run.id} again", retried.id),
        ("delete", None, None),
        ("undelete", None, None),
    ]
    assert {(each.actor, each.actor_kind, each.key_id, each.address) for each in found} == {
        ("ops", "key", 7, "10.0.0.1")
    }
    assert {each.job_id for each in found} == {job.id}
    assert [(each.version_before, each.version_after) for each in found[:4]] == [(1, 2), (2, 3), (3, 4), (None, None)]


async def test_neither_creates_nor_what_happens_by_itself(store: Store, times: Times) -> None:
    act_as(OPS)
    job = await create(store, key="a", schedule=EVERY)
    await store.pause_job(1, job.id, until=START + MINUTE)
    ASKER.set(None)
    await times.advance(MINUTE)
    await store.resume_due()
    assert await said(store) == [("pause", "until 2023-11-14T22:14:20.000Z")]


async def test_files_keys_and_logins(store: Store, times: Times) -> None:
    await store.sync_jobs(1, "file", [spec(key="a"), spec(key="b")], prune=True)
    await store.sync_jobs(1, "file", [spec(key="a", name="x")], prune=True)
    found = (await store.list_audit(1, AuditFilter())).items
    assert {(each.verb, each.job_key, each.actor, each.actor_kind) for each in found} == {
        ("edit", "a", "file", "file"),
        ("delete", "b", "file", "file"),
    }
    key = (await store.create_key(ApiKeySpec(name="ci", scope="write"), "hash", "otd_")).info
    other = (await store.create_key(ApiKeySpec(name="ci", scope="read", tenant="other"), "hash-2", "otd_")).info
    await store.create_session("s", key.id, 1, OPS)
    assert await store.end_session("s", "10.0.0.2")
    await store.revoke_key(1, key.id)
    assert (await said(store))[2:] == [
        ("create_key", f"key {key.id}: ci (write)"),
        ("login", None),
        ("logout", None),
        ("revoke_key", f"key {key.id}"),
    ]
    assert (await store.list_audit(1, AuditFilter(verb="logout"))).items[0].address == "10.0.0.2"
    (tenant,) = await fetch(store, f"SELECT tenant FROM api_keys WHERE id = {other.id}")
    assert await said(store, tenant["tenant"]) == [("create_key", f"key {other.id}: ci (read)")]


async def test_filters_pages_and_the_end_of_it(store: Store, times: Times) -> None:
    act_as(OPS)
    job, other = await create(store, key="a", schedule=EVERY), await create(store, schedule=EVERY)
    await store.pause_job(1, job.id)
    await times.advance(10)
    act_as(ChangeActor(kind="open", name="open"))
    await store.resume_job(1, job.id)
    await store.pause_job(1, other.id)
    every = [("pause", None), ("resume", None), ("pause", None)]
    assert await said(store) == every
    assert await said(store, job_id=job.id) == await said(store, job_key="a") == every[:2]
    assert await said(store, actor="open") == every[1:]
    assert await said(store, verb="pause", actor="ops", job_id=job.id) == every[:1]
    assert await said(store, since=START + 1) == every[1:]
    assert await said(store, until=START) == every[:1]
    first = await store.list_audit(1, AuditFilter(limit=2))
    second = await store.list_audit(1, AuditFilter(limit=2, cursor=first.next))
    assert [entry.id for entry in [*first.items, *second.items]] == sorted(
        (entry.id for entry in [*first.items, *second.items]), reverse=True
    )
    assert (len(second.items), second.next) == (1, None)
    with pytest.raises(Invalid):
        await store.list_audit(1, AuditFilter(limit=2, verb="pause", cursor=first.next))
    assert await said(store, 2) == []
    await store.prune(START + 10)
    assert await said(store) == every[1:]


async def test_nothing_is_written_for_what_is_undone(store: Store, times: Times) -> None:
    act_as(OPS)
    job = await create(store, key="a", schedule=EVERY)
    await create(store, key="b", schedule=EVERY, on_success=["a"])
    with pytest.raises(Conflict):
        await store.delete_job(1, job.id)
    assert await said(store) == []
