"""Lists of jobs: filters, order, pages."""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any

import pytest

from onthedot.errors import Invalid
from onthedot.model.instant import format_instant
from onthedot.model.job import JobView
from onthedot.store import JobFilter, Store
from onthedot.store.jobs import lists
from onthedot.store.paging import seal_cursor
from tests.store.conftest import START, Times
from tests.store.given import HOUR, create, execute, fetch, new


async def ids(store: Store, **filters: Any) -> list[int]:
    return [job.id for job in (await store.list_jobs(1, JobFilter(**filters))).items]


async def walk(store: Store, **filters: Any) -> list[int]:
    """Page after page, until the last."""
    found: list[int] = []
    cursor: str | None = None
    while True:
        page = await store.list_jobs(1, JobFilter(**filters, cursor=cursor))
        found += [job.id for job in page.items]
        assert len(page.items) <= filters.get("limit", 50)
        if page.next is None:
            return found
        cursor = page.next


async def test_newest_first(store: Store, times: Times) -> None:
    made = [(await create(store)).id for _ in range(5)]
    assert await ids(store) == made[::-1]
    assert await walk(store, limit=2) == made[::-1]
    assert await walk(store, limit=5) == made[::-1]


async def test_names_by_id(store: Store) -> None:
    named, keyed = await create(store, name="Nightly report", key="report"), await create(store, key="daily")
    unnamed = await create(store)
    found = await store.job_names(1, [named.id, keyed.id, unnamed.id, 999])
    assert found == {named.id: "Nightly report", keyed.id: "daily"}
    assert await store.job_names(2, [named.id]) == {}


async def test_no_jobs(store: Store) -> None:
    page = await store.list_jobs(1, JobFilter())
    assert (page.items, page.next) == ([], None)


async def test_each_page_is_stable_while_jobs_come_and_go(store: Store, times: Times) -> None:
    made = [(await create(store)).id for _ in range(6)]
    first = await store.list_jobs(1, JobFilter(limit=2))
    await create(store)
    await store.delete_job(1, made[5])
    await store.delete_job(1, made[3])
    second = await store.list_jobs(1, JobFilter(limit=2, cursor=first.next))
    assert [job.id for job in second.items] == [made[2], made[1]]


async def test_by_state_target_schedule_and_tag(store: Store, times: Times) -> None:
    cron = await create(store, tags=["a", "b"])
    every = await create(store, schedule={"every": "1m"}, target={"type": "command", "command": "c"}, tags=["b"])
    timer = await create(store, schedule={"in": "1m"}, paused=True)
    assert await ids(store, status="paused") == [timer.id]
    assert await ids(store, status="active") == [every.id, cron.id]
    assert await ids(store, status="ended") == []
    assert await ids(store, target="command") == [every.id]
    assert await ids(store, schedule="in") == [timer.id]
    assert await ids(store, schedule="cron") == [cron.id]
    assert await ids(store, tag="b") == [every.id, cron.id]
    assert await ids(store, tag="B") == []
    assert await ids(store, tag="b", target="webhook") == [cron.id]


class TestPrefix:
    async def test_of_key_or_name_in_any_case(self, store: Store, times: Times) -> None:
        a = await create(store, key="Report-b")
        b = await create(store, name="REPORT a")
        c = await create(store, key="xreport", name="nothing")
        assert await ids(store, q="rep") == [b.id, a.id, c.id]  # those that begin so first
        assert await ids(store, q="REPORT-") == [a.id]
        assert await ids(store, q="x") == [c.id]
        assert await ids(store, q="") == [c.id, b.id, a.id]

    async def test_ordered_by_what_matched_and_each_job_once(self, store: Store, times: Times) -> None:
        both = await create(store, key="ab", name="aa")
        by_name = await create(store, key="z", name="ac")
        by_key = await create(store, key="aa")
        twin = await create(store, name="ac")
        assert await ids(store, q="a") == [by_key.id, both.id, by_name.id, twin.id]
        assert await walk(store, q="a", limit=1) == [by_key.id, both.id, by_name.id, twin.id]

    async def test_nothing_in_it_is_a_pattern(self, store: Store, times: Times) -> None:
        job = await create(store, name="100%_done\\")
        await create(store, name="100 percent")
        assert await ids(store, q="100%") == [job.id]
        assert await ids(store, q="100%_done\\") == [job.id]
        assert await ids(store, q="%") == []

    async def test_letters_of_all_kinds(self, store: Store, times: Times) -> None:
        job = await create(store, name="Straße ÄÖÜ 東京")
        assert await ids(store, q="STRASSE äö") == [job.id]
        assert await ids(store, q="strasse äöü 東") == [job.id]
        long = await create(store, name="ΐ" * 500)
        assert await ids(store, q="ΐ" * 400) == [long.id]


