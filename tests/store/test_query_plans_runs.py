"""Claims, finishes and lists look at what they take and little more, with 2,000 and 50,000 runs (LARGE=1: a million).

On PostgreSQL the generic plan is forced, executed and rolled back, and the rows it touched are counted: finish once
read all that was running, by the index on the node, because it named the state. SQLite's machine steps are counted.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from onthedot.store.jobs.close_one_offs import EndedJob
from onthedot.store.postgres.driver import NOW, SESSION
from onthedot.store.queries import Queries
from onthedot.store.runs.finish import Fence
from onthedot.store.runs.finish_fast import DoneRun
from onthedot.store.runs.finish_rows import AcceptedRun, EndedRun
from onthedot.store.runs.look import Offered
from onthedot.store.runs.open import BegunWork, OpenRun
from onthedot.store.runs.orders import OwnedRun, PendingAgain
from onthedot.store.shapes import Rows, Shape, spread
from tests.services.postgres import in_own_loop
from tests.store.many_jobs import FAST, START

pytestmark = pytest.mark.timeout(300)

LIMIT = 100
LATER = START + 10_000_000  # all that there is has become due: a backlog of the whole table
ANY_ID, LAST = "~", 2**63 - 1
TABLES = ("runs", "jobs", "history")

CLAIMS = (("claim_free", "runs_free"), ("claim_cursors", "runs_cursors"), ("pick_lanes", "runs_lanes"))

_HISTORY = f"""
INSERT INTO {{table}} (id, tenant, job_id, slot, kind, due_at, status, finished_at)
SELECT n || '-' || ({START} + n) || '-h', CASE WHEN n % 1000 = 7 THEN 2 ELSE 1 END,
       CASE WHEN n % 2 = 0 THEN 5 ELSE n END, {START} + n, 'scheduled', {START} + n,
       CASE n % 1000 WHEN 1 THEN 'failed' WHEN 2 THEN 'skipped' ELSE 'done' END, {START} + n
