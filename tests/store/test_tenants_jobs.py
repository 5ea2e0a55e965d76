"""Tenants never see or touch each other's jobs."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import pytest

from onthedot.errors import NotFound
from onthedot.store import JobFilter, Store
from onthedot.store.queries import Queries
from tests.store.conftest import START, Times
from tests.store.given import create, fetch, spec

TABLES = ("jobs", "runs", "history", "job_tags", "api_keys", "dead_letters", "run_logs", "idempotency")

# Statements that know no tenant, each with its reason.
BY_ID_UNDER_LOCK = {  # within a transaction that locked the job by (tenant, id) before
    "delete_tags",
    "delete_job_dead_letters",
    "drop_cursor",
    "move_cursor",
    "refit_runs",
    "regroup_runs",
    "relane_runs",
    "park_runs",
    "release_runs",
    "recall_runs",
    "slots_with_rows",
    "slots_left_out",
}
FOR_ALL_TENANTS = {  # maintenance, and the question whose key it is
    "prune_jobs",
    "prune_tags",
    "prune_idempotency",
    "find_key",
    "any_key",
    "revive_setting_key",  # the key that the settings name, found by its hash in this transaction
}
FILES = ("jobs", "lists", "verbs", "idempotency", "sync", "keys")


def _statements(dialect: str) -> dict[str, str]:
    from importlib import resources

    folder = resources.files("onthedot.store") / dialect / "queries"
    names: set[str] = set()
    for file in FILES:
        names |= set(re.findall(r"^-- name: (\S+)$", (folder / f"{file}.sql").read_text(), re.MULTILINE))
    queries = Queries(dialect, "now()")
    return {name: queries[name] for name in names}


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_each_statement_names_the_tenant(dialect: str) -> None:
    excused = BY_ID_UNDER_LOCK | FOR_ALL_TENANTS
    statements = _statements(dialect)
    assert excused <= statements.keys(), "an excuse for a statement that is gone"
    for name, text in statements.items():
        reads = [table for table in TABLES if re.search(rf"\b(FROM|JOIN|UPDATE|INTO) {table}\b", text)]
        of_a_job_found = name.startswith("where.") and "j.id" in text  # the statement around it names the tenant
        if reads and name not in excused and not of_a_job_found:
            assert "tenant" in text, f"{name} reads {reads} of all tenants"


async def test_what_another_tenant_has_does_not_exist(store: Store, times: Times) -> None:
    job = await create(store, key="k", tags=["t"], name="n")
    before = await fetch(store, "SELECT * FROM jobs"), await fetch(store, "SELECT * FROM runs")
    attempts: list[Callable[[], Awaitable[object]]] = [
        lambda: store.get_job(2, job.id),
        lambda: store.get_job_by_key(2, "k"),
        lambda: store.get_record(2, job.id),
        lambda: store.timer_left(2, job.id),
        lambda: store.update_job(2, job.id, lambda _: spec(name="x")),
        lambda: store.delete_job(2, job.id),
        lambda: store.pause_job(2, job.id),
        lambda: store.resume_job(2, job.id),
        lambda: store.run_job(2, job.id),
        lambda: store.backfill_job(2, job.id, start=0, end=START),
        lambda: store.revoke_key(2, 1),
    ]
    for attempt in attempts:
        with pytest.raises(NotFound):
            await attempt()
    assert (await fetch(store, "SELECT * FROM jobs"), await fetch(store, "SELECT * FROM runs")) == before


async def test_lists_show_their_own(store: Store, times: Times) -> None:
    mine = await create(store, key="k", tags=["t"], name="n")
    theirs = await create(store, tenant=2, key="k", tags=["t"], name="n")
    for asked in (
        JobFilter(),
        JobFilter(q="k"),
        JobFilter(q="n"),
        JobFilter(tag="t"),
        JobFilter(status="active"),
        JobFilter(target="webhook"),
        JobFilter(schedule="cron"),
        JobFilter(next_after=0),
    ):
        assert [job.id for job in (await store.list_jobs(1, asked)).items] == [mine.id], asked
        assert [job.id for job in (await store.list_jobs(2, asked)).items] == [theirs.id], asked
        assert (await store.list_jobs(3, asked)).items == []


async def test_put_by_key_stays_within(store: Store, times: Times) -> None:
    mine = await create(store, key="k", name="mine")
    theirs, created = await store.put_job(2, "k", lambda _: spec(key="k", name="theirs"))
    assert created
    assert theirs.id != mine.id
    assert (await store.get_job_by_key(1, "k")).name == "mine"
