"""Put, update and delete under an idempotency key: a repeat changes nothing, whatever was done to the job since."""

from __future__ import annotations

import msgspec
import pytest

from onthedot.errors import IdempotencyMismatch, Invalid, NotFound
from onthedot.model.job import JobSpec
from onthedot.store import Idempotency, Store
from tests.store.conftest import Times
from tests.store.given import create, spec

ONCE, OTHER = Idempotency("message-1", "2:a"), Idempotency("message-1", "2:b")


def named(name: str) -> JobSpec:
    return spec(key="k", name=name)


async def test_a_repeated_put_does_not_undo_what_came_after(store: Store, times: Times) -> None:
    job, created = await store.put_job(1, "k", lambda old: named("first"), idempotency=ONCE)
    assert created
    await store.update_job(1, job.id, lambda old: msgspec.structs.replace(old, name="second"))
    again, _ = await store.put_job(1, "k", lambda old: named("first"), idempotency=ONCE)
    assert (again.id, again.name) == (job.id, "second")
    with pytest.raises(IdempotencyMismatch):
        await store.put_job(1, "k", lambda old: named("first"), idempotency=OTHER)
    replaced, created = await store.put_job(1, "k", lambda old: named("third"))
    assert (replaced.name, created) == ("third", False)


async def test_a_repeated_update_does_not_undo_what_came_after(store: Store, times: Times) -> None:
    job = await create(store, key="k")

    async def rename(repeat: Idempotency) -> str | None:
        changed = await store.update_job(
            1, job.id, lambda old: msgspec.structs.replace(old, name="first"), idempotency=repeat
        )
        return changed.name

    assert await rename(ONCE) == "first"
    await store.update_job(1, job.id, lambda old: msgspec.structs.replace(old, name="second"))
    assert await rename(ONCE) == "second"
    with pytest.raises(IdempotencyMismatch):
        await rename(OTHER)


async def test_a_repeated_delete_leaves_the_next_job_of_that_name(store: Store, times: Times) -> None:
    job = await create(store, key="k")
    await store.delete_job(1, job.id, idempotency=ONCE)
    await create(store, key="k")
    await store.delete_job(1, job.id, idempotency=ONCE)
    assert (await store.get_job_by_key(1, "k")).id != job.id


async def test_what_failed_may_be_tried_again_under_the_same_key(store: Store, times: Times) -> None:
    def refuse(old: JobSpec | None) -> JobSpec:
        raise Invalid.one("name", "no")

    with pytest.raises(Invalid):
        await store.put_job(1, "k", refuse, idempotency=ONCE)
    with pytest.raises(NotFound):
        await store.delete_job(1, 999, idempotency=ONCE)
    assert await store.known_repeats(1, [ONCE]) == {}
    _, created = await store.put_job(1, "k", lambda old: named("first"), idempotency=ONCE)
    assert created
    assert await store.known_repeats(1, [ONCE]) == {"message-1": True}
    assert await store.known_repeats(1, [OTHER]) == {"message-1": False}
    assert await store.known_repeats(2, [ONCE]) == {}