"""
_RUNNING = "UPDATE runs SET state = 'running', node = 'n1', token = 1, cursor = {no} WHERE job_id BETWEEN 101 AND 1100"
_NODE = """
INSERT INTO nodes (id, name, host, pid, version, level, roles, offers, capacity, started_at, beat_at)
VALUES ('{node}', '', '', 1, '', 1, '[]', '[]', 1, 0, 0)
"""
_LANES = "UPDATE runs SET lane = job_id WHERE job_id BETWEEN 2001 AND 3000"


def fill_history_postgres(url: str, size: int) -> None:
    """As a partition that is attached when it is full: its indexes are built in one go."""

    async def fill() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute("SET maintenance_work_mem = '256MB'")
            await connection.execute(
                "CREATE TABLE history_full (LIKE history INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
            )
            rows = _HISTORY.format(table="history_full")
            await connection.execute(f"{rows} FROM generate_series(1, {size}) AS n")
            bounds = f"FROM ({START}) TO ({START + size + 1})"
            await connection.execute(f"ALTER TABLE history ATTACH PARTITION history_full FOR VALUES {bounds}")
            await connection.execute(_LANES)
            await connection.execute(_RUNNING.format(no="false"))
            await connection.execute("VACUUM ANALYZE runs, history")
        finally:
            await connection.close()

    in_own_loop(fill)


def fill_history_sqlite(path: str, size: int) -> None:
    raw = sqlite3.connect(path, isolation_level=None)
    try:
        for pragma in FAST:
            raw.execute(f"PRAGMA {pragma}")
        found = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = 'history'"
        indexes = raw.execute(found).fetchall()
        for name, _ in indexes:
            raw.execute(f"DROP INDEX {name}")
        numbers = f"WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {size}) SELECT n FROM s"
        raw.execute(f"{_HISTORY.format(table='history')} FROM ({numbers})")
        for _, sql in indexes:
            raw.execute(sql)
        raw.execute(_LANES)
        raw.execute(_RUNNING.format(no="0"))
    finally:
        raw.close()


@pytest.fixture(scope="module")
def many_runs(
    request: pytest.FixtureRequest, many_jobs: Callable[[str, int], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str, int], str]]:
    """Copies of the databases of `many_jobs` (others read those too), with as many rows in the ledger, a thousand runs
    running and a thousand in lanes."""
    made: dict[tuple[str, int], str] = {}
    databases: list[str] = []

    def address(dialect: str, size: int) -> str:
        if (dialect, size) not in made:
            url = many_jobs(dialect, size)
            if dialect == "sqlite":
                copy = shutil.copy(url.removeprefix("sqlite:///"), tmp_path_factory.mktemp("runs") / f"{size}.db")
                fill_history_sqlite(str(copy), size)
                made[dialect, size] = f"sqlite:///{copy}"
            else:
                databases.append(f"many_runs_{size}")
                server = request.getfixturevalue("postgres_server")
                made[dialect, size] = server.create_database(databases[-1], template=url.rpartition("/")[2])
                fill_history_postgres(made[dialect, size], size)
        return made[dialect, size]

    yield address
    for database in databases:
        request.getfixturevalue("postgres_server").drop_database(database)


def statements(size: int) -> Iterator[tuple[str, list[Any], str | None, int]]:
    """(name, arguments, the index it must use, how many rows it may touch)"""
    for floor in (0, START - 30_000):
        for name, index in (
            ("claim_free", "runs_free"),
            ("claim_cursors", "runs_cursors"),
            ("pick_lanes", "runs_lanes"),
        ):
            yield name, ["n9", ["webhook", "command:c"], 1, LIMIT, LIMIT // 2, floor], index, 12 * LIMIT
        offered = Rows([Offered("webhook", 0), Offered("command:c", 1)])
        yield "peek", [1, 1000, floor, 1000, offered], "runs_free", 300
    yield "oldest_ready", [["webhook", "command:c"], 1], "runs_free", 20
    middle = START + size // 2
    for low, high, place in (
        (0, LAST, [LAST, ANY_ID]),
        (0, middle, [middle, ANY_ID]),
        (middle - 500, middle, [LAST, "~"]),
    ):
        bounds = [low, high, *place]
        for index in ("runs_next", "runs_listed"):
            yield "list_pending", [1, *bounds, LAST, LIMIT], index, 5 * LIMIT
        yield "list_pending_of_job", [1, *bounds, LAST, LIMIT, 50], "runs_pkey", 5
        yield "list_history+where.all_of_history", [1, *bounds, LIMIT], "history_", 5 * LIMIT
        for only in ("only.done", "only.late", "only.not_late"):
            args = [1, *bounds, LIMIT, 10 * LIMIT]
            yield f"find_history+where.all_of_history+{only}", args, "history_", 15 * LIMIT
        yield "reach_history+where.all_of_history", [1, *bounds, 10 * LIMIT], "history_", 10 * LIMIT + 1
        failed = [1, *bounds, LIMIT, 10 * LIMIT, "failed", "x"]
        yield "find_history+where.not_done+by.not_done+only.error", failed, "status", 11 * LIMIT
        of_job = [1, *bounds, 5, LIMIT, 10 * LIMIT, "n9"]
        yield "find_history_of_job+where.all_of_history+only.node", of_job, "job_id", 11 * LIMIT
        yield "reach_history_of_job+where.all_of_history", [1, *bounds, 5, 10 * LIMIT], "job_id", 10 * LIMIT + 1
        yield "list_history+where.not_done+by.not_done", [1, *bounds, LIMIT, "failed"], "status", 5 * LIMIT
        yield "list_history+where.not_done+by.not_done", [1, *bounds, LIMIT, "cancelled"], "status", 5 * LIMIT
        yield "list_history_of_job+where.all_of_history", [1, *bounds, 5, LIMIT], "job_id", 5 * LIMIT
        yield (
            "list_history_of_job+where.not_done+by.job_not_done",
            [1, *bounds, 5, LIMIT, "failed"],
            "job_id_status",
            5 * LIMIT,
        )
    for name in ("slot_entries", "ended_by_quarter"):
        yield name, [1, 5, 0, LAST, LIMIT], "job_id", 5 * LIMIT
    yield "ranges_within", [1, 5, 0, LAST, LIMIT], "job_id_status", 5 * LIMIT
    yield "ranges_into", [1, 5, LAST], "job_id_status", 5 * LIMIT
    yield "list_running", [1, 0, LAST, LAST, ANY_ID, None, LIMIT, LATER], "runs_of_node", 4000
    yield "claimed_specs", [list(range(1, LIMIT))], "jobs_", LIMIT
    yield from of_one_job()
    yield "get_live", [1, f"55-{START + 55}"], "runs_pkey", 10
    yield "get_ended", [1, f"55-{START + 55}-h", START + 55], None, 10
    yield "news_of", ["n1"], None, 1100
    yield "held_by", ["n1"], "runs_of_node", 1100
    yield "count_ended", [1, LATER], None, 10
    for kind in ("free", "cursor", "lane"):
        yield f"backlog+where.{kind}_runs", [LATER], f"runs_{kind}", 60_000
        yield f"required+where.{kind}_runs", ["", LIMIT], f"runs_{kind}", 100
    yield "job_after", [size // 2, LIMIT], "jobs_pkey", LIMIT
    yield "floors_ahead", [0, 50 * LIMIT, LATER], "jobs_pkey", 100 * LIMIT
    yield "given_up_ahead", [55, START], "job_id", 120
    yield "recall_far", [LATER], None, 4000
    yield "run_after", ["", 5 * LIMIT], "runs_pkey", 5 * LIMIT
    yield "waiting_ahead", ["", f"55-{START + 55}", 5], "runs_pkey", size
    yield "silent_jobs", [0, 50 * LIMIT], "jobs_pkey", 100 * LIMIT


def of_one_job() -> Iterator[tuple[str, list[Any], str | None, int]]:
    """What looks for the runs of a job finds them by their key, whatever else it knows of them."""
    for name, args in (
        ("scheduled_run", [55]),
        ("lock_runs", [1, 55]),
        ("timer_left", [1, 55]),
        ("slots_taken", [1, 55, 0, START]),
        ("slots_with_rows", [55, 0, START]),
        ("live_slots", [1, 55, 0, START]),
        ("refit_runs", [55, "webhook", 1, False, False]),
        ("relane_runs", [2055, 3, 5]),
        ("park_runs", [55]),
        ("set_back_runs", [55, 5, 5]),
        ("release_runs", [55, 5]),
        ("recall_runs", [155]),
    ):
        yield name, args, "runs_pkey", 5
    yield "drop_cursor", [55], "runs_one_cursor", 5
    yield "cursor_slot", [1, 55], "runs_one_cursor", 5
    yield "move_cursor", [55, 5, 5, None, None], "runs_one_cursor", 5


RUNS = [f"{job}-{START + job}" for job in range(101, 201)]
TIMES: dict[str, Any] = {"started_at": 5, "finished_at": 5, "lateness_ms": 5, "duration_ms": 5}
DONE = [DoneRun(id=run, token=1, outcome="x", **TIMES) for run in RUNS]


def finishes() -> Iterator[tuple[str, list[Any]]]:
    """Statements that take many runs of a node by their fences."""
    rest: dict[str, Any] = {"status": "done", "reason": "x", "tries": 5, "losses": 5, "outcome": "x"}
    rest |= {"error": "x", "attempts": "x", "result": "x"}
    yield "finish_record", [Rows([EndedRun(id=run, token=1, node="n1", **rest, **TIMES) for run in RUNS])]
    yield "finish_lock", [Rows([OwnedRun(run, 1, "n1") for run in RUNS])]
    back: dict[str, Any] = {"ready_at": 5, "tries": 5, "losses": 5, "attempts": "[]", "cursor": False}
    yield "finish_retry", [Rows([PendingAgain(id=run, **back) for run in RUNS])]
    yield "begin_runs", ["n1", Rows([Fence(run, 1) for run in RUNS])]
    yield "runs_by_id", [RUNS]
    yield "delete_runs", [RUNS]
    accepted: dict[str, Any] = {"started_at": 5, "within_ms": 5, "certain": True, "work": "{}"}
    yield "accept_runs", [Rows([AcceptedRun(id=run, token=1, node="n1", **accepted) for run in RUNS])]
    yield "lock_run_alone", [RUNS[0]]
    yield "hold_for_callback", [RUNS[0]]
    yield "set_progress", [RUNS[0], 1, "{}"]


ENDED = Rows([EndedJob(job, 5) for job in range(1, LIMIT)])


OPENED = f"""
UPDATE runs SET state = 'running', open = 'adopt', work = '{{}}', cursor = false, requires = 'c@' || (job_id % 20),
    begun_at = {START}, open_until = {LATER} - 40000 + job_id
