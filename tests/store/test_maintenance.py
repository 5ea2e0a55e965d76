"""Retention, partitions, the watch over the ledger, and the numbers an operator looks at."""

from __future__ import annotations

from datetime import date

import pytest

from onthedot import telemetry
from onthedot.model.targets import CommandTarget
from onthedot.store import Store
from onthedot.store.cluster.partitions import partition_name
from tests.store.conftest import START, Times
from tests.store.hands import REFUSED, Hands, every, node_info, spec

MINUTE, DAY = 60_000, 86_400_000


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


class TestPrune:
    async def test_old_ones_go_with_all_that_belongs_to_them(self, hands: Hands, times: Times):
        old = await hands.job()
        await hands.finish(await hands.one(), outcome=REFUSED, log="x")
        await times.advance(40 * DAY)
        young = await hands.job()
        await hands.finish(await hands.one(), log="y")
        assert await hands.store.prune(times.now - 30 * DAY) == 4
        assert {row["job_id"] for row in await hands.ledger()} == {young}
        assert [row["id"] for row in await hands.sql("SELECT id FROM jobs")] == [young]
        assert (await hands.store.list_dead(1)).items == []
        assert len(await hands.sql("SELECT 1 FROM run_logs")) == 1
        assert old != young

    async def test_recurring_jobs_stay(self, hands: Hands, times: Times):
        job = await hands.job(every(MINUTE, count=1))
        await times.advance(MINUTE)
        await hands.finish(await hands.one())
        await times.advance(40 * DAY)
        await hands.store.prune(times.now)
        assert (await hands.store.get_job(1, job)).state == "ended"

    async def test_in_batches_of_a_thousand(self, hands: Hands, times: Times):
        series = (
            "SELECT value FROM generate_series(1, 2500) AS value"
            if hands.store.driver.dialect == "postgres"
            else "WITH RECURSIVE s (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM s WHERE value < 2500)"
            " SELECT value FROM s"
        )
        await hands.sql(
            "INSERT INTO history (id, tenant, job_id, slot, kind, due_at, status, finished_at)"
            f" SELECT '9-' || value, 1, 9, value, 'scheduled', value, 'done', value FROM ({series}) AS s"
        )
        assert await hands.store.prune(2001) == 2000
        assert len(await hands.ledger()) == 500

    async def test_lost_nodes_go_after_a_day(self, hands: Hands, times: Times):
        await hands.store.register(node_info("a"))
        await hands.store.declare_lost("a", 0)
        await hands.store.prune(0)
        assert len(await hands.store.list_nodes()) == 1
        await times.advance(DAY + 1)
        await hands.store.prune(0)
        assert await hands.store.list_nodes() == []


class TestPartitions:
    async def names(self, hands: Hands) -> list[str]:
        rows = await hands.sql(
            "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'history'::regclass ORDER BY 1"
        )
        return [row["name"] for row in rows]

    async def test_today_and_a_week_ahead(self, hands: Hands, times: Times):
        made = await hands.store.ensure_partitions()
        if hands.store.driver.dialect == "sqlite":
            assert made == []
            return
        assert made == [f"history_202311{day}" for day in range(14, 22)]
        assert await hands.store.ensure_partitions() == []
        await times.advance(DAY)
        assert await hands.store.ensure_partitions() == ["history_20231122"]
        assert len(await self.names(hands)) == 10

    async def test_what_was_written_before_moves_along(self, hands: Hands):
        await hands.job()
        run = await hands.one()
        await hands.finish(run)
        await hands.store.ensure_partitions()
        assert (await hands.store.get_run(1, run.id)).status == "DONE"
        if hands.store.driver.dialect == "postgres":
            assert await hands.sql("SELECT 1 FROM ONLY history_default") == []
            assert len(await hands.sql("SELECT 1 FROM history_20231114")) == 1

    async def test_an_old_one_is_dropped_whole(self, hands: Hands, times: Times):
        await hands.store.ensure_partitions()
        await hands.job(every(MINUTE))
        await times.advance(MINUTE)
        await hands.finish(await hands.one())
        day_after = (START // DAY + 1) * DAY
        await hands.store.prune(day_after - 1)
        kept = len(await hands.ledger())
        await hands.store.prune(day_after)
        assert await hands.ledger() == []
        if hands.store.driver.dialect == "postgres":
            assert kept == 1
            assert "history_20231114" not in await self.names(hands)

    async def test_the_ledger_works_across_them(self, hands: Hands, times: Times):
        await hands.store.ensure_partitions()
        await hands.job(every(DAY))
        for _ in range(3):
            await times.advance(DAY)
            await hands.finish(await hands.one())
        assert len(await hands.runs()) == 3
        await hands.check()

    def test_their_names(self):
        assert partition_name(date(2026, 3, 9)) == "history_20260309"


class TestNumbers:
    async def test_nothing_is_due(self, hands: Hands):
        await hands.job(every(MINUTE))
        backlog = await hands.store.backlog()
        assert (backlog.due, backlog.running, backlog.oldest_ms, backlog.unoffered) == (0, 0, None, {})

    async def test_what_is_due_of_all_kinds(self, hands: Hands, times: Times):
        await hands.store.register(node_info("n1"))
        await hands.create(
            spec(), spec(every(MINUTE)), spec(every(MINUTE), overlap="skip"), spec(target=CommandTarget(command="c"))
        )
        await times.advance(2 * MINUTE)
        backlog = await hands.store.backlog()
        assert (backlog.due, backlog.oldest_ms) == (4, 2 * MINUTE - 1000)
        assert backlog.unoffered == {"command:c": 1}
        await hands.claim()
        after = await hands.store.backlog()
        assert (after.due, after.running) == (1, 3)

    async def test_a_lost_node_offers_nothing(self, hands: Hands, times: Times):
        await hands.store.register(node_info("n1"))
        await hands.store.declare_lost("n1", 0)
        await hands.job()
        await times.advance(1000)
        assert (await hands.store.backlog()).unoffered == {"webhook": 1}

    async def test_stats(self, hands: Hands, times: Times):
        await hands.create(spec(), spec(), spec(every(MINUTE)))
        first, second = (await hands.claim()).runs
        await hands.finish(first)
        await hands.finish(second, outcome=REFUSED)
        stats = await hands.store.stats(1)
        assert stats.jobs == {"active": 1, "ended": 2}
        assert (stats.pending, stats.running, stats.dead) == (1, 0, 1)
        assert stats.last_hour == {"DONE": 1, "FAILED": 1}
        assert (await hands.store.stats(2)).jobs == {}


class TestWatch:
    async def test_all_is_well(self, hands: Hands):
        await hands.create(spec(), spec(every(MINUTE)))
        assert await hands.store.watch_ledger() == []

    async def test_a_job_that_fell_silent_is_named(self, hands: Hands):
        job = await hands.job(every(MINUTE))
        await hands.sql("DELETE FROM runs")
        said: list[str] = []
        stop = telemetry.subscribe(lambda event: said.append(event.name))
        assert await hands.store.watch_ledger() == [job]
        stop()
        assert said == ["job.silent"]

    async def test_each_look_goes_on_where_the_last_one_ended(self, hands: Hands, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr("onthedot.store.cluster.maintenance.WATCHED", 2)
        jobs = await hands.create(*(spec(every(MINUTE)) for _ in range(5)))
        first, _, third, _, fifth = (job.id for job in jobs)
        await hands.sql(f"DELETE FROM runs WHERE job_id IN ({first}, {third}, {fifth})")
        looks = [await hands.store.watch_ledger() for _ in range(4)]
        assert looks == [[first], [third], [fifth], [first]]
