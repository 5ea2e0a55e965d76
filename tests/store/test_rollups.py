"""What ended per minute, hour and day: counted once, whoever counts, and what was written late is counted too."""

from __future__ import annotations

import asyncio

import pytest

from onthedot.model.histogram import BOUNDS, BUCKETS, added, percentile
from onthedot.model.series import STEPS, Step
from onthedot.store import Store
from onthedot.store.cluster.rollups import CLOSED_AFTER, KEPT, SETTLED_AFTER, RollupRow
from tests.store.conftest import Times
from tests.store.hands import Hands, every

MINUTE, HOUR, DAY = STEPS["minute"], STEPS["hour"], STEPS["day"]
BASE = 1_700_000_000_000 // DAY * DAY  # midnight


@pytest.fixture
async def hands(store: Store, times: Times) -> Hands:
    await times.set(BASE)
    await store.roll_up()  # the first mark of all
    return Hands(store)


async def ended(hands: Hands, at: int, *, status: str = "done", tenant: int = 1, late: int = 4, n: int = 1) -> None:
    """As if a node had written it: ended at that time."""
    count = (await hands.sql("SELECT count(*) AS n FROM history"))[0]["n"]
    for place in range(count, count + n):
        await hands.sql(
            "INSERT INTO history (id, tenant, job_id, slot, kind, due_at, status, started_at, finished_at, lateness_ms,"
            f" duration_ms) VALUES ('7-{at}-m{place}', {tenant}, 7, {at}, 'manual', {at}, '{status}', {at}, {at},"
            f" {late}, 10)"
        )


async def counted(hands: Hands, step: Step = "minute", tenant: int = 1, *, since: int = BASE) -> list[RollupRow]:
    return (await hands.store.series(tenant, step, since, since + 10 * DAY)).rows


async def test_a_minute_is_counted_when_it_is_over(hands: Hands, times: Times):
    await hands.job(every(10_000))
    for _ in range(3):
        await times.advance(10_000)
        await hands.finish(await hands.one(), lateness_ms=2)
    await ended(hands, BASE + MINUTE, tenant=2)  # the first ms of the next one, and somebody else's
    await times.set(BASE + MINUTE + CLOSED_AFTER - 1)
    assert await hands.store.roll_up() == 0
    await times.advance(1)
    assert await hands.store.roll_up() == 1
    (row,) = await counted(hands)
    assert (row.at, row.firings, row.done, row.failed, row.timed, row.duration_ms) == (BASE, 3, 3, 0, 3, 12)
    assert percentile(row.histogram(), 50) == 2
    assert await counted(hands, tenant=2) == []


async def test_a_skipped_range_counts_its_slots(hands: Hands, times: Times):
    await hands.job(every(1000))
    await times.advance(30_000)
    run = await hands.one()  # one fires, the others are given up
    await hands.finish(run)
    await times.advance(MINUTE)
    await hands.store.roll_up()
    (row,) = await counted(hands)
    assert (row.firings, row.done, row.skipped) == (1, 1, 29)


async def test_who_takes_over_goes_on_and_two_at_once_count_once(hands: Hands, times: Times, store: Store):
    for minute in range(5):
        await ended(hands, BASE + minute * MINUTE, n=minute + 1)
    await times.set(BASE + 2 * MINUTE + CLOSED_AFTER)
    await store.roll_up()
    await times.set(BASE + 5 * MINUTE + CLOSED_AFTER)
    other = Store(store.driver)
    await asyncio.gather(other.roll_up(), store.roll_up(), other.roll_up())
    await store.roll_up()
    assert [(row.at, row.done) for row in await counted(hands)] == [(BASE + n * MINUTE, n + 1) for n in range(5)]


async def test_what_is_written_late_is_counted_when_its_minute_settles(hands: Hands, times: Times):
    await ended(hands, BASE)
    await times.set(BASE + MINUTE + CLOSED_AFTER)
    await hands.store.roll_up()
    await ended(hands, BASE + 1, status="failed")
    await hands.store.roll_up()
    assert [(row.done, row.failed) for row in await counted(hands)] == [(1, 0)]
    await times.set(BASE + MINUTE + SETTLED_AFTER)
    await hands.store.roll_up()
    assert [(row.done, row.failed) for row in await counted(hands)] == [(1, 1)]