WHERE job_id > 1000 AND job_id <= 1900 AND state = 'pending' AND lane IS NULL
"""
"""Most of them are not overdue, and at each place there are a few."""


def open_runs() -> Iterator[tuple[str, list[Any], str]]:
    yield "adopt_runs", ["n9", ["c@1", "c@2", "c@none"], 1, LIMIT], "runs_adoptable"
    yield "overdue_runs", [LIMIT], "runs_overdue"
    yield "unreached_runs", ["c@1", LIMIT], "runs_adoptable"
    yield "list_running", [1, 0, LAST, LAST, ANY_ID, "EXECUTING", LIMIT, LATER], "runs_open"
    yield "begin_work", ["n1", Rows([begun(run) for run in RUNS])], "runs"
    yield "open_runs", [Rows([OpenRun(id=run, token=1, node="n1", left_ms=5) for run in RUNS])], "runs"


def begun(run: str) -> BegunWork:
    return BegunWork(id=run, token=1, work="{}", requires="c@1", within_ms=5)


@pytest.fixture(params=[2_000, 50_000, *([1_000_000] if os.environ.get("LARGE") else [])], ids="{:,}".format)
def size(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


class TestPostgres:
    async def test_all(self, many_runs: Callable[[str, int], str], size: int) -> None:
        connection = await asyncpg.connect(many_runs("postgres", size), server_settings=SESSION)
        try:
            for now in (str(LATER), str(START + size // 2)):
                queries = Queries("postgres", f"{now}::bigint")
                for name, args, index, most in statements(size):
                    check(name, await executed(connection, queries[name], args), index, most)
            queries = Queries("postgres", NOW)
            for name, args in (*finishes(), *self.well_done()):
                check(name, await executed(connection, queries[name], args), "runs_pkey", 6 * LIMIT)
        finally:
            await connection.close()

    def well_done(self) -> Iterator[tuple[str, list[Any]]]:
        for also in ("also.nothing", "also.stats"):
            yield f"finish_done+{also}", ["n1", Rows(DONE)]
            yield f"finish_one+{also}", ["n1", DONE[0]]

    async def test_open_runs(self, many_runs: Callable[[str, int], str], size: int) -> None:
        """By their own indexes, however many there are; in a transaction that is undone."""
        connection = await asyncpg.connect(many_runs("postgres", size), server_settings=SESSION)
        transaction = connection.transaction()
        await transaction.start()
        try:
            await connection.execute(OPENED)
            await connection.execute("ANALYZE runs")
            queries = Queries("postgres", f"{LATER}::bigint")
            for name, args, index in open_runs():
                check(name, await executed(connection, queries[name], args), index, 15 * LIMIT)
        finally:
            await transaction.rollback()
            await connection.close()

    async def test_settling(self, many_runs: Callable[[str, int], str], size: int) -> None:
        """By the jobs' key, and one look for a scheduled run of each."""
        connection = await asyncpg.connect(many_runs("postgres", size), server_settings=SESSION)
        try:
            queries = Queries("postgres", NOW)
            for name, args in (
                ("end_unchanged", [ENDED]),
                ("lock_jobs", [[*range(1, LIMIT)]]),
                ("end_jobs", [ENDED]),
            ):
                check(name, await executed(connection, queries[name], args), "jobs_pkey", 3 * LIMIT)
        finally:
            await connection.close()

    async def test_runs_of_the_living_are_not_read(self, many_runs: Callable[[str, int], str]) -> None:
        connection = await asyncpg.connect(many_runs("postgres", 50_000), server_settings=SESSION)
        try:
            queries, undone = Queries("postgres", NOW), connection.transaction()
            await undone.start()
            for node, most in (("n0", 1000 + 2 * LIMIT), ("n2", 1000 + 2 * LIMIT), ("n1", 0)):
                await connection.execute(_NODE.format(node=node))
                check("orphans", await executed(connection, queries["orphans"], [LIMIT]), "runs_of_node", most)
                beat = await executed(connection, queries["beat_at_once"], [node, 0, 0, None, False, *[None] * 4])
                check("beat_at_once", beat, "runs_of_node", min(most, LIMIT))
            await undone.rollback()
        finally:
            await connection.close()


