"""Reading writes nothing: each method of the store that only asks works on a database that refuses to be written."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest

from onthedot.clock import FakeClock
from onthedot.errors import StoreUnavailable
from onthedot.model.duration import Duration
from onthedot.model.objective import Objective
from onthedot.store import AuditFilter, Idempotency, IncidentFilter, JobFilter, NewJob, RunFilter, Store, open_store
from tests.store.conftest import START, Times
from tests.store.given import fetch
from tests.store.hands import REFUSED, Hands, at, every, node_info, spec

RUN = f"1-{START + 1000}"
REPEAT = Idempotency("key", "fingerprint")

READS: dict[str, Callable[[Store], Awaitable[object]]] = {
    "any_key": lambda store: store.any_key(),
    "backlog": lambda store: store.backlog(),
    "count_dead": lambda store: store.count_dead(),
    "count_waiting": lambda store: store.count_waiting(["webhook@http://example.com"]),
    "cursor_slot": lambda store: store.cursor_slot(1, 3),
    "destinations_of_nodes": lambda store: store.destinations_of_nodes(),
    "durability": lambda store: store.durability(),
    "earlier_jobs": lambda store: store.earlier_jobs(1, [REPEAT]),
    "count_old_notes": lambda store: store.count_old_notes(0),
    "count_waiting_for_groups": lambda store: store.count_waiting_for_groups(),
    "find_key": lambda store: store.find_key("hash"),
    "find_script": lambda store: store.find_script(1, "sha256:0"),
    "floors_ahead": lambda store: store.floors_ahead(),
    "get_job": lambda store: store.get_job(1, 1),
    "get_job_by_key": lambda store: store.get_job_by_key(1, "k"),
    "get_record": lambda store: store.get_record(1, 1),
    "get_run": lambda store: store.get_run(1, RUN),
    "held": lambda store: store.held("n1"),
    "is_open": lambda store: store.is_open(),
    "job_names": lambda store: store.job_names(1, [1]),
    "names_of_nodes": lambda store: store.names_of_nodes(["n1"]),
    "jobs_of_script": lambda store: store.jobs_of_script(1, "script", "sha256:0"),
    "known_repeats": lambda store: store.known_repeats(1, [REPEAT]),
    "last_failover": lambda store: store.last_failover(),
    "list_dead": lambda store: store.list_dead(1),
    "list_groups": lambda store: store.list_groups(1),
    "list_jobs": lambda store: store.list_jobs(1, JobFilter(status="ended")),
    "list_keys": lambda store: store.list_keys(1),
    "list_nodes": lambda store: store.list_nodes(),
    "list_runs": lambda store: store.list_runs(1, RunFilter()),
    "list_scripts": lambda store: store.list_scripts(1),
    "living": lambda store: store.living([(RUN, 1)]),
    "look": lambda store: store.look([["webhook"]], level=9, lookahead_ms=2000),
    "poll_orders": lambda store: store.poll_orders("n1"),
    "missing_scripts": lambda store: store.missing_scripts(1, ["sha256:0"]),
    "now": lambda store: store.now(),
    "refuse_other_bodies": lambda store: store.refuse_other_bodies(1, [REPEAT]),
    "required": lambda store: store.required("", 10),
    "proof": lambda store: store.proof(1),
    "recent_runs": lambda store: store.recent_runs(1, [1, 2, 3]),
    "list_versions": lambda store: store.list_versions(1, 1),
    "get_version": lambda store: store.get_version(1, 1, 1),
    "series": lambda store: store.series(1, "minute", 0, 120_000),
    "spec_at": lambda store: store.spec_at(1, 1, 1),
    "chain_of": lambda store: store.chain_of(1, 3),
    "group_dead": lambda store: store.group_dead(1),
    "job_ahead": lambda store: store.job_ahead(1, 3),
    "list_audit": lambda store: store.list_audit(1, AuditFilter()),
    "list_discarded": lambda store: store.list_discarded(1),
    "list_operations": lambda store: store.list_operations(1),
    "slot_counts": lambda store: store.slot_counts(1, 3, START, START + 1000),
    "slot_entries": lambda store: store.slot_entries(1, 3, START, START + 1000, 10),
    "slot_state": lambda store: store.slot_state(1, 3),
    "run_at_present": lambda store: store.run_at_present(1, 3),
    "run_logs": lambda store: store.run_logs(1, RUN),
    "stats": lambda store: store.stats(1),
    "tenant_named": lambda store: store.tenant_named("default"),
    "timer_left": lambda store: store.timer_left(1, 1),
    "alerts_due": lambda store: store.alerts_due(["ops"]),
    "alerts_wanted": lambda store: store.alerts_wanted(),
    "count_objectives": lambda store: store.count_objectives(),
    "count_open_incidents": lambda store: store.count_open_incidents(1),
    "current_freeze": lambda store: store.current_freeze(),
    "last_pings": lambda store: store.last_pings([1, 3]),
    "list_incidents": lambda store: store.list_incidents(1, IncidentFilter()),
    "objective_report": lambda store: store.objective_report(3, Objective(late=Duration(1000), percent=99)),
    "recent_pings": lambda store: store.recent_pings(1),
    "waited_for": lambda store: store.waited_for([("webhook@", "webhookA")], 64),
}
WRITES = {
    *("backfill_job", "cancel_run", "create_jobs", "create_key", "delete_job", "pause_job", "put_job", "redrive"),
    *("resume_job", "retry_run", "revoke_key", "run_job", "sync_jobs", "update_job", "create_session", "end_session"),
    "carry_out_notes",
    "watch_groups",
    *("forget_noticed", "prove", "roll_up", "undelete_job", "skip_slot", "unskip_slot", "discard", "drain"),
    *("abort_operation", "pause_operation", "resume_operation"),
    *("start_operation", "wait_for_operation", "work_off_operation"),
    "count_operation",  # asked for by POST
    *("begin_once", "keep_once"),
    "get_operation",  # as the one that works it off reads it
    "deleted_by_key",  # asked for by the verb that undeletes
    *("beat", "begin", "claim", "claim_each", "declare_lost", "drop_live_logs", "ensure_partitions", "finish"),
    *("give_back", "leave", "prune", "put_floors_right", "put_live_logs", "reclaim", "register", "resume_due"),
    *(
        "add_script",
        "adopt",
        "begin_work",
        "callback_secret",
        "complete",
        "set_progress",
        "delete_script",
        "detach",
        "close_one_offs",
        "close_one_offs_in_passing",
        "take_duty",
        "watch_ledger",
        "as_asked",
        "close",
        "notify",
        "release_expired_waiting",
        "wait_for_destinations",
    ),
    *("alerts_sent", "alerts_not_sent", "take_alerts", "watch_alerts", "check_in", "freeze", "unfreeze"),
    "set_admin_key",
    "find_session",  # that it was used, each five minutes: it ends when it was not used for long enough
    "slots_to_backfill",  # asked for by POST: under the job's lock, as what it foretells
}


@pytest.fixture
async def sealed(store: Store, times: Times, store_url: str, fake_clock: FakeClock) -> AsyncIterator[Store]:
    """Jobs that have ended and are not closed, a dead letter, runs to come; and nothing can be written any more."""
    hands = Hands(store)
    await store.register(node_info("n1"))
    await hands.create(spec(at(START + 1000), key="k"), spec(at(START + 1000)), spec(every(60_000)))
    await store.create_jobs([NewJob(tenant=1, spec=spec(at(START + 90_000)), idempotency=REPEAT)])
    done, dead = (await hands.claim(2)).runs
    await hands.finish(done)
    await hands.finish(dead, outcome=REFUSED)
    if store.driver.dialect == "sqlite":
        await store.driver.transact_slow(lambda tx: tx.sql("PRAGMA query_only = ON"))
        yield store
        return
    connection = await asyncpg.connect(store_url)
    name = await connection.fetchval("SELECT current_database()")
    await connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    await connection.close()
    opened = await open_store(store_url, clock=fake_clock, migrated=False, now="(SELECT now_ms FROM test_clock)")
    yield opened
    await opened.close()


def test_each_method_reads_or_writes() -> None:
    """A new one has to say which."""
    methods = {name for name, _ in inspect.getmembers(Store, inspect.iscoroutinefunction) if not name.startswith("_")}
    assert methods == READS.keys() | WRITES
    assert not READS.keys() & WRITES


@pytest.mark.parametrize("name", READS)
async def test_reading_writes_nothing(sealed: Store, name: str) -> None:
    noted = await fetch(sealed, "SELECT * FROM endings")
    assert noted, "there is something to close"
    await READS[name](sealed)
    assert await fetch(sealed, "SELECT * FROM endings") == noted


@pytest.mark.parametrize("state", ["active", "ended", "paused", "quarantined", None])
async def test_by_whatever_state(sealed: Store, state: str | None) -> None:
    for q in (None, "k"):
        await sealed.list_jobs(1, JobFilter(status=state, q=q))
    assert (await sealed.stats(1)).jobs == {"active": 2, "ended": 2}


async def test_nothing_can_be_written_there(sealed: Store) -> None:
    """What this file's tests stand on."""
    with pytest.raises((StoreUnavailable, asyncpg.PostgresError)):
        await sealed.close_one_offs()
