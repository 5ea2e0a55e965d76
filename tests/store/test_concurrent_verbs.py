"""Several nodes at once on PostgreSQL: who waits for whom, and what is true afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from onthedot.errors import Conflict, OnTheDotError
from onthedot.model.job import JobView
from onthedot.store import Idempotency, Store, open_store
from tests.services.waiting import until
from tests.store.given import change, create, cursor_of, fetch, history_of, new, runs_of, spec


@pytest.fixture
async def nodes(postgres_url: str) -> AsyncIterator[tuple[Store, Store]]:
    first, second = await open_store(postgres_url), await open_store(postgres_url)
    yield first, second
    await first.close()
    await second.close()


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    """A connection that the test steps by hand: the other node."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def waits(url: str) -> None:
    """Until somebody in this database waits for a lock."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with connected(url) as connection:
        await until(lambda: connection.fetchval(query), "somebody waits for a lock")


class TestCreating:
    async def test_one_key_many_creators(self, nodes: tuple[Store, Store]) -> None:
        groups = [store.create_jobs([new(key="a"), new()]) for store in nodes for _ in range(8)]
        answers = [answer for group in await asyncio.gather(*groups) for answer in group]
        named = [answer for answer in answers if not isinstance(answer, JobView) or answer.key == "a"]
        winners = [answer for answer in named if isinstance(answer, JobView)]
        assert len(winners) == 1
        for loser in named:
            if loser is not winners[0]:
                assert isinstance(loser, Conflict)
                assert str(winners[0].id) in str(loser)
        assert len(answers) - len(named) == 16

    async def test_one_request_sent_many_times(self, nodes: tuple[Store, Store]) -> None:
        once = Idempotency("k", "f")
        groups = [store.create_jobs([new(key="a", idempotency=once)]) for store in nodes for _ in range(8)]
        answers = [answer for group in await asyncio.gather(*groups) for answer in group]
        assert {answer.id for answer in answers if isinstance(answer, JobView)} == {answers[0].id}  # type: ignore[union-attr]
        assert not [answer for answer in answers if isinstance(answer, OnTheDotError)]
        assert len(await fetch(nodes[0], "SELECT id FROM jobs")) == 1

    async def test_a_repeat_waits_for_the_first_to_commit(self, nodes: tuple[Store, Store], postgres_url: str) -> None:
        """The first one's answer is not there yet: its repeat must neither fail nor make a second job."""
        once = Idempotency("k", "f")
        async with connected(postgres_url) as other:
            transaction = other.transaction()
            await transaction.start()
            await other.execute(
                "INSERT INTO idempotency VALUES (1, 'k', 'f', '1', extract(epoch from now())::bigint * 1000)"
            )
            repeat = asyncio.ensure_future(nodes[0].create_jobs([new(idempotency=once)]))
            await waits(postgres_url)
            await transaction.rollback()
        (answer,) = await repeat
        assert isinstance(answer, JobView)

    async def test_groups_with_the_same_keys_in_another_order(self, nodes: tuple[Store, Store]) -> None:
        keys = [f"k{n}" for n in range(50)]
        for round_ in range(5):
            ordered = [new(key=f"{key}-{round_}", idempotency=Idempotency(f"{key}-{round_}", "f")) for key in keys]
            first, second = await asyncio.gather(
                nodes[0].create_jobs(ordered), nodes[1].create_jobs(list(reversed(ordered)))
            )
            assert first == list(reversed(second)), "every request has one answer, whoever sent it"

    async def test_puts_of_one_key(self, nodes: tuple[Store, Store]) -> None:
        puts = [store.put_job(1, "a", lambda _: spec(key="a", name="n")) for store in nodes for _ in range(6)]
        answers = await asyncio.gather(*puts)
        assert [created for _, created in answers].count(True) == 1
        assert len({job.id for job, _ in answers}) == 1
        assert {job.version for job, _ in answers} == {1}

    async def test_a_rename_against_a_create(self, nodes: tuple[Store, Store]) -> None:
        for n in range(10):
            job = await create(nodes[0])
            renamed, created = await asyncio.gather(
                change(nodes[0], job, key=f"k{n}"), nodes[1].create_jobs([new(key=f"k{n}")]), return_exceptions=True
            )
            assert not isinstance(created, BaseException)
            outcomes = [isinstance(renamed, JobView), isinstance(created[0], JobView)]
            assert sorted(outcomes) == [False, True], (renamed, created)
            assert isinstance(renamed, JobView | Conflict)

    async def test_a_rename_that_loses_at_the_last_moment(self, nodes: tuple[Store, Store], postgres_url: str) -> None:
        """The key was free when we looked; the one who takes it commits while we write."""
        job = await create(nodes[0])
        async with connected(postgres_url) as other:
            transaction = other.transaction()
            await transaction.start()
            await other.execute(
                "INSERT INTO jobs SELECT nextval('job_ids'), tenant, 'a', name, 'a', name_search, spec, version, "
                "state, level, requires, target_type, schedule_kind, one_off, anchor_at, claimed_slot, slots_used, "
                "paused_at, ended_at, reason, source, source_paused, created_at, updated_at FROM jobs WHERE id = $1",
                job.id,
            )
            rename = asyncio.ensure_future(change(nodes[0], job, key="a"))
            await waits(postgres_url)
            await transaction.commit()
        with pytest.raises(Conflict):
            await rename
        assert (await nodes[0].get_job(1, job.id)).key is None


