"""Lists of jobs read what they show and little more, with 50,000 jobs (LARGE=1: a million), also in the generic plan.

A prepared statement gets its generic plan after five executions, and that one knows no values: a LIMIT is a tenth of
the table to it, a filter an average. What is fast in a test with literals may read everything then. So the plan is
forced here, executed, and the rows it touched are counted. SQLite plans once, without values, whatever the size.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import asyncpg
import pytest

from onthedot.store import JobFilter
from onthedot.store.jobs.job_filter import asked_of
from onthedot.store.jobs.list_statements import SCANNED, reach_for, statement_for
from onthedot.store.jobs.views import VIEW
from onthedot.store.paging import seal_cursor
from onthedot.store.postgres.driver import NOW, SESSION
from onthedot.store.queries import Queries
from tests.store.many_jobs import START

pytestmark = pytest.mark.timeout(300)

LIMIT = 50
MOST_PAGES = (
    40 * LIMIT
)  # 16 MB of buffers: of each of five kinds a page of jobs, and of each shown its runs and history
TABLES = ("jobs", "runs", "job_tags")
SOON = START + 30_000
RARELY = JobFilter(next_after=START, tag="rare")


def after(wanted: JobFilter, *position: int | str) -> JobFilter:
    """The page that begins in the middle."""
    return JobFilter(**{**_fields(wanted), "cursor": seal_cursor(asked_of(wanted), *position)})


def _fields(wanted: JobFilter) -> dict[str, Any]:
    return {name: getattr(wanted, name) for name in wanted.__struct_fields__}


LISTS = {
    "all": (JobFilter(), "jobs_listed"),
    "all, later": (after(JobFilter(), 40_000), "jobs_listed"),
    "state, common": (JobFilter(status="active"), "jobs_listed"),
    "state, rare": (JobFilter(status="paused"), "jobs_listed"),
    "state, none": (JobFilter(status="quarantined"), "jobs_listed"),
    "state, later": (after(JobFilter(status="paused"), 30_000), "jobs_listed"),
    "target, common": (JobFilter(target="webhook"), "jobs_listed"),
    "target, rare": (JobFilter(target="command"), "jobs_listed"),
    "schedule, common": (JobFilter(schedule="in"), "jobs_listed"),
    "schedule, rare": (JobFilter(schedule="cron"), "jobs_listed"),
    "tag, common": (JobFilter(tag="common"), "job_tags"),
    "tag, rare": (JobFilter(tag="rare"), "job_tags"),
    "tag, later": (after(JobFilter(tag="rare"), 30_000), "job_tags"),
    "owner": (JobFilter(owner="nobody"), "jobs_by_owner"),
    "owner, later": (after(JobFilter(owner="nobody"), 30_000), "jobs_by_owner"),
    "q, key": (JobFilter(q="key-12"), "jobs_by_key_search"),
    "q, name": (JobFilter(q="NAME 4"), "jobs_by_name_search"),
    "q, everything": (JobFilter(q="n"), "jobs_by_name_search"),
    "q, nothing": (JobFilter(q="zzz"), "jobs_by_key_search"),
    "q, later": (after(JobFilter(q="key"), "key-3", 0), "jobs_by_key_search"),
    "next, before": (JobFilter(next_before=SOON), "runs_next"),
    "next, after": (JobFilter(next_after=SOON), "runs_next"),
    "next, between": (JobFilter(next_after=SOON, next_before=SOON + 100), "runs_next"),
    "next, later": (after(JobFilter(next_after=START), SOON, "30000"), "runs_next"),
    "next, jitter": (JobFilter(next_after=SOON), "runs_jittered"),
    "next and state": (JobFilter(next_after=SOON, status="active"), "runs_next"),
    "tag and state": (JobFilter(tag="common", status="active"), "job_tags"),
    "sort by name": (JobFilter(sort="name"), "jobs_by_title"),
    "sort by name, down": (JobFilter(sort="-name"), "jobs_by_title"),
    "sort by name, later": (after(JobFilter(sort="-name"), "name 3", 3), "jobs_by_title"),
    "sort by next": (JobFilter(sort="next"), "runs_next"),
    "sort by next, down": (JobFilter(sort="-next"), "runs_next"),
    "q and state": (JobFilter(q="name", status="active"), "jobs_by_name_search"),
}


BOUNDED = {
    "failing": (JobFilter(failing=True), "noticed_jobs"),
    "late": (JobFilter(late=True), "noticed_jobs"),
    "not failing": (JobFilter(failing=False), "jobs_listed"),
    "never ran": (JobFilter(never_ran=True), "jobs_listed"),
    "ran, rare": (JobFilter(never_ran=False), "jobs_listed"),
    "last done, rare": (JobFilter(last_status="DONE"), "jobs_listed"),
    "last skipped, none": (JobFilter(last_status="SKIPPED"), "jobs_listed"),
    "not late": (JobFilter(late=False, ended=False), "jobs_listed"),
    "tag and rare state": (JobFilter(tag="common", status="paused"), "job_tags"),
    "tag and failing": (JobFilter(tag="common", failing=True), "noticed_jobs"),
    "sort by name and rare state": (JobFilter(sort="name", status="paused"), "jobs_by_title"),
    "sort by next and rare target": (JobFilter(sort="-next", target="command"), "runs_next"),
    "sort by last": (JobFilter(sort="-last"), "history"),
    "prefix and rare state": (JobFilter(q="name", status="paused"), "jobs_by_name_search"),
    "words elsewhere": (after(JobFilter(q="ame none"), 40_000), "jobs_listed"),
    "words and failing": (JobFilter(q="key-4", failing=True), "noticed_jobs"),
    "owner and target": (JobFilter(owner="nobody", target="command"), "jobs_by_owner"),
}
"""Lists with filters that have no index: a page looks at so many jobs, and no further."""


@pytest.fixture(params=[50_000, *([1_000_000] if os.environ.get("LARGE") else [])], ids="{:,}".format)
def size(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


async def test_postgres(many_jobs: Callable[[str, int], str], size: int) -> None:
    queries = Queries("postgres", NOW)
    connection = await asyncpg.connect(many_jobs("postgres", size), server_settings=SESSION)
    try:
        for label, (wanted, index) in LISTS.items():
            for tenant in (1, 2):  # nearly all the jobs, and one in a thousand
                name, args = statement_for(tenant, wanted)
                _check(label, await _executed(connection, queries[name], args), index)
        for label, (wanted, index) in BOUNDED.items():
            asked = reach_for(1, wanted)
            assert asked is not None
            found = await connection.fetchrow(queries[asked[0]], *asked[1])
            _check(
                f"{label}, reach", await _executed(connection, queries[asked[0]], asked[1]), index, scanned=5 * SCANNED
            )
            name, args = statement_for(1, wanted, reach=None if found is None else tuple(found))
            _check(label, await _executed(connection, queries[name], args), index, scanned=4 * SCANNED)
        for name, args in (("get_job", [1, 777]), ("get_job_by_key", [1, "Key-778"]), ("get_jobs", [1, [3, 4, 5]])):
            plan = await _executed(connection, queries[name + VIEW], args)
            _check(name, plan, None)
        for name, args in (
            ("lock_job", [1, 777]),
            ("lock_runs", [1, 777]),
            ("jobs_of_source", [1, "x.json"]),
            ("run_at_present", [1, 777]),
        ):
            _check(name, await _executed(connection, queries[name], args), None)
        _check("pauses_over", await _executed(connection, queries["pauses_over"], [100]), "jobs_paused_until")
        name, args = statement_for(1, RARELY, few=True)
        _check(
            "next of a few", await _executed(connection, queries[name], args), "runs_one_cursor", tagged=size // 1000
        )
    finally:
        await connection.close()


async def _executed(connection: Any, sql: str, args: list[Any]) -> dict[str, Any]:
    """The generic plan, with what each of its steps did."""
    await connection.execute(f"PREPARE asked AS {sql}")
    try:
        values = ", ".join(map(_literal, args))
        text = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE asked({values})")
    finally:
        await connection.execute("DEALLOCATE asked")
    plan: dict[str, Any] = json.loads(text)[0]["Plan"]
    return plan


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, list):
        return "'{" + ",".join(map(str, value)) + "}'"
    return str(value)


def _steps(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", []):
        yield from _steps(below)


def _check(label: str, plan: dict[str, Any], index: str | None, tagged: int = 0, scanned: int = 0) -> None:
    """tagged: as many jobs are looked at, each by its tag, its cursor and its row. scanned: as many rows, anyhow."""
    used, touched = set(), 0.0
    for step in _steps(plan):
        used.add(step.get("Index Name"))
        if step.get("Relation Name") in TABLES:
            assert step["Node Type"] != "Seq Scan", f"{label}: reads all of {step['Relation Name']}"
            touched += (step["Actual Rows"] + step.get("Rows Removed by Filter", 0)) * step["Actual Loops"]
        if "Sort" in step["Node Type"]:
            assert step["Actual Rows"] <= 2 * (LIMIT + 1) + scanned, f"{label}: sorts more than a page"
    assert index is None or any(str(name).startswith(index) for name in used), f"{label}: {used}"
    assert touched <= 10 * LIMIT + 3 * tagged + scanned, f"{label}: touches {touched} rows for a page of {LIMIT}"
    read = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    assert read <= MOST_PAGES + 10 * (tagged + scanned), (
        f"{label}: reads {read} pages of the database for a page of {LIMIT}"
    )


def test_sqlite(many_jobs: Callable[[str, int], str], size: int) -> None:
    queries = Queries("sqlite", "now_ms()")
    raw = sqlite3.connect(many_jobs("sqlite", size).removeprefix("sqlite:///"))
    raw.create_function("now_ms", 0, lambda: START)
    try:
        for label, (wanted, index) in LISTS.items():
            name, args = statement_for(1, wanted)
            assert _counted(raw, queries[name], [2, *args[1:]])[0] < 60_000, f"{label}: of a small tenant"
            plan = "\n".join(row[3] for row in raw.execute("EXPLAIN QUERY PLAN " + queries[name], args))
            expected = "PRIMARY KEY" if index == "job_tags" else index
            assert expected in plan, f"{label}: {plan}"
            steps, rows = _counted(raw, queries[name], args)
            assert len(rows) <= LIMIT + 1
            assert steps < 60_000, f"{label}: {steps} steps for {len(rows)} rows\n{plan}"
        for label, (wanted, index) in BOUNDED.items():
            name, args = reach_for(1, wanted) or ("", [])
            steps, rows = _counted(raw, queries[name], args)
            assert steps < 150 * SCANNED, f"{label}, reach: {steps} steps"
            name, args = statement_for(1, wanted, reach=rows[0] if rows else None)
            plan = "\n".join(row[3] for row in raw.execute("EXPLAIN QUERY PLAN " + queries[name], args))
            assert ("PRIMARY KEY" if index in ("job_tags", "noticed_jobs") else index) in plan, f"{label}: {plan}"
            assert _counted(raw, queries[name], args)[0] < 60_000 + 150 * SCANNED, f"{label}: {plan}"
        for name, args in (("get_job", [1, 777]), ("get_job_by_key", [1, "Key-778"]), ("get_jobs", [1, "[3, 4]"])):
            steps, rows = _counted(raw, queries[name + VIEW], args)
            assert rows
            assert steps < 2_000, name
        for name, args in (("lock_job", [1, 777]), ("lock_runs", [1, 777]), ("jobs_of_source", [1, "x.json"])):
            assert _counted(raw, queries[name], args)[0] < 2_000, name
        name, args = statement_for(1, RARELY, few=True)
        assert _counted(raw, queries[name], args)[0] < 60_000 + 200 * size // 1000
    finally:
        raw.close()


def _counted(raw: sqlite3.Connection, sql: str, args: list[Any]) -> tuple[int, list[Any]]:
    """How many steps of its machine SQLite took, in hundreds, and what it found."""
    hundreds = 0

    def count() -> int:
        nonlocal hundreds
        hundreds += 1
        return 0

    raw.set_progress_handler(count, 100)
    try:
        rows = raw.execute(sql, args).fetchall()
    finally:
        raw.set_progress_handler(None, 0)
    return hundreds * 100, rows