async def executed(connection: Any, sql: str, args: Sequence[Any]) -> dict[str, Any]:
    """The generic plan with what each of its steps did; undone."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(f"PREPARE asked AS {sql}")
        values = ", ".join(map(literal, flat(args)))
        text = await connection.fetchval(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE asked({values})")
        await connection.execute("DEALLOCATE asked")
    finally:
        await transaction.rollback()
    plan: dict[str, Any] = json.loads(text)[0]["Plan"]
    return plan


def flat(args: Sequence[Any]) -> Iterator[Any]:
    for arg in args:
        if isinstance(arg, Rows):
            yield from arg.columns()
        elif isinstance(arg, Shape):
            yield from spread(arg)
        else:
            yield arg


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return "'{" + ",".join(str(item) for item in value) + "}'"
    return f"'{value}'" if isinstance(value, str) else str(value)


def steps_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", []):
        yield from steps_of(below)


def check(name: str, plan: dict[str, Any], index: str | None, most: int) -> None:
    used, touched = [], 0.0
    for step in steps_of(plan):
        used.append(str(step.get("Index Name")))
        table = str(step.get("Relation Name"))
        if table.startswith(TABLES) and step["Node Type"] != "ModifyTable" and step["Actual Loops"]:
            assert step["Node Type"] != "Seq Scan" or table == "history_default", f"{name}: reads all of {table}"
            removed = step.get("Rows Removed by Filter", 0) + step.get("Rows Removed by Index Recheck", 0)
            touched += (step["Actual Rows"] + removed) * step["Actual Loops"]
    assert index is None or any(index in each for each in used), f"{name}: {used}"
    assert touched <= most, f"{name}: touches {touched} rows\n" + "\n".join(map(brief, steps_of(plan)))


def brief(step: dict[str, Any]) -> str:
    names = ("Node Type", "Relation Name", "Index Name", "Actual Rows", "Rows Removed by Filter", "Actual Loops")
    return " ".join(f"{step[name]}" for name in names if name in step)


class TestSqlite:
    def test_open_runs(self, many_runs: Callable[[str, int], str], size: int, tmp_path: Path) -> None:
        copy = shutil.copy(many_runs("sqlite", size).removeprefix("sqlite:///"), tmp_path / "open.db")
        raw = sqlite3.connect(copy, isolation_level=None)
        queries = Queries("sqlite", str(LATER))
        try:
            raw.execute(OPENED)
            for name, args, index in open_runs():
                plan = explained(raw, queries[name], args)
                assert index in plan, plan
                steps = counted(raw, queries[name], args)
                assert steps < 2_000 * LIMIT, f"{name}: {steps} steps\n{plan}"
        finally:
            raw.close()

    def test_all(self, many_runs: Callable[[str, int], str], size: int) -> None:
        raw = sqlite3.connect(many_runs("sqlite", size).removeprefix("sqlite:///"), isolation_level=None)
        clock = [LATER]
        raw.create_function("now_ms", 0, lambda: clock[0])
        queries = Queries("sqlite", "now_ms()")
        try:
            for clock[0] in (LATER, START + size // 2):
                for name, args, _, most in statements(size):
                    steps = counted(raw, queries[name], args)
                    assert steps < 400 * most + 20_000, f"{name} {args}: {steps}\n{explained(raw, queries[name], args)}"
            for name, rows in (*finishes(), *self.endings()):
                steps = counted(raw, queries[name], rows)
                assert steps < 2_000 * LIMIT, f"{name}: {steps} steps\n{explained(raw, queries[name], rows)}"
        finally:
            raw.close()

    def endings(self) -> Iterator[tuple[str, list[Any]]]:
        yield "finish_done+also.nothing", ["n1", DONE[0]]
        for name in ("end_unchanged", "end_jobs"):
            yield name, [ENDED]


def texts(args: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for arg in args:
        if isinstance(arg, Shape):
            found += spread(arg)
        else:
            rows = list(map(spread, arg.rows)) if isinstance(arg, Rows) else arg
            found.append(json.dumps(rows) if isinstance(rows, list) else rows)
    return found


def explained(raw: sqlite3.Connection, sql: str, args: Sequence[Any]) -> str:
    return "\n".join(row[3] for row in raw.execute("EXPLAIN QUERY PLAN " + sql, texts(args)))


def counted(raw: sqlite3.Connection, sql: str, args: Sequence[Any]) -> int:
    """How many steps of its machine SQLite took, in hundreds; undone."""
    hundreds = 0

    def count() -> int:
        nonlocal hundreds
        hundreds += 1
        return 0

    raw.execute("BEGIN")
    raw.set_progress_handler(count, 100)
    try:
        raw.execute(sql, texts(args)).fetchall()
    finally:
        raw.set_progress_handler(None, 0)
        raw.execute("ROLLBACK")
    return hundreds * 100
