"""Moving a store: every table, every row, every number; interrupted at any moment; and never two that can be served."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from onthedot.errors import Conflict, StoreInUse, StoreRelocated
from onthedot.model.key import ApiKeySpec
from onthedot.model.node import NodeInfo
from onthedot.store import Store, open_driver, open_store
from onthedot.store.driver import Driver
from onthedot.store.moving.catalog import LEFT_BEHIND, REFERRED_TO, common_tables
from onthedot.store.moving.marks import MOVE, read_state
from onthedot.store.moving.move import Moving, abort_move, move_store
from onthedot.store.queries import MOVED_MARK
from tests.store.given import create, execute, fetch, runs_of

GOLDEN = Path(__file__).parent / "golden"
TABLES = sorted(set(re.findall(r"^CREATE TABLE (\w+)", (GOLDEN / "sqlite.sql").read_text(), re.MULTILINE)))
MOVED = [name for name in TABLES if name not in LEFT_BEHIND]

Told = list[tuple[str, int, int]]


@pytest.fixture(params=["to_postgres", "to_sqlite"])
def urls(request: pytest.FixtureRequest, sqlite_url: str, postgres_url: str) -> tuple[str, str]:
    both = (sqlite_url, postgres_url)
    return both if request.param == "to_postgres" else both[::-1]


@asynccontextmanager
async def moving(source: str, target: str) -> AsyncIterator[Moving]:
    here, there = await open_driver(source), await open_driver(target)
    try:
        yield Moving(source=here, target=there, source_name="the-source", target_name="the-target")
    finally:
        await here.close()
        await there.close()


async def move(urls: tuple[str, str], tell: Callable[[str, int, int], None] = lambda *_: None) -> Any:
    async with moving(*urls) as both:
        return await move_store(both, tell)


async def fill(store: Store) -> None:
    """Jobs with runs as users make them, and at least one row in each table."""
    await create(store, key="hourly", tags=["a", "b"])
    await create(store, key="laned", policy={"overlap": "skip"}, paused=True)
    for number in range(3):
        await create(store, key=f"once-{number}", schedule={"in": "1h"})
    gone = await create(store, key="gone")
    await store.delete_job(1, gone.id)
    for table in MOVED:
        if not await fetch(store, f"SELECT 1 FROM {table} LIMIT 1"):
            await add_row(store, table)


async def add_row(store: Store, table: str) -> None:
    if store.driver.dialect == "sqlite":
        columns = await fetch(store, f"SELECT name, lower(type) AS type FROM pragma_table_info('{table}')")
    else:
        columns = await fetch(
            store,
            "SELECT column_name AS name, data_type AS type FROM information_schema.columns"
            f" WHERE table_name = '{table}'",
        )
    values = {column["name"]: value_for(table, column["name"], column["type"]) for column in columns}
    names = ", ".join(f'"{name}"' for name in values)
    await execute(
        store,
        f"INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE VALUES ({', '.join(values.values())})"
        if store.driver.dialect == "postgres"
        else f"INSERT INTO {table} ({names}) VALUES ({', '.join(values.values())})",
    )


def value_for(table: str, column: str, kind: str) -> str:
    words = {"scope": "'read'", "status": "'done'", "state": "'active'", "step": "'hour'", "job_ids": "'[7, 8]'"}
    if kind == "ARRAY":
        return "ARRAY[7, 8]::bigint[]"
    if kind == "boolean":
        return "true"
    if column in words:
        return words[column]
    return "1" if kind in ("integer", "bigint") else f"'ä {table} \"{column}\"'"


async def everything(url: str) -> dict[str, set[tuple[Any, ...]]]:
    """All rows of all tables as SQLite has them, whatever the order of the columns."""
    driver = await open_driver(url)
    try:
        return {table: await rows_of(driver, table) for table in MOVED}
    finally:
        await driver.close()


async def rows_of(driver: Driver, table: str) -> set[tuple[Any, ...]]:
    found = await driver.read(lambda tx: tx.sql(f'SELECT * FROM "{table}"'))
    plain = [{name: _plain(row[name]) for name in row.keys()} for row in found]  # type: ignore[attr-defined]  # noqa: SIM118
    kept = [row for row in plain if row.get("name") != MOVE or table != "installation"]
    return {tuple(sorted(row.items())) for row in kept}


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return msgspec.json.encode(value).decode().replace(" ", "") if isinstance(value, list) else value


async def fill_at(url: str) -> dict[str, set[tuple[Any, ...]]]:
    store = await open_store(url)
    await fill(store)
    await execute(store, "UPDATE endings SET job_ids = '[7,8]'") if store.driver.dialect == "sqlite" else None
    await store.close()
    return await everything(url)


async def test_every_row_of_every_table_is_moved(urls):
    before = await fill_at(urls[0])
    assert {table for table, rows in before.items() if not rows} == set()
    told: Told = []
    report = await move(urls, lambda *said: told.append(said))
    assert await everything(urls[1]) == before
    assert report.tables == {table: len(rows) for table, rows in before.items()}
    assert {table for table, _, _ in told} == set(MOVED)
    assert all(0 <= done <= total for _, done, total in told)


def test_every_table_is_moved_or_left_behind_for_a_reason():
    """A table that is added later is moved by itself if both databases have it."""
    made = re.findall(r"^CREATE TABLE (\w+) ", (GOLDEN / "postgres.sql").read_text(), re.MULTILINE)
    names = set(made) - {"history_default"}  # a partition
    only = {"sqlite": set(TABLES) - names, "postgres": names - set(TABLES)}
    assert only == {"sqlite": {"sequences"}, "postgres": set()}, "the other database has no such table"
    assert set(LEFT_BEHIND) <= set(TABLES)
    assert all(reason for reason in LEFT_BEHIND.values())
    needed = {
        "jobs",
        "runs",
        "history",
        "api_keys",
        "pings",
        "freezes",
        "installation",
        "incidents",
        "alert_deliveries",
    }
    assert needed - set(MOVED) == set()


async def test_numbers_go_on_after_the_highest(urls):
    store = await open_store(urls[0])
    last = await create(store, key="last")
    await store.delete_job(1, last.id)
    key = (await store.create_key(ApiKeySpec(name="k", scope="read"), "h", "p")).info
    await store.close()
    await move(urls)
    store = await open_store(urls[1])
    try:
        assert (await create(store, key="next")).id > last.id
        again = (await store.create_key(ApiKeySpec(name="k2", scope="read"), "h2", "p")).info
        assert again.id > key.id
        written = await fetch(store, "SELECT id FROM audit_log ORDER BY id")
        assert len(written) == len({row["id"] for row in written})
    finally:
        await store.close()


async def test_runs_of_before_are_taken_back_and_fire_once(urls):
    """What ran when the node was stopped is pending again with its token, as after any crash."""
    store = await open_store(urls[0])
    job = await create(store, key="once", schedule={"in": "1s"})
    (run,) = await runs_of(store, job)
    await execute(store, f"UPDATE runs SET state = 'running', node = 'gone', token = 4 WHERE id = '{run['id']}'")
    await store.close()
    await move(urls)
    store = await open_store(urls[1])
    try:
        assert await store.reclaim() == 1
        (after,) = await runs_of(store, job)
        assert (after["id"], after["slot"], after["state"], after["token"]) == (run["id"], run["slot"], "pending", 4)
    finally:
        await store.close()


async def test_nobody_serves_what_was_moved(urls):
    await fill_at(urls[0])
    await move(urls)
    with pytest.raises(StoreRelocated, match=r"was moved to the-target at .*Z"):
        await open_store(urls[0])
    await (await open_store(urls[1])).close()
    again = await move(urls)
    assert again.repeated


async def test_an_older_version_refuses_it_too(urls):
    """It knows nothing of moves: for it there is a migration of a newer version."""
    await fill_at(urls[0])
    await move(urls)
    driver = await open_driver(urls[0])
    try:
        (mark,) = await driver.read(lambda tx: tx.sql(f"SELECT * FROM meta WHERE number = {MOVED_MARK}"))
        assert (bool(mark["breaking"]), mark["name"].startswith("this store was moved to")) == (True, True)
    finally:
        await driver.close()


class _Killed(Exception):
    pass


@pytest.mark.parametrize("after", [0, 17])
async def test_a_move_that_was_interrupted_goes_on(urls, after):
    before = await fill_at(urls[0])
    left = [after]

    def tell(*_: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise _Killed

    with pytest.raises(_Killed):
        await move(urls, tell)
    with pytest.raises(StoreRelocated, match="being moved to the-target"):
        await open_store(urls[0])
    with pytest.raises(StoreRelocated, match="unfinished copy of the-source"):
        await open_store(urls[1])
    report = await move(urls)
    assert report.resumed
    assert await everything(urls[1]) == before


async def test_a_portion_is_written_with_its_place(urls, monkeypatch):
    """Twenty rows at a time: each time it is interrupted one portion further."""
    monkeypatch.setattr("onthedot.store.moving.copying.FIRST", 20)
    monkeypatch.setattr("onthedot.store.moving.copying.MOST", 20)
    store = await open_store(urls[0])
    for number in range(70):
        await create(store, key=f"job-{number}")
    await store.close()
    before = await everything(urls[0])

    def stop(table: str, done: int, _: int) -> None:
        if table == "jobs" and done > seen["jobs"]:
            seen["jobs"] = done
            raise _Killed

    seen = {"jobs": 0}
    for done in (20, 40, 60, 70):
        with pytest.raises(_Killed):
            await move(urls, stop)
        assert seen["jobs"] == done
    assert (await move(urls)).resumed
    assert await everything(urls[1]) == before


async def test_between_the_last_two_commits(urls):
    """The target can be served already, the source is marked when the move is asked for again."""
    before = await fill_at(urls[0])
    async with moving(*urls) as both:
        from onthedot.store.moving import move as module

        async def stop(*_: object) -> None:
            raise _Killed

        kept, module._mark_moved = module._mark_moved, stop  # type: ignore[assignment]
        try:
            with pytest.raises(_Killed):
                await move_store(both, lambda *_: None)
        finally:
            module._mark_moved = kept
    await (await open_store(urls[1])).close()
    with pytest.raises(StoreRelocated, match="being moved"):
        await open_store(urls[0])
    async with moving(*urls) as both:
        with pytest.raises(Conflict, match="completely"):
            await abort_move(both)
    assert (await move(urls)).tables == {table: len(rows) for table, rows in before.items()}
    with pytest.raises(StoreRelocated, match="was moved"):
        await open_store(urls[0])


async def test_a_move_that_is_given_up(urls):
    before = await fill_at(urls[0])

    def stop(table: str, *_: object) -> None:
        if table == "runs":
            raise _Killed

    with pytest.raises(_Killed):
        await move(urls, stop)
    async with moving(*urls) as both:
        await abort_move(both)
        with pytest.raises(Conflict, match="not being moved"):
            await abort_move(both)
    store = await open_store(urls[0])
    more = await create(store, key="made-meanwhile")
    await store.close()
    with pytest.raises(StoreRelocated, match="remains"):
        await open_store(urls[1])
    report = await move(urls)
    assert not report.resumed
    assert report.tables["jobs"] == len(before["jobs"]) + 1
    store = await open_store(urls[1])
    assert (await store.get_job(1, more.id)).key == "made-meanwhile"
    await store.close()


async def test_a_target_that_is_used_is_refused(urls):
    await fill_at(urls[0])
    store = await open_store(urls[1])
    await create(store, key="theirs")
    await store.close()
    with pytest.raises(Conflict, match=r"not empty .jobs: 1, runs to come: 1.. Choose"):
        await move(urls)
    for url in urls:  # nothing has changed
        await (await open_store(url)).close()


async def test_live_nodes_are_refused(sqlite_url, postgres_url):
    for urls, who in (((sqlite_url, postgres_url), "the-target"), ((postgres_url, sqlite_url), "the-source")):
        store = await open_store(postgres_url)
        await store.register(node("n1"))
        with pytest.raises(StoreInUse, match=f"{who} is in use by host-1"):
            await move(urls)
        await store.leave("n1")
        await store.close()
    for url in (sqlite_url, postgres_url):
        await (await open_store(url)).close()


async def test_a_node_that_slept_through_it_finds_itself_lost(sqlite_url, postgres_url):
    store = await open_store(postgres_url)
    await store.register(node("n1"))
    await execute(store, "UPDATE nodes SET beat_at = beat_at - 60000")
    await move((postgres_url, sqlite_url))
    assert (await fetch(store, "SELECT lost_at FROM nodes"))[0]["lost_at"] is not None
    with pytest.raises(StoreRelocated, match="was moved to the-target"):
        await store.register(node("n2"))
    await store.close()


async def test_a_file_that_is_open_is_refused(sqlite_url, postgres_url):
    store = await open_store(sqlite_url)
    with pytest.raises(StoreInUse):
        await move((sqlite_url, postgres_url))
    await store.close()


async def test_another_target_than_the_one_it_began_with(sqlite_url, postgres_url, empty_postgres_url):
    await fill_at(sqlite_url)

    def stop(*_: object) -> None:
        raise _Killed

    with pytest.raises(_Killed):
        await move((sqlite_url, postgres_url), stop)
    here, there = await open_driver(sqlite_url), await open_driver(empty_postgres_url)
    both = Moving(source=here, target=there, source_name="the-source", target_name="elsewhere")
    with pytest.raises(Conflict, match="being moved to the-target"):
        await move_store(both, lambda *_: None)
    await here.close()
    await there.close()
    other = f"{sqlite_url}-2"
    await fill_at(other)
    with pytest.raises(Conflict, match="takes part in another move, with the-source"):
        await move((other, postgres_url))


async def test_two_of_a_kind_are_refused(sqlite_url):
    with pytest.raises(Conflict, match="onthedot backup"):
        await move((sqlite_url, f"{sqlite_url}-2"))


async def test_history_goes_into_partitions_by_day(sqlite_url, postgres_url):
    store = await open_store(sqlite_url)
    for day in range(3):
        await execute(
            store,
            "INSERT INTO history (id, tenant, job_id, slot, kind, due_at, status, finished_at)"
            f" VALUES ('1-{day}', 1, 1, {86_400_000 * (20_000 + day) + 5}, 'scheduled', 0, 'done', 0)",
        )
    await store.close()
    await move((sqlite_url, postgres_url))
    store = await open_store(postgres_url)
    assert await fetch(store, "SELECT 1 FROM history_default") == []
    assert len(await fetch(store, "SELECT 1 FROM history")) == 3
    await store.close()


async def test_all_that_is_referred_to_is_copied_first(sqlite_url, postgres_url):
    here, there = await open_driver(sqlite_url), await open_driver(postgres_url)
    from onthedot.store.migrate import migrate

    await migrate(here)
    names = [table.name for table in await common_tables(here, there)]
    assert tuple(names[:2]) == REFERRED_TO
    assert sorted(names) == MOVED
    referred = set(re.findall(r"REFERENCES (\w+)", (GOLDEN / "sqlite.sql").read_text()))
    assert referred <= set(REFERRED_TO)
    assert await read_state(here) is None
    await here.close()
    await there.close()


def node(name: str) -> NodeInfo:
    return NodeInfo(id=name, name="host-1", host="host", pid=1, version="0", level=1, roles=[], offers=[], capacity=1)