class TestVerbsAgainstClaims:
    @staticmethod
    async def claim_cursor(connection: Any, job: JobView, slot: int, following: int) -> None:
        """What a claim does to a recurring job: the run is taken, the successor is put in."""
        await connection.execute(
            "UPDATE runs SET state = 'running', node = 'n', token = 1, cursor = false WHERE job_id = $1 AND cursor",
            job.id,
        )
        await connection.execute(
            "INSERT INTO runs (id, tenant, job_id, slot, kind, cursor, recurring, due_at, ready_at, requires, level, "
            "created_at) "
            "VALUES ($1, 1, $2, $3::bigint, 'scheduled', true, true, $3, $3::bigint - 2000, 'webhook', 1, 0)",
            f"{job.id}-{following}",
            job.id,
            following,
        )
        await connection.execute("UPDATE jobs SET claimed_slot = $2 WHERE id = $1", job.id, slot)

    @pytest.mark.parametrize("verb", ["pause", "edit", "delete", "reschedule"])
    async def test_a_verb_waits_for_the_claim_and_sees_its_successor(
        self, nodes: tuple[Store, Store], postgres_url: str, verb: str
    ) -> None:
        store = nodes[0]
        job = await create(store, schedule={"every": "1h"})
        first = await cursor_of(store, job)
        async with connected(postgres_url) as claimer:
            transaction = claimer.transaction()
            await transaction.start()
            await claimer.execute("SELECT 1 FROM jobs WHERE id = $1 FOR NO KEY UPDATE", job.id)
            await claimer.execute("SELECT 1 FROM runs WHERE id = $1 FOR UPDATE", first["id"])
            act = {
                "pause": lambda: store.pause_job(1, job.id),
                "edit": lambda: change(store, job, schedule={"every": "1h"}, name="x"),
                "delete": lambda: store.delete_job(1, job.id),
                "reschedule": lambda: change(store, job, schedule={"every": "2h"}),
            }[verb]
            waiting = asyncio.ensure_future(act())
            await waits(postgres_url)
            await self.claim_cursor(claimer, job, first["slot"], first["slot"] + 3_600_000)
            await transaction.commit()
        await waiting
        runs = await runs_of(store, job)
        held = next(run for run in runs if run["id"] == first["id"])
        assert (held["state"], held["orders"]) == ("running", "recall")
        cursors = [run for run in runs if run["cursor"]]
        if verb == "delete":
            assert cursors == []
            assert [row["slot"] for row in await history_of(store, job)] == [first["slot"] + 3_600_000]
        else:
            (cursor,) = cursors
            assert cursor["slot"] > first["slot"]
            assert (cursor["parked"] == "paused") == (verb == "pause")

    async def test_claims_pass_by_a_job_that_a_verb_holds(self, nodes: tuple[Store, Store], postgres_url: str) -> None:
        store = nodes[0]
        job = await create(store, schedule={"every": "1h"})
        async with store.driver.transaction() as tx, connected(postgres_url) as claimer:
            await tx.row("lock_job", 1, job.id)
            await tx.rows("lock_runs", 1, job.id)
            taken = await claimer.fetch(
                "SELECT r.id FROM runs r JOIN jobs j ON j.id = r.job_id WHERE r.cursor "
                "FOR UPDATE OF r SKIP LOCKED FOR NO KEY UPDATE OF j SKIP LOCKED"
            )
            assert taken == []
            one_off = await claimer.fetch("SELECT id FROM runs WHERE state = 'pending' FOR UPDATE SKIP LOCKED")
            assert one_off == []

    async def test_an_edit_of_a_timer_that_is_being_claimed(
        self, nodes: tuple[Store, Store], postgres_url: str
    ) -> None:
        """A one-off's claim locks the run alone. The edit waits for it, and makes no second cursor of the slot."""
        store = nodes[0]
        job = await create(store, schedule={"in": "1s"})
        (first,) = await runs_of(store, job)
        async with connected(postgres_url) as claimer:
            transaction = claimer.transaction()
            await transaction.start()
            await claimer.execute(
                "UPDATE runs SET state = 'running', node = 'n', token = 1, cursor = false WHERE id = $1", first["id"]
            )
            waiting = asyncio.ensure_future(change(store, job, schedule={"in": "1s"}, name="x"))
            await waits(postgres_url)
            await transaction.commit()
        assert (await waiting).version == 2
        (run,) = await runs_of(store, job)
        assert run["id"] == first["id"]
        assert run["state"] == "running"

    async def test_verbs_on_one_job_take_turns(self, nodes: tuple[Store, Store]) -> None:
        job = await create(nodes[0], schedule={"every": "1h"})
        verbs = [
            verb
            for n, store in enumerate(nodes * 5)
            for verb in (
                store.pause_job(1, job.id),
                store.resume_job(1, job.id),
                change(store, job, schedule={"every": f"{n + 1}h"}),
                store.run_job(1, job.id),
            )
        ]
        await asyncio.gather(*verbs)
        runs = await runs_of(nodes[0], job)
        assert len([run for run in runs if run["cursor"]]) == 1
        assert len([run for run in runs if run["kind"] == "manual"]) == 10
        view = await nodes[0].get_job(1, job.id)
        (cursor,) = [run for run in runs if run["cursor"]]
        assert (view.state == "paused") == (cursor["parked"] == "paused")


async def test_two_nodes_load_the_same_file(nodes: tuple[Store, Store]) -> None:
    specs = [spec(key=f"k{n}") for n in range(20)]
    reports = await asyncio.gather(*(store.sync_jobs(1, "jobs.json", specs, prune=True) for store in nodes))
    assert sorted(len(report.created) for report in reports) == [0, 20]
    assert sorted(len(report.unchanged) for report in reports) == [0, 20]
    assert len(await fetch(nodes[0], "SELECT id FROM jobs")) == 20
