"""Simple jobs under idempotency keys: one statement on PostgreSQL, and still each request is carried out once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import msgspec
import pytest

from onthedot.errors import Conflict, IdempotencyMismatch, OnTheDotError, StoreUnavailable
from onthedot.model.job import JobView
from onthedot.store import Idempotency, NewJob, Store, open_store
from onthedot.store.jobs import jobs
from onthedot.store.jobs.create_fast import MOST, all_simple
from tests.services.waiting import until
from tests.store.conftest import Times
from tests.store.given import DAY, fetch, new


def simple(key: str | None = None, fingerprint: str = "f", **fields: Any) -> NewJob:
    repeat = None if key is None else Idempotency(key, fingerprint)
    return new(idempotency=repeat, **{"schedule": {"in": "7d"}, **fields})


async def made(store: Store, *items: NewJob) -> list[JobView]:
    answers = await store.create_jobs(items)
    views = [answer for answer in answers if isinstance(answer, JobView)]
    assert len(views) == len(items), answers
    return views


async def counted(store: Store, table: str) -> int:
    return int((await fetch(store, f"SELECT count(*) AS n FROM {table}"))[0]["n"])


async def test_with_a_key_and_without_the_same_rows_are_written(store: Store, times: Times) -> None:
    (alone,) = await made(store, simple("a"))
    grouped, plain, keyed = await made(store, simple("b"), simple(), simple("c"))
    among, _ = await made(store, simple("d"), new(key="k"))
    for job in (alone, grouped, plain, keyed):
        assert msgspec.structs.replace(job, id=among.id) == among
        assert await store.get_job(1, job.id) == job
    kept = await fetch(store, "SELECT * FROM idempotency ORDER BY key")
    assert [(row["key"], row["result"]) for row in kept] == [
        ("a", str(alone.id)), ("b", str(grouped.id)), ("c", str(keyed.id)), ("d", str(among.id))
    ]  # fmt: skip
    assert {(row["tenant"], row["fingerprint"], row["created_at"]) for row in kept} == {(1, "f", kept[3]["created_at"])}
    assert await counted(store, "jobs") == await counted(store, "runs") == 6


async def test_a_repeat_gets_the_first_answer(store: Store, times: Times) -> None:
    (first,) = await made(store, simple("k"))
    assert await made(store, simple("k")) == [first], "alone"
    again, fresh, plain = await made(store, simple("k"), simple("l"), simple())
    assert again == first, "among others, which are written"
    assert len({first.id, fresh.id, plain.id}) == 3
    assert await made(store, simple("l"), simple("k")) == [fresh, first], "all of them repeats"
    assert await counted(store, "jobs") == await counted(store, "runs") == 3


async def test_another_body_is_a_mistake_and_harms_nobody(store: Store, times: Times) -> None:
    await made(store, simple("k"))
    other, good = await store.create_jobs([simple("k", "g"), simple("l")])
    assert isinstance(other, IdempotencyMismatch)
    assert isinstance(good, JobView)
    (alone,) = await store.create_jobs([simple("k", "g")])
    assert isinstance(alone, IdempotencyMismatch)
    assert await counted(store, "jobs") == 2


async def test_tenants_do_not_share_keys(store: Store, times: Times) -> None:
    one, other = await made(store, simple("k"), simple("k", tenant=2))
    assert one.id != other.id
    assert await made(store, simple("k", tenant=2)) == [other]


async def test_the_made_job_was_deleted_meanwhile(store: Store, times: Times) -> None:
    (job,) = await made(store, simple("k"))
    await store.delete_job(1, job.id)
    (answer,) = await store.create_jobs([simple("k")])
    assert isinstance(answer, Conflict)


async def test_a_day_later_the_key_is_free_again(store: Store, times: Times) -> None:
    first, _ = await made(store, simple("k"), simple("l"))
    await times.advance(DAY)
    assert [job.id for job in await made(store, simple("k"))] == [first.id]
    await times.advance(1)
    (alone,) = await made(store, simple("k", "g"))
    grouped, _ = await made(store, simple("l", "g"), simple())
    assert await counted(store, "jobs") == 5
    assert [job.id for job in await made(store, simple("k", "g"), simple("l", "g"))] == [alone.id, grouped.id]


def test_one_statement_claims_no_key_twice() -> None:
    assert all_simple([simple("a"), simple("b"), simple(), simple("a", tenant=2)])
    assert not all_simple([simple("a"), simple("b"), simple("a")])


async def test_the_same_key_twice_in_a_group(store: Store, times: Times) -> None:
    first, again, other = await store.create_jobs([simple("k"), simple("k"), simple("k", "g")])
    assert first == again
    assert isinstance(other, IdempotencyMismatch)
    assert await counted(store, "jobs") == 1


async def test_what_fails_after_the_statement_is_told_to_repeats_alone(
    store: Store, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are written: told that they failed, they would be made again."""
    if store.driver.dialect != "postgres":
        assert not hasattr(store.driver, "address"), "SQLite has one way only"
        return
    await made(store, simple("k"))

    async def fails(*_: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr(jobs, "create_group", fails)
    repeat, fresh = await store.create_jobs([simple("k"), simple()])
    assert isinstance(repeat, StoreUnavailable)
    assert isinstance(fresh, JobView)
    assert await counted(store, "jobs") == 2


@pytest.fixture
async def nodes(postgres_url: str) -> AsyncIterator[tuple[Store, Store]]:
    first, second = await open_store(postgres_url), await open_store(postgres_url)
    yield first, second
    await first.close()
    await second.close()


async def test_one_request_sent_many_times(nodes: tuple[Store, Store]) -> None:
    groups = [store.create_jobs([simple("k"), simple(f"own-{n}")]) for store in nodes for n in range(8)]
    answers = [answer for group in await asyncio.gather(*groups) for answer in group]
    assert not [answer for answer in answers if isinstance(answer, OnTheDotError)]
    assert await counted(nodes[0], "jobs") == 9


async def test_groups_with_the_same_keys_in_another_order(nodes: tuple[Store, Store]) -> None:
    for turn in range(10):
        ordered = [simple(f"{turn}-{key}ä"[:: 1 if n % 2 else -1]) for n, key in enumerate(range(MOST))]
        first, second = await asyncio.gather(
            nodes[0].create_jobs(ordered), nodes[1].create_jobs(list(reversed(ordered)))
        )
        assert first == list(reversed(second)), "every request has one answer, whoever sent it"


@pytest.mark.parametrize("beside", [[], [simple("l"), simple()]], ids=["alone", "in a group"])
@pytest.mark.parametrize("commits", [True, False])
async def test_a_repeat_waits_for_the_first_to_end(
    nodes: tuple[Store, Store], postgres_url: str, beside: list[NewJob], commits: bool
) -> None:
    """The first one's answer is not there yet: its repeat must neither fail nor make a second job."""
    (first,) = await made(nodes[1], simple())
    other = await asyncpg.connect(postgres_url)
    try:
        transaction = other.transaction()
        await transaction.start()
        await other.execute(
            "INSERT INTO idempotency VALUES (1, 'k', 'f', $1, extract(epoch from now())::bigint * 1000)", str(first.id)
        )
        repeat = asyncio.ensure_future(nodes[0].create_jobs([simple("k"), *beside]))
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        await until(lambda: other.fetchval(waiting), "it waits for the other")
        await (transaction.commit() if commits else transaction.rollback())
    finally:
        await other.close()
    answer, *others = await repeat
    assert isinstance(answer, JobView)
    assert (answer.id == first.id) == commits
    assert all(isinstance(each, JobView) for each in others)
    assert await counted(nodes[0], "jobs") == 1 + len(beside) + (0 if commits else 1)
