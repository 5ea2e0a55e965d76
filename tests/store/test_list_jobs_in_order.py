"""Lists of jobs by words and in an order: every job once, page by page, also when a page looks at two jobs only."""

from __future__ import annotations

from typing import Any

import pytest

from onthedot.errors import Invalid
from onthedot.model.job import JobView
from onthedot.store import JobFilter, Store
from onthedot.store.jobs import list_statements
from tests.store.conftest import Times
from tests.store.given import create
from tests.store.hands import OK, REFUSED, Hands
from tests.store.test_list_jobs import ids, walk

MINUTE = 60_000


async def some_jobs(store: Store, times: Times) -> list[JobView]:
    """Called and not, with and without a next and a last run, some at the same instant."""
    made = [
        await create(store, name="beta", schedule={"every": "2m"}),
        await create(store, key="Alpha", schedule={"every": "1m"}),
        await create(store, schedule={"every": "1m"}),
        await create(store, key="alpha2", name="Gamma", schedule={"in": "10s"}),
        await create(store, key="delta", schedule={"every": "1m"}, paused=True),
        await create(store, schedule={"in": "1h"}),
        await create(store, name="beta", schedule={"every": "3h"}, policy={"jitter": "10s"}),
    ]
    hands = Hands(store)
    for _ in range(3):
        await times.advance(MINUTE)
        for run in (await hands.claim()).runs:
            await hands.finish(run, outcome=REFUSED if run.job_id % 2 else OK)
    return made


@pytest.mark.parametrize("sort", ["name", "next", "last"])
@pytest.mark.parametrize("down", [False, True], ids=["up", "down"])
async def test_in_order(store: Store, times: Times, monkeypatch: pytest.MonkeyPatch, sort: str, down: bool) -> None:
    made = await some_jobs(store, times)
    now = {job.id: job for job in (await store.list_jobs(1, JobFilter())).items}

    def place(job_id: int) -> Any:
        job = now[job_id]
        called = (job.name or job.key or "").casefold() or None
        return {"name": called, "next": job.next_run, "last": job.last_run}[sort]

    given = "-" + sort if down else sort
    whole = await ids(store, sort=given)
    assert sorted(whole) == [job.id for job in made]
    places = [place(job_id) for job_id in whole]
    with_one = [each for each in places if each is not None]
    assert with_one == sorted(with_one, reverse=down)
    assert places == with_one + [None] * (len(places) - len(with_one)), "those without one come last"
    assert await walk(store, sort=given, limit=1) == whole
    only = await ids(store, sort=given, status="active")
    assert only == [job_id for job_id in whole if now[job_id].state == "active"]
    monkeypatch.setattr(list_statements, "SCANNED", 2)
    assert await walk(store, sort=given, limit=3) == whole
    assert await walk(store, sort=given, limit=2, status="active") == only


async def test_no_other_order(store: Store) -> None:
    with pytest.raises(Invalid, match="sort"):
        await ids(store, sort="id")


async def test_next_run_bounded_and_down(store: Store, times: Times) -> None:
    late, soon, _ = [await create(store, schedule={"in": each}) for each in ("3m", "1m", "5m")]
    wanted: dict[str, Any] = {"next_after": times.now + MINUTE, "next_before": times.now + 4 * MINUTE}
    assert await walk(store, sort="-next", limit=1, **wanted) == [late.id, soon.id]
    assert await walk(store, sort="name", limit=1, **wanted) == [soon.id, late.id]


class TestWords:
    async def test_each_in_key_name_tag_or_target(self, store: Store, times: Times) -> None:
        hook = {"type": "webhook", "url": "https://Example.org/orders/new"}
        a = await create(store, key="eu.nightly-report", name="Sum of the Day", tags=["Finance"], target=hook)
        b = await create(store, name="report of errors", target={"type": "command", "command": "sweep"})
        await create(store, name="something else")
        assert await ids(store, q="port") == [b.id, a.id]
        assert await ids(store, q="REPORT") == [b.id, a.id]
        assert await ids(store, q="report sum") == [a.id]
        assert await ids(store, q="sum report") == [a.id]
        assert await ids(store, q="fin port") == await ids(store, q="ORDERS") == await ids(store, q="ightly") == [a.id]
        assert await ids(store, q="weep") == await ids(store, q="command er") == [b.id]
        assert await ids(store, q="report nothing") == []
        assert await ids(store, q="ay") == [], "two letters are not looked for in the middle"
        assert await ids(store, q="sum da") == [a.id]
        assert await ids(store, q="   ") == await ids(store)

    async def test_not_in_what_is_secret(self, store: Store, times: Times) -> None:
        hook = {
            "url": "https://me:hunter2@example.org/",
            "headers": {"authorization": "Bearer sesame"},
            "secret": "whsec",
        }
        await create(store, name="x", target={"type": "webhook", **hook}, params={"p": "sesame"})
        assert [await ids(store, q=word) for word in ("hunter2", "sesame", "whsec")] == [[], [], []]

    async def test_those_that_begin_so_first_then_the_others(
        self, store: Store, times: Times, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = [await create(store, name=name) for name in ("xab c", "abc", "zab", "other", "aba", "ab", "yabc")]
        expected = [made[nth].id for nth in (5, 4, 1, 6, 2, 0)]
        monkeypatch.setattr("onthedot.store.jobs.list_statements.SHORT", 2)
        assert await ids(store, q="ab") == expected
        assert await walk(store, q="ab", limit=1) == expected
        assert await walk(store, q="ab", limit=3) == expected
        monkeypatch.setattr(list_statements, "SCANNED", 2)
        assert await walk(store, q="ab", limit=2, status="active") == expected
        assert await walk(store, q="ab c", limit=2) == [made[0].id]