class TestNextRun:
    async def test_ordered_by_it(self, store: Store, times: Times) -> None:
        hour = await create(store, schedule={"in": "1h"})
        second = await create(store, schedule={"in": "1s"})
        minute = await create(store, schedule={"in": "1m"})
        paused = await create(store, schedule={"in": "1m"}, paused=True)
        assert await ids(store, next_after=START) == [second.id, minute.id, hour.id]
        assert await ids(store, next_before=START + HOUR) == [second.id, minute.id]
        assert await ids(store, next_after=START + 60_000, next_before=START + HOUR + 1) == [minute.id, hour.id]
        assert await walk(store, next_after=0, limit=1) == [second.id, minute.id, hour.id]
        assert paused.id not in await ids(store, next_after=0)

    async def test_many_at_the_same_instant(self, store: Store, times: Times) -> None:
        answers = await store.create_jobs([new(schedule={"in": "1m"}) for _ in range(7)])
        made = [job.id for job in answers if isinstance(job, JobView)]
        assert await walk(store, next_before=START + HOUR, limit=3) == sorted(made, key=str)

    @pytest.mark.parametrize("few", [0, 5000])
    async def test_with_jitter_and_without_in_one_order(
        self, store: Store, times: Times, monkeypatch: pytest.MonkeyPatch, few: int
    ) -> None:
        """The filters mean the next run as it is shown, whichever index finds it."""
        monkeypatch.setattr(lists, "FEW", few)
        jitters = [{}, {"jitter": "20m"}]
        await store.create_jobs(
            [new(schedule={"in": f"{n}m"}, policy=jitters[n % 2], tags=["t"]) for n in range(1, 21)]
        )
        rows = await fetch(store, "SELECT job_id, slot, due_at FROM runs ORDER BY due_at, id")
        assert {row["due_at"] > row["slot"] for row in rows} == {True, False}
        made = [row["job_id"] for row in rows]
        assert made != [row["job_id"] for row in sorted(rows, key=lambda row: row["slot"])]
        for tag in (None, "t"):
            assert await walk(store, next_after=0, limit=3, tag=tag) == made
            for place in (3, 10, 17):
                due = rows[place]["due_at"]
                assert await walk(store, next_before=due, limit=3, tag=tag) == made[:place]
                assert await walk(store, next_after=due, limit=3, tag=tag) == made[place:]
                shown = (await store.list_jobs(1, JobFilter(next_after=due, limit=1, tag=tag))).items
                assert [job.next_run for job in shown] == [format_instant(due)]


