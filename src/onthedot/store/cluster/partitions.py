"""The ledger's partitions on PostgreSQL: one per UTC day, made a week ahead, dropped whole when they are old."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from onthedot.model.duration import DAY
from onthedot.store.driver import Transaction

__all__ = ["AHEAD", "drop_old", "make_ahead", "make_for", "partition_name"]

AHEAD = 7
_PREFIX = "history_"
_EPOCH = date(1970, 1, 1)


def partition_name(day: date) -> str:
    return f"{_PREFIX}{day:%Y%m%d}"


async def make_ahead(tx: Transaction, now: int) -> list[str]:
    """Partitions for today and the days to come that lack one. What lies in the default partition moves first: as long
    as it holds a row of that day, the new partition can't be attached."""
    there = {row["name"] for row in await tx.rows("history_partitions")}
    today = datetime.fromtimestamp(now / 1000, UTC).date()
    made = []
    for ahead in range(AHEAD + 1):
        day = today + timedelta(days=ahead)
        if partition_name(day) not in there:
            await tx.script(_create(day))
            made.append(partition_name(day))
    return made


async def make_for(tx: Transaction, slots: Sequence[int]) -> None:
    """Partitions for the days of these slots, for rows that are about to be copied into the ledger."""
    there = {row["name"] for row in await tx.rows("history_partitions")}
    for day in sorted({_EPOCH + timedelta(days=slot // DAY) for slot in slots}):
        if partition_name(day) not in there:
            await tx.script(_create(day))


async def drop_old(tx: Transaction, before: int) -> list[str]:
    """Partitions whose whole day lies before `before`."""
    dropped = []
    for row in await tx.rows("history_partitions"):
        day = _day_of(row["name"])
        if day is not None and _start(day + timedelta(days=1)) <= before:
            await tx.script(f"DROP TABLE {partition_name(day)}")
            dropped.append(partition_name(day))
    return dropped


def _day_of(name: str) -> date | None:
    digits = name.removeprefix(_PREFIX)
    if len(digits) != 8 or not digits.isdigit():
        return None
    return date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))


def _start(day: date) -> int:
    return (day - _EPOCH).days * DAY


def _create(day: date) -> str:
    """Built of numbers only. Writers wait for the moment this takes, so that none slips a row in between; and readers,
    at the parent table: one that has looked up the partitions there and waits at the default one, which ATTACH locks,
    goes on without the new one. It found the rows that had moved in neither, and a run that was there was not found."""
    name, low, high = partition_name(day), _start(day), _start(day) + DAY
    return f"""
        LOCK TABLE history IN ACCESS EXCLUSIVE MODE;
        CREATE TABLE {name} (LIKE history INCLUDING ALL);
        WITH moved AS (DELETE FROM history_default WHERE slot >= {low} AND slot < {high} RETURNING *)
        INSERT INTO {name} SELECT * FROM moved;
        ALTER TABLE history ATTACH PARTITION {name} FOR VALUES FROM ({low}) TO ({high});
    """  # noqa: S608
