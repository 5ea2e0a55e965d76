"""Creating: a group in one transaction, each item with its own answer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from onthedot.errors import Conflict, IdempotencyMismatch, Invalid, NotFound, OnTheDotError
from onthedot.model.instant import NEVER, format_instant
from onthedot.model.job import JobView
from onthedot.model.secret_text import MASK
from onthedot.model.targets import WebhookTarget
from onthedot.plan import due_at
from onthedot.store import Idempotency, Store
from onthedot.store.jobs.create_fast import MOST, all_simple
from tests.store.conftest import START, Times
from tests.store.given import DAY, HOUR, create, cursor_of, execute, fetch, new, runs_of

NEXT_HOUR = START - START % HOUR + HOUR


async def test_a_job_has_its_next_run_as_a_row(store: Store, times: Times) -> None:
    job = await create(store, key="nightly", name="Nightly", tags=["a", "b", "a"])
    assert (job.key, job.name, job.state, job.version, job.tags) == ("nightly", "Nightly", "active", 1, ["a", "b", "a"])
    assert job.next_run == format_instant(NEXT_HOUR)
    assert job.created_at == job.updated_at == format_instant(START)
    (run,) = await runs_of(store, job)
    assert run["id"] == f"{job.id}-{NEXT_HOUR}"
    assert bool(run["cursor"])
    assert bool(run["recurring"])
    assert (run["state"], run["slot"], run["due_at"]) == ("pending", NEXT_HOUR, NEXT_HOUR)
    assert run["ready_at"] == NEXT_HOUR - 2000
    assert (run["requires"], run["lane"], run["token"], run["tries"]) == ("webhook", None, 0, 0)


async def test_what_create_answers_is_what_reading_gives(store: Store, times: Times) -> None:
    for fields in (
        {"key": "a", "policy": {"jitter": "5m"}},
        {"schedule": {"in": "10s"}},
        {"schedule": {"every": "90s"}, "paused": True, "params": {"x": [1, None]}},
    ):
        job = await create(store, **fields)
        assert await store.get_job(1, job.id) == job


async def test_a_delay_counts_from_the_databases_time(store: Store, times: Times) -> None:
    job = await create(store, schedule={"in": "10s"})
    (run,) = await runs_of(store, job)
    assert run["slot"] == START + 10_000
    assert not run["recurring"]
    assert await store.timer_left(1, job.id) == 10_000
    await times.advance(4_000)
    assert await store.timer_left(1, job.id) == 6_000
    await times.advance(60_000)
    assert await store.timer_left(1, job.id) == 0


async def test_jitter_moves_the_instant_not_the_slot(store: Store, times: Times) -> None:
    job = await create(store, policy={"jitter": "10m"})
    run = await cursor_of(store, job)
    assert run["slot"] == NEXT_HOUR
    assert NEXT_HOUR <= run["due_at"] < NEXT_HOUR + 600_000
    assert job.next_run == format_instant(run["due_at"])


async def test_a_job_made_paused_waits_parked(store: Store, times: Times) -> None:
    job = await create(store, paused=True)
    assert (job.state, job.paused, job.next_run) == ("paused", True, None)
    run = await cursor_of(store, job)
    assert (run["ready_at"], run["parked"]) == (NEVER, "paused")


async def test_overlap_gives_runs_their_lane_and_no_lookahead(store: Store, times: Times) -> None:
    job = await create(store, policy={"overlap": "skip", "delivery": "at_most_once"})
    run = await cursor_of(store, job)
    assert run["lane"] == job.id
    assert run["ready_at"] == run["due_at"]
    assert bool(run["at_most_once"])


async def test_a_wrong_item_does_not_stop_the_others(store: Store, times: Times) -> None:
    answers = await store.create_jobs([new(key="a"), new(key="a"), new(key="b"), new(key="b"), new()])
    kinds = [type(answer) for answer in answers]
    assert kinds == [JobView, Conflict, JobView, Conflict, JobView]
    assert "'a'" in str(answers[1])
    assert str(answers[0].id) in str(answers[1])  # type: ignore[union-attr]
    later = await store.create_jobs([new(key="b"), new(key="c")])
    assert [type(answer) for answer in later] == [Conflict, JobView]
    assert len(await fetch(store, "SELECT id FROM jobs")) == 4
    assert len(await fetch(store, "SELECT id FROM runs")) == 4


async def test_a_schedule_that_cant_be_computed_is_its_own_error(store: Store, times: Times) -> None:
    good, bad = await store.create_jobs([new(), new(schedule={"cron": "0 0 31 2 *"})])
    assert isinstance(good, JobView)
    assert isinstance(bad, Invalid)
    assert bad.problems[0].path == "schedule.cron"


async def test_ids_are_never_used_twice(store: Store, times: Times) -> None:
    first = await create(store)
    await store.delete_job(1, first.id)
    assert (await create(store)).id > first.id


async def test_an_empty_group_is_nothing(store: Store) -> None:
    assert await store.create_jobs([]) == []


async def test_secrets_are_kept_and_never_shown(store: Store, times: Times) -> None:
    target = {"type": "webhook", "url": "https://example.com", "secret": "whsec_abc"}
    job = await create(store, target=target)
    assert isinstance(job.target, WebhookTarget)
    assert job.target.secret == MASK
    assert (await store.get_job(1, job.id)).target == job.target
    record = await store.get_record(1, job.id)
    assert isinstance(record.spec.target, WebhookTarget)
    assert record.spec.target.secret == "whsec_abc"
    (refused,) = await store.create_jobs([new(target={**target, "secret": MASK})])
    assert isinstance(refused, Invalid)


async def test_reading_what_is_not_there(store: Store) -> None:
    for ask in (store.get_job(1, 99), store.get_job_by_key(1, "x"), store.get_record(1, 99), store.timer_left(1, 99)):
        with pytest.raises(NotFound):
            await ask


async def test_by_key(store: Store, times: Times) -> None:
    job = await create(store, key="A.b-c_1")
    assert await store.get_job_by_key(1, "A.b-c_1") == job
    with pytest.raises(NotFound):
        await store.get_job_by_key(1, "a.b-c_1")


class TestIdempotency:
    async def test_a_repeat_gets_the_first_answer(self, store: Store, times: Times) -> None:
        once = Idempotency("k", "f")
        first = await create(store, key="a", idempotency=once)
        assert await create(store, key="a", idempotency=once) == first
        assert len(await fetch(store, "SELECT id FROM jobs")) == 1

    async def test_within_one_group_too(self, store: Store, times: Times) -> None:
        once = Idempotency("k", "f")
        answers = await store.create_jobs([new(idempotency=once), new(idempotency=once), new()])
        assert answers[0] == answers[1]
        assert len(await fetch(store, "SELECT id FROM jobs")) == 2

    async def test_another_body_is_a_mistake(self, store: Store, times: Times) -> None:
        await create(store, idempotency=Idempotency("k", "f"))
        other, good = await store.create_jobs([new(idempotency=Idempotency("k", "g")), new()])
        assert isinstance(other, IdempotencyMismatch)
        assert isinstance(good, JobView)
        first, second = await store.create_jobs(
            [new(idempotency=Idempotency("x", "f")), new(idempotency=Idempotency("x", "g"))]
        )
        assert isinstance(first, JobView)
        assert isinstance(second, IdempotencyMismatch)

    async def test_a_refused_request_may_be_put_right(self, store: Store, times: Times) -> None:
        await create(store, key="taken")
        (refused,) = await store.create_jobs([new(key="taken", idempotency=Idempotency("k", "f"))])
        assert isinstance(refused, Conflict)
        assert (await create(store, key="free", idempotency=Idempotency("k", "g"))).key == "free"

    async def test_tenants_do_not_share_keys(self, store: Store, times: Times) -> None:
        once = Idempotency("k", "f")
        assert (await create(store, idempotency=once)).id != (await create(store, tenant=2, idempotency=once)).id

    async def test_the_made_job_was_deleted_meanwhile(self, store: Store, times: Times) -> None:
        once = Idempotency("k", "f")
        job = await create(store, idempotency=once)
        await store.delete_job(1, job.id)
        for _ in range(2):
            (answer,) = await store.create_jobs([new(idempotency=once)])
            assert isinstance(answer, Conflict)

    async def test_a_day_later_the_key_is_free_again(self, store: Store, times: Times) -> None:
        once = Idempotency("k", "f")
        first = await create(store, idempotency=once)
        await times.advance(DAY)
        assert await create(store, idempotency=once) == await store.get_job(1, first.id)
        await times.advance(1)
        second = await create(store, idempotency=Idempotency("k", "g"))
        assert second.id != first.id
        await times.advance(DAY + 1)
        assert await store.prune(0) == 1
        assert await fetch(store, "SELECT key FROM idempotency") == []


async def test_five_thousand_at_once(store: Store, times: Times) -> None:
    answers = await store.create_jobs([new(schedule={"in": "1h"}, tags=["bulk"]) for _ in range(5000)])
    assert not [answer for answer in answers if isinstance(answer, OnTheDotError)]
    ids = [answer.id for answer in answers if isinstance(answer, JobView)]
    assert ids == sorted(ids)
    for table in ("jobs", "runs", "job_tags"):
        assert await fetch(store, f"SELECT count(*) AS n FROM {table}") == [{"n": 5000}]


async def test_ended_one_offs_are_pruned_by_age(store: Store, times: Times) -> None:
    old, young, recurring, live = (
        await create(store, schedule={"in": "1s"}, tags=["t"]),
        await create(store, schedule={"in": "1s"}),
        await create(store),
        await create(store, schedule={"in": "1s"}),
    )
    await execute(store, f"UPDATE jobs SET state = 'ended', ended_at = {START} WHERE id IN ({old.id}, {recurring.id})")
    await execute(store, f"UPDATE jobs SET state = 'ended', ended_at = {START + 10} WHERE id = {young.id}")
    assert await store.prune(START + 5) == 0, "its run is not over"
    await execute(store, f"DELETE FROM runs WHERE job_id = {old.id}")
    assert await store.prune(START + 5) == 1
    assert await store.prune(START + 5) == 0
    left = {row["id"] for row in await fetch(store, "SELECT id FROM jobs")}
    assert left == {young.id, recurring.id, live.id}
    assert await fetch(store, "SELECT * FROM job_tags") == []


async def test_a_repeat_can_ask_what_was_made_without_making_anything(store: Store) -> None:
    made, other = await store.create_jobs(
        [new(idempotency=Idempotency("a", "1")), new(idempotency=Idempotency("b", "2"))]
    )
    assert isinstance(made, JobView)
    assert isinstance(other, JobView)
    asked = [Idempotency("a", "1"), Idempotency("b", "another body"), Idempotency("c", "3")]
    found = await store.earlier_jobs(1, asked)
    assert {key: job.id for key, job in found.items()} == {"a": made.id}
    assert await store.earlier_jobs(1, []) == {}
    assert await store.earlier_jobs(2, asked) == {}
    await store.delete_job(1, made.id, if_match=None)
    assert await store.earlier_jobs(1, asked) == {}


async def test_with_a_key_and_without_in_one_group(store: Store, times: Times) -> None:
    """The two go into the table by different ways; tags and first runs follow whichever it was."""
    await create(store, key="taken")
    answers = await store.create_jobs(
        [
            new(tags=["x"]),
            new(key="b", tags=["x"]),
            new(key="taken", tags=["x"]),
            new(name="Näme", paused=True),
            new(key="a"),
        ]
    )
    assert [type(answer) for answer in answers] == [JobView, JobView, Conflict, JobView, JobView]
    made = [answer for answer in answers if isinstance(answer, JobView)]
    for job in made:
        assert await store.get_job(1, job.id) == job
        assert len(await runs_of(store, job)) == 1
    tagged = {row["job_id"] for row in await fetch(store, "SELECT job_id FROM job_tags")}
    assert tagged == {made[0].id, made[1].id}


async def test_both_ways_in_write_the_same_row(store: Store, times: Times) -> None:
    plain, keyed = await store.create_jobs([new(name="n", params={"a": 1}), new(key="k", name="n", params={"a": 1})])
    assert isinstance(plain, JobView)
    assert isinstance(keyed, JobView)
    rows = await fetch(store, "SELECT * FROM jobs ORDER BY id")
    for column, value in rows[0].items():
        if column not in ("id", "key", "key_search", "spec"):
            assert value == rows[1][column], column
    runs = await fetch(store, "SELECT * FROM runs ORDER BY job_id")
    assert {column for column, value in runs[0].items() if value != runs[1][column]} == {"id", "job_id"}


SIMPLE: list[dict[str, Any]] = [
    {},
    {"name": "Näme", "params": {"x": [1, None]}},
    {"policy": {"overlap": "skip"}},
    {"policy": {"delivery": "at_most_once", "timeout": "3s"}},
    {"target": {"type": "function", "function": "shop.jobs:stock"}},
    {"target": {"type": "webhook", "url": "https://example.com", "secret": "whsec_abc"}},
]


@pytest.mark.parametrize("fields", SIMPLE, ids=[str(fields) for fields in SIMPLE])
async def test_simple_jobs_get_the_rows_that_they_get_among_others(
    store: Store, times: Times, fields: dict[str, Any]
) -> None:
    """One and a few are one statement each on PostgreSQL; beside a job with a key they take the way of all."""
    simple = new(schedule={"in": "90s"}, **fields)
    assert all_simple([simple])
    (alone,) = await store.create_jobs([simple])
    first, second = await store.create_jobs([simple, simple])
    among, _ = await store.create_jobs([simple, new(key="k")])
    assert isinstance(among, JobView)
    for made in (alone, first, second):
        assert isinstance(made, JobView)
        assert msgspec.structs.replace(made, id=among.id) == among
        assert await store.get_job(1, made.id) == made
        for table, its_own in (("jobs", {"id"}), ("runs", {"id", "job_id", "lane"})):
            column = "id" if table == "jobs" else "job_id"
            one, other = await fetch(
                store, f"SELECT * FROM {table} WHERE {column} IN ({made.id}, {among.id}) ORDER BY {column}"
            )
            assert {name for name, value in one.items() if value != other[name]} - its_own == set()
        (run,) = await runs_of(store, made)
        assert run["id"] == f"{made.id}-{START + 90_000}"
        assert run["lane"] == (made.id if "overlap" in fields.get("policy", {}) else None)


REPEATED: list[dict[str, Any]] = [
    *SIMPLE,
    {"paused": True, "tags": ["a"]},
    {"policy": {"jitter": "1h"}},
    {"schedule": {"cron": "0 3 * * *"}},
]


@pytest.mark.parametrize("fields", REPEATED, ids=[str(fields) for fields in REPEATED])
async def test_a_spec_that_is_repeated_is_stored_like_an_equal_one(
    store: Store, times: Times, fields: dict[str, Any]
) -> None:
    """The very object again is written by the example of the one before; nothing but ids may come of that."""
    first, equal = (new(**{"schedule": {"in": "90s"}, **fields}) for _ in range(2))
    other = msgspec.structs.replace(first, tenant=2)
    answers = await store.create_jobs([first, first, other, first, equal, new(key="k")])
    made = [job for job in answers if isinstance(job, JobView)][:5]
    jobs = await fetch(store, "SELECT * FROM jobs WHERE key IS NULL ORDER BY id")
    runs = await fetch(store, "SELECT * FROM runs ORDER BY job_id")
    for job, row, run, tenant in zip(made, jobs, runs, (1, 1, 2, 1, 1), strict=False):
        assert await store.get_job(tenant, job.id) == job
        assert (row["id"], row["tenant"], run["job_id"], run["tenant"]) == (job.id, tenant, job.id, tenant)
        assert {**row, "id": 0, "tenant": 0} == {**jobs[-1], "id": 0, "tenant": 0}
        assert run["id"] == f"{job.id}-{run['slot']}"
        own = {"id": "", "job_id": 0, "tenant": 0, "lane": 0}
        if "jitter" in fields.get("policy", {}):
            own |= {"due_at": 0, "ready_at": 0}
            assert run["due_at"] == due_at(run["slot"], run["id"], 3_600_000)
        assert {**run, **own} == {**runs[4], **own}
        assert run["lane"] == (job.id if "overlap" in fields.get("policy", {}) else None)


async def test_simple_jobs_are_answered_in_their_order(store: Store, times: Times) -> None:
    items = [new(schedule={"in": f"{n + 1}s"}, name=str(n), tenant=1 + n % 2) for n in range(MOST)]
    answers = await store.create_jobs(items)
    ids = [answer.id for answer in answers if isinstance(answer, JobView)]
    assert ids == sorted(set(ids))
    for n, job_id in enumerate(ids):
        job = await store.get_job(1 + n % 2, job_id)
        assert (job.name, job.next_run) == (str(n), format_instant(START + (n + 1) * 1000))


@pytest.mark.parametrize(
    "fields",
    [
        {"key": "k"},
        {"tags": ["t"]},
        {"paused": True},
        {"policy": {"jitter": "5m"}},
        {"schedule": {"cron": "0 3 * * *"}},
        {"schedule": {"in": "10s", "exclude": ["0 0 * * *"]}},
        {"target": {"type": "webhook", "url": "https://example.com", "secret": MASK}},
    ],
    ids=str,
)
def test_what_is_not_simple(fields: dict[str, Any]) -> None:
    assert not all_simple([new(**{"schedule": {"in": "90s"}, **fields})])


def test_many_are_not_one_statement() -> None:
    assert all_simple([new(schedule={"in": "90s"})] * MOST)
    assert not all_simple([new(schedule={"in": "90s"})] * (MOST + 1))