@pytest.mark.parametrize("few", [0, 5000])
async def test_all_filters_at_once_in_any_set(
    store: Store, times: Times, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """The statement is put together from parts; every set of them must be a statement, and mean all of them."""
    monkeypatch.setattr(lists, "FEW", few)
    wanted = await create(store, key="good", tags=["t"], schedule={"in": "1m"})
    others = [
        await create(store, key="bad", tags=["t"], schedule={"in": "1m"}),
        await create(store, key="good2", schedule={"in": "1m"}),
        await create(store, key="good3", tags=["t"], schedule={"in": "1m"}, paused=True),
        await create(store, key="good4", tags=["t"]),
        await create(store, key="good5", tags=["t"], schedule={"in": "1m"}, target={"type": "command", "command": "c"}),
        await create(store, key="good6", tags=["t"], schedule={"in": "9h"}),
    ]
    every = {
        "q": "GOOD",
        "tag": "t",
        "status": "active",
        "target": "webhook",
        "schedule": "in",
        "next_before": START + HOUR,
        "next_after": START,
    }
    assert await ids(store, **every) == [wanted.id]
    for size in range(len(every)):
        for names in combinations(every, size):
            some = {name: every[name] for name in names}
            found = await walk(store, **some, limit=2)
            assert wanted.id in found, names
            assert len(found) == len(set(found)) <= len(others) + 1, names


class TestWhatAPageShows:
    async def test_statistics_of_recurring_jobs(self, store: Store, times: Times) -> None:
        job = await create(store)
        await execute(
            store,
            "INSERT INTO job_stats (job_id, tenant, runs, failures, timed, duration_ms, last_duration_ms, "
            "last_lateness_ms, last_status, last_run_id, last_finished_at) "
            f"VALUES ({job.id}, 1, 4, 1, 3, 100, 20, 2, 'done', 'x', {START})",
        )
        (shown,) = (await store.list_jobs(1, JobFilter())).items
        assert (shown.stats.runs, shown.stats.failures, shown.stats.avg_duration_ms) == (4, 1, 33.333)
        assert (shown.stats.last_duration_ms, shown.stats.last_lateness_ms) == (20, 2)
        assert (shown.stats.last_status, shown.stats.last_run_id) == ("DONE", "x")
        assert shown.last_run == job.created_at
        assert shown == await store.get_job(1, job.id)

    async def test_statistics_of_one_offs_come_from_the_ledger(self, store: Store, times: Times) -> None:
        job = await create(store, schedule={"in": "1s"})
        for n, (status, finished, duration) in enumerate(
            [("failed", START + 50, 30), ("done", START + 90, 50), ("skipped", START + 99, "NULL")]
        ):
            await execute(
                store,
                "INSERT INTO history (id, tenant, job_id, slot, kind, due_at, status, finished_at, duration_ms, "
                "lateness_ms) "
                f"VALUES ('r{n}', 1, {job.id}, {START}, 'scheduled', {START}, '{status}', {finished}, {duration}, 3)",
            )
        (shown,) = (await store.list_jobs(1, JobFilter(schedule="in"))).items
        assert (shown.stats.runs, shown.stats.failures, shown.stats.avg_duration_ms) == (2, 1, 40.0)
        assert (shown.stats.last_run_id, shown.stats.last_status, shown.stats.last_duration_ms) == ("r1", "DONE", 50)
        assert shown.last_run is not None
        assert shown.last_run.endswith(".090Z")

    async def test_the_next_run_while_a_node_holds_it_ahead(self, store: Store, times: Times) -> None:
        job = await create(store, schedule={"in": "1s"})
        await execute(store, "UPDATE runs SET state = 'running', node = 'n', token = 1, cursor = false")
        assert (await store.get_job(1, job.id)).next_run == job.next_run
        assert await store.timer_left(1, job.id) == 1000
        await times.advance(1000)
        assert (await store.get_job(1, job.id)).next_run is None
        assert await store.timer_left(1, job.id) == 0


class TestRefusals:
    @pytest.mark.parametrize(
        ("path", "filters"),
        [
            ("limit", {"limit": 0}),
            ("limit", {"limit": 501}),
            ("status", {"status": "DONE"}),
            ("target", {"target": "carrier-pigeon"}),
            ("schedule", {"schedule": "sometimes"}),
            ("cursor", {"cursor": ""}),
            ("cursor", {"cursor": "!!!"}),
            ("cursor", {"cursor": "bm9wZQ"}),
            ("cursor", {"cursor": "AAAA" * 50}),
            ("cursor", {"cursor": seal_cursor("other", 5)}),
        ],
    )
    async def test_each_names_its_field(self, store: Store, path: str, filters: dict[str, Any]) -> None:
        with pytest.raises(Invalid) as caught:
            await store.list_jobs(1, JobFilter(**filters))
        assert [problem.path for problem in caught.value.problems] == [path]
        assert caught.value.problems[0].accepted

    async def test_a_cursor_belongs_to_its_filters(self, store: Store, times: Times) -> None:
        for _ in range(3):
            await create(store)
        page = await store.list_jobs(1, JobFilter(limit=1))
        assert len((await store.list_jobs(1, JobFilter(limit=2, cursor=page.next))).items) == 2
        with pytest.raises(Invalid, match="different list"):
            await store.list_jobs(1, JobFilter(status="active", cursor=page.next))


async def test_pages_are_exact_however_many_kinds_are_merged(store: Store, times: Times) -> None:
    """The newest of each combination of state, target and schedule are merged: none twice, none left out, in order."""
    schedules = [{"cron": "0 * * * *"}, {"every": "1h"}, {"in": "1h"}, {"at": "2030-01-01T00:00:00Z"}]
    targets = [
        {"type": "webhook", "url": "https://example.com/"},
        {"type": "command", "command": "c"},
        {"type": "function", "function": "a:b"},
    ]
    dice = Random(4)
    made = await store.create_jobs(
        [
            new(
                tenant=dice.choice([1, 1, 1, 2]),
                schedule=dice.choice(schedules),
                target=dice.choice(targets),
                paused=dice.random() < 0.3,
            )
            for _ in range(150)
        ]
    )
    assert all(isinstance(job, JobView) for job in made)
    await execute(store, "UPDATE jobs SET state = 'quarantined' WHERE id % 7 = 0")
    rows = [row for row in await fetch(store, "SELECT * FROM jobs ORDER BY id DESC") if row["tenant"] == 1]
    for status in (None, "active", "paused", "quarantined", "ended"):
        for target in (None, "webhook", "command", "container"):
            for schedule in (None, "in", "cron"):
                wanted = [
                    row["id"]
                    for row in rows
                    if status in (None, row["state"])
                    and target in (None, row["target_type"])
                    and schedule in (None, row["schedule_kind"])
                ]
                found = await walk(store, status=status, target=target, schedule=schedule, limit=11)
                assert found == wanted, (status, target, schedule)
