"""Put, update and delete under an idempotency key: a repeat changes nothing, whatever was done to the job since."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
import pytest

from onthedot.errors import Conflict, IdempotencyMismatch, Invalid, NotFound
from onthedot.model.job import JobSpec
from onthedot.model.key import ApiKeySpec
from onthedot.store import Idempotency, Store
from tests.store.conftest import Times
from tests.store.given import create, spec
from tests.store.hands import node_info

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


async def test_what_is_about_the_whole_installation_is_repeated_too(store: Store, times: Times) -> None:
    await store.register(node_info("a"))
    asked: dict[str, Callable[[Idempotency], Awaitable[object]]] = {
        "freeze": lambda repeat: store.freeze(1, "why", idempotency=repeat),
        "unfreeze": lambda repeat: store.unfreeze(1, idempotency=repeat),
        "drain": lambda repeat: store.drain("a", idempotency=repeat),
        "key": lambda repeat: store.create_key(ApiKeySpec(name="k"), "hash", "otd_", salt="s", idempotency=repeat),
        "script": lambda repeat: store.add_script(1, "sha256:0", "x", 1, idempotency=repeat),
    }
    for name, ask in asked.items():
        first = await ask(Idempotency(name, "2:a"))
        await store.unfreeze(1)
        await times.advance(1)
        assert await ask(Idempotency(name, "2:a")) == first, name
        assert await store.current_freeze() is None, name
        with pytest.raises(IdempotencyMismatch):
            await ask(Idempotency(name, "2:b"))
    await store.leave("a")
    assert (await store.drain("a", idempotency=Idempotency("drain", "2:a"))).state == "draining", "its answer was lost"


async def test_what_acts_outside_is_done_once_or_nobody_knows(store: Store, times: Times) -> None:
    assert await store.begin_once(1, ONCE, str) is None
    with pytest.raises(Conflict):
        await store.begin_once(1, ONCE, str)
    await store.keep_once(1, ONCE, "sent")
    assert await store.begin_once(1, ONCE, str) == "sent"
    with pytest.raises(IdempotencyMismatch):
        await store.begin_once(1, OTHER, str)
    assert await store.begin_once(2, ONCE, str) is None