async def test_hours_and_days_are_their_minutes(hands: Hands, times: Times, store: Store):
    for at, late in ((0, 1), (HOUR - 1, 100), (HOUR, 5), (DAY - 1, 9), (DAY, 2)):
        await ended(hands, BASE + at, late=late)
    await times.set(BASE + DAY + 2 * HOUR)
    assert [row.done for row in await counted(hands, "hour")] == []
    while await store.roll_up():
        pass
    days = [(BASE, 4), (BASE + DAY, 1)]
    assert [(row.at, row.done) for row in await counted(hands, "day")] == days
    hours = [(BASE, 2), (BASE + HOUR, 1), (BASE + 23 * HOUR, 1), (BASE + DAY, 1)]
    assert [(row.at, row.done) for row in await counted(hands, "hour")] == hours
    written = {step: len(await hands.sql(f"SELECT 1 FROM rollups WHERE step = '{step}'")) for step in STEPS}
    assert written == {"minute": 5, "hour": 4, "day": 1}, "the day that goes on is not written"
    (first, _) = await counted(hands, "day")
    assert sum(first.histogram()) == 4
    assert 70 < (percentile(first.histogram(), 99) or 0) <= 100


async def test_old_ones_go(hands: Hands, times: Times, store: Store):
    await ended(hands, BASE)
    await times.set(BASE + 2 * HOUR)
    while await store.roll_up():
        pass
    later = BASE + KEPT["minute"] + DAY
    await hands.sql(f"UPDATE duty_marks SET at = {later - MINUTE}")
    await times.set(later + SETTLED_AFTER)
    await store.roll_up()
    assert [row["step"] for row in await hands.sql("SELECT step FROM rollups")] == ["hour"]


async def test_minutes_that_a_clock_set_back_brings_again_are_counted_again(hands: Hands, times: Times, store: Store):
    await ended(hands, BASE)
    await times.set(BASE + 20 * MINUTE)
    await store.roll_up()
    await times.set(BASE)
    await store.roll_up()
    await ended(hands, BASE + 5)
    await times.set(BASE + 20 * MINUTE)
    await store.roll_up()
    assert [row.done for row in await counted(hands)] == [2]


async def test_a_ledger_that_is_older_than_the_numbers(store: Store, times: Times):
    hands = Hands(store)
    await times.set(BASE + DAY)
    await ended(hands, BASE)
    while await store.roll_up():
        pass
    assert [(row.at, row.done) for row in await counted(hands, "hour")] == [(BASE, 1)]


async def test_a_new_ledger_is_not_counted_two_days_back(store: Store, times: Times):
    """A node that finds many due jobs at its first start records runs before its duty looks."""
    hands = Hands(store)
    await times.set(BASE + 10 * MINUTE)
    await ended(hands, BASE + 9 * MINUTE)
    await times.set(BASE + 10 * MINUTE + CLOSED_AFTER)
    assert await store.roll_up() == 3, "both begin with this hour, and the minutes that are over are counted once"
    assert [(row.at, row.done) for row in await counted(hands)] == [(BASE + 9 * MINUTE, 1)]


def test_percentiles_of_buckets():
    def histogram(*values: int) -> list[int]:
        found = [0] * BUCKETS
        for value in values:
            found[next((place for place, bound in enumerate(BOUNDS) if value <= bound), BUCKETS - 1)] += 1
        return found

    assert percentile(histogram(), 50) is None
    assert percentile(histogram(0, 0, 1, 3), 50) == 0
    assert percentile(histogram(0, 0, 1, 3), 99) == 3
    assert percentile(histogram(10**9), 50) == BOUNDS[-1]
    assert 700 < (percentile(histogram(*[5] * 98, 800, 900), 99) or 0) <= 1000
    assert added([histogram(1), histogram(1, 2)]) == histogram(1, 1, 2)
