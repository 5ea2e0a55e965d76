"""What people of the company did in the last two weeks: changes, operations on many jobs, incidents they were told of.

It is done through the service, in the name of whoever did it, so that versions, audit entries and counts belong
together. Afterwards it is dated back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from examples.demo.tables import Tables
from onthedot.model.actor import ChangeActor
from onthedot.model.bulk import BulkFilter, BulkRequest
from onthedot.model.duration import DAY, HOUR, MINUTE
from onthedot.service import DEFAULT_TENANT, Service
from onthedot.store import Store
from onthedot.store.abandoned_requests import ASKER

__all__ = ["in_the_name_of", "write_changes", "write_incidents"]

Act = Callable[[], Awaitable[Any]]
NODE = "anvil-1"
INCIDENTS = (
    ("price-feed", "late", "started 42 s late", 60),
    ("ledger-main", "in_a_row", "3 runs in a row have failed", 15),
    ("payment-status", "late", "started 95 s late", 45),
    ("returns-sync", "in_a_row", "3 runs in a row have failed", 12),
    ("demand-forecast", "in_a_row", "3 runs in a row have failed", 90),
)
"""Closed ones: of which job, the condition, the reason, and for how many minutes."""


class _Person:
    def __init__(self, name: str) -> None:
        self.name: str | None = name
        self.actor: ChangeActor | None = ChangeActor(kind="key", name=name, address="10.1.4.20")

    def check(self, *, late: bool = True) -> None:
        """They wait for the answer."""


@contextmanager
def in_the_name_of(name: str) -> Iterator[None]:
    asking = ASKER.set(_Person(name))
    try:
        yield
    finally:
        ASKER.reset(asking)


async def write_changes(service: Service, store: Store, tables: Tables, jobs: Mapping[str, int], now: int) -> None:
    """`jobs`: ids by key."""
    acts = _acts(service, store, jobs)
    for ago, (person, act) in zip(_times(len(acts)), acts, strict=True):
        newest = await _newest(tables)
        with in_the_name_of(person):
            await act()
        await _date_back(tables, newest, now - ago)
    made_at = "(SELECT created_at FROM jobs j WHERE j.id = job_versions.job_id)"
    await tables.change(f"UPDATE job_versions SET at = {made_at} WHERE version = $1", [(1,)])


def _acts(service: Service, store: Store, jobs: Mapping[str, int]) -> list[tuple[str, Act]]:
    def patch(key: str, change: dict[str, Any]) -> Act:
        return lambda: service.patch_job(DEFAULT_TENANT, jobs[key], change)

    def bulk(verb: Any, params: dict[str, Any], rate: int | None = None, **chosen: Any) -> Callable[[], Awaitable[int]]:
        asked = BulkRequest(verb=verb, filter=BulkFilter(**chosen), params=params, rate=rate)

        async def started() -> int:
            return (await service.start_operation(DEFAULT_TENANT, asked)).id

        return started

    async def finished(start: Callable[[], Awaitable[int]]) -> None:
        await start()
        while await store.work_off_operation(NODE) is not None:
            pass

    async def left_off(start: Callable[[], Awaitable[int]], leave: Callable[[int, int], Awaitable[Any]]) -> None:
        started = await start()
        await store.work_off_operation(NODE)
        await leave(DEFAULT_TENANT, started)

    stock = bulk("tag", {"add": ["reviewed"]}, tag="stock")
    tiers = bulk("discard", {"note": "Their system is switched off; see the ticket"}, job_id=jobs["loyalty-tiers"])
    forecasts = bulk("redrive", {}, 1, job_id=jobs["demand-forecast"])
    mail = bulk("tag", {"add": ["campaign"]}, 2, tag="mail")
    return [
        ("ines", patch("rotate-logs", {"schedule": {"cron": "20 * * * *"}, "params": {"days": 30}})),
        ("tomas", patch("fraud-check", {"policy": {"timeout": "5s"}})),
        ("tomas", patch("ledger-main", {"policy": {"retry": {"attempts": 2}}})),
        ("anna", lambda: service.pause_job(DEFAULT_TENANT, jobs["price-feed"], note="The auction house is moving")),
        ("anna", lambda: service.resume_job(DEFAULT_TENANT, jobs["price-feed"])),
        ("ben", patch("returns-sync", {"policy": {"timeout": "4s"}})),
        ("deploy", patch("orders-import", {"policy": {"retry": {"attempts": 5}}})),
        ("ines", lambda: finished(stock)),
        ("ben", patch("returns-sync", {"policy": {"retry": {"attempts": 4, "backoff": "2s"}}})),
        ("anna", lambda: left_off(mail, service.abort_operation)),
        ("deploy", patch("demand-forecast", {"params": {"days": 21}})),
        ("ines", lambda: left_off(forecasts, service.pause_operation)),
        ("ben", lambda: finished(tiers)),
    ]


def _times(count: int) -> list[int]:
    """How long ago, the first two weeks, the last a quarter of an hour; more of it lately."""
    share = [(count - number) / count for number in range(count)]
    return [15 * MINUTE + round((13 * DAY + 3 * HOUR) * each**2) for each in share]


class _Newest(msgspec.Struct, frozen=True):
    """What was there before: all that is newer was made by the act."""

    audit: int
    operation: int
    versions: frozenset[tuple[int, int]]
    discarded: frozenset[str]


async def _newest(tables: Tables) -> _Newest:
    audit, operation = await tables.rows(
        "SELECT coalesce(max(id), 0) FROM audit_log UNION ALL SELECT coalesce(max(id), 0) FROM operations"
    )
    versions = await tables.rows("SELECT job_id, version FROM job_versions")
    discarded = await tables.rows("SELECT run_id FROM discarded_letters")
    return _Newest(
        audit[0],
        operation[0],
        frozenset((row[0], row[1]) for row in versions),
        frozenset(row[0] for row in discarded),
    )


async def _date_back(tables: Tables, before: _Newest, at: int) -> None:
    await tables.change("UPDATE audit_log SET at = $1 WHERE id > $2", [(at, before.audit)])
    letters = {row[0] for row in await tables.rows("SELECT run_id FROM discarded_letters")} - before.discarded
    await tables.change(  # after it failed, whenever the act was
        "UPDATE discarded_letters SET discarded_at ="
        " CASE WHEN failed_at > $1 THEN failed_at + 60000 ELSE CAST($2 AS bigint) END WHERE run_id = $3",
        [(at, at, letter) for letter in letters],
    )
    later = at + 40_000
    await tables.change(
        "UPDATE operations SET created_at = $1, updated_at = $2,"
        " finished_at = CASE WHEN finished_at IS NOT NULL THEN CAST($3 AS bigint) END WHERE id > $4",
        [(at, later, later, before.operation)],
    )
    now = {(row[0], row[1]) for row in await tables.rows("SELECT job_id, version FROM job_versions")}
    made = [(at, job, version) for job, version in now - before.versions]
    await tables.change("UPDATE job_versions SET at = $1 WHERE job_id = $2 AND version = $3", made)
    await tables.change("UPDATE jobs SET updated_at = $1 WHERE id = $2", [(when, job) for when, job, _ in made])


async def write_incidents(tables: Tables, jobs: Mapping[str, int], titles: Mapping[str, str], now: int) -> None:
    """That are over, and of which the channel was told."""
    columns = ("tenant", "subject", "condition", "job_id", "title", "reason", "cause", "ways", "count")
    rows = []
    for number, (key, condition, reason, minutes) in enumerate(INCIDENTS):
        opened = now - (number * 41 + 9) * HOUR
        what = (DEFAULT_TENANT, f"job {jobs[key]}", condition, jobs[key], titles[key], reason, reason, "[]", 3)
        rows.append((*what, opened, opened + minutes * MINUTE // 2, opened, opened + minutes * MINUTE))
    await tables.insert("incidents", (*columns, "opened_at", "last_at", "alerted_at", "closed_at"), rows)
    found = await tables.rows("SELECT id, opened_at, closed_at FROM incidents WHERE closed_at IS NOT NULL")
    told = [
        (DEFAULT_TENANT, incident, "on-call", event, at, at, False, 1, at + 800, True)
        for incident, opened, closed in found
        for event, at in (("opened", opened), ("recovered", closed))
    ]
    names = (
        "tenant",
        "incident_id",
        "channel",
        "event",
        "created_at",
        "not_before",
        "quiet",
        "tries",
        "sent_at",
        "lead",
    )
    await tables.insert("alert_deliveries", names, told)
