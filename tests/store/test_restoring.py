"""A store that was restored from a copy: nothing of what the lost one may have fired fires again, and all is told."""

from __future__ import annotations

import pytest

from onthedot.errors import StoreInUse
from onthedot.model.alerts import AlertWay
from onthedot.model.incident import Trouble, job_subject
from onthedot.model.node import NodeInfo
from onthedot.store import IncidentFilter
from onthedot.store.alerts.incidents import open_incidents
from onthedot.store.moving.restoring import GAP, leave_gap, settle_past
from tests.store.conftest import START
from tests.store.given import DAY, HOUR, create, cursor_of, execute, fetch, history_of, hold, runs_of


async def test_a_recurring_job_goes_on_with_the_first_slot_after_now(store, times):
    job = await create(store)
    first = (await cursor_of(store, job))["slot"]
    now = await times.advance(DAY)
    settled = await settle_past(store.driver, START)
    (row,) = await history_of(store, job)
    assert (row["status"], row["reason"], row["slot"], row["slots"]) == ("skipped", "restored", first, 24)
    assert row["until_slot"] == first + 23 * HOUR
    assert now < (await cursor_of(store, job))["slot"] == first + 24 * HOUR
    assert (settled.jobs, settled.skipped, settled.dead_letters) == (1, 24, 0)
    again = await settle_past(store.driver, START)
    assert (again.jobs, again.skipped) == (0, 0)


async def test_what_waited_and_what_ran_is_a_dead_letter_that_can_be_driven_again(store, times):
    once = await create(store, schedule={"in": "1h"})
    later = await create(store, schedule={"in": "48h"})
    every = await create(store)
    held = (await cursor_of(store, every))["id"]
    await hold(store, held)
    await times.advance(DAY)
    settled = await settle_past(store.driver, START)
    assert settled.dead_letters == 2
    (row,) = await history_of(store, once)
    assert (row["status"], row["reason"], row["outcome"]) == ("failed", "restored", '{"kind":"unknown"}')
    assert "backup of 2023-11-14T22:13:20.000Z; whether this run was carried out" in row["error"]
    assert held in [row["id"] for row in await history_of(store, every) if row["status"] == "failed"]
    assert len(await runs_of(store, later)) == 1
    letters = (await store.list_dead(1)).items
    assert {letter.job_id for letter in letters} == {once.id, every.id}
    assert {letter.cause for letter in letters} == {"restored from a backup"}
    assert len(await store.redrive(1)) == 2
    assert len([run for run in await runs_of(store, once) if run["kind"] == "redrive"]) == 1


async def test_a_paused_job_stays_as_it_is(store, times):
    job = await create(store, paused=True)
    before = await runs_of(store, job)
    await times.advance(DAY)
    await settle_past(store.driver, None)
    assert await runs_of(store, job) == before
    await store.resume_job(1, job.id)
    assert (await history_of(store, job))[0]["reason"] == "paused"


async def test_count_is_used_up_by_slots_that_are_left_out(store, times):
    job = await create(store, schedule={"cron": "0 * * * *", "count": 3})
    await times.advance(DAY)
    await settle_past(store.driver, None)
    assert await runs_of(store, job) == []
    assert (await store.get_job(1, job.id)).state == "ended"


async def test_nothing_is_due_afterwards(store, times):
    await create(store)
    await create(store, schedule={"in": "5m"})
    await create(store, schedule={"every": "7s"})
    await create(store, policy={"catch_up": "all"})
    await times.advance(3 * DAY + 1)
    await settle_past(store.driver, START)
    await store.register(node("n1"))
    claimed = await store.claim("n1", offers=["webhook"], level=99, limit=100, lookahead_ms=2000)
    assert [run.slot for run in claimed.runs if run.slot <= times.now] == []


async def test_ids_that_the_lost_one_may_have_given_are_left_out(store):
    last = await create(store)
    await leave_gap(store.driver)
    assert (await create(store)).id > last.id + GAP


async def test_what_was_under_way_is_stopped(store, times):
    await create(store)
    await execute(
        store,
        "INSERT INTO notes (kind, tenant, job_id, run_id, said, created_at) VALUES ('chain', 1, 1, '1-1', '{}', 0)",
    )
    settled = await settle_past(store.driver, None)
    assert (settled.notes, await fetch(store, "SELECT 1 FROM notes")) == (1, [])


async def test_alerts_of_the_past_are_not_sent_and_say_why(store, times):
    job = await create(store)
    way = AlertWay(channel="ops", repeat_ms=HOUR)
    trouble = Trouble(
        tenant=1,
        subject=job_subject(job.id),
        condition="failed",
        reason="boom",
        cause="boom",
        at=1,
        job_id=job.id,
        title="job",
        ways=[way],
    )
    await store.driver.transact_slow(lambda tx: open_incidents(tx, [trouble]))
    assert await store.alerts_due(["ops"]) == ["ops"]
    await store.register(node("n1"))
    now = await times.advance(DAY)
    settled = await settle_past(store.driver, START)
    assert (settled.alerts, await store.alerts_due(["ops"])) == (1, [])
    (incident,) = (await store.list_incidents(1, IncidentFilter())).items
    assert incident.state == "open"
    (message,) = incident.deliveries
    assert message.error == "not sent: the store was restored from a backup of 2023-11-14T22:13:20.000Z"
    (row,) = await fetch(store, "SELECT alerted_at FROM incidents")
    assert row["alerted_at"] == now, "it is repeated an hour from now, not at once"
    (left,) = await fetch(store, "SELECT lost_at FROM nodes")
    assert left["lost_at"] == 1, "so long ago that nobody is alerted"
    assert (await settle_past(store.driver, START)).alerts == 0


async def test_not_while_a_node_is_there(store, times):
    await store.register(node("n1"))
    if store.driver.dialect == "postgres":
        with pytest.raises(StoreInUse, match="host-1"):
            await settle_past(store.driver, None)
    else:  # its file's lock says so
        await settle_past(store.driver, None)


def node(name: str) -> NodeInfo:
    return NodeInfo(id=name, name="host-1", host="host", pid=1, version="0", level=1, roles=[], offers=[], capacity=1)
