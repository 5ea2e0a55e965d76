"""Numbers that are given once and never again: job ids, and the n of manual, backfill and redrive runs."""

from __future__ import annotations

from collections.abc import Sequence

from onthedot.store.driver import Transaction

__all__ = ["open_group", "take_job_ids", "take_run_numbers"]


async def take_job_ids(tx: Transaction, count: int) -> list[int]:
    return await _take(tx, "take_job_ids", count)


async def take_run_numbers(tx: Transaction, count: int) -> list[int]:
    return await _take(tx, "take_run_numbers", count)


async def open_group(tx: Transaction, count: int) -> tuple[int, Sequence[int]]:
    """The database's time and `count` job ids, in one round trip."""
    row = await tx.row("open_group", count)
    assert row is not None
    ids = row["ids"]
    return row["now"], ids if isinstance(ids, list) else range(ids - count + 1, ids + 1)


async def _take(tx: Transaction, name: str, count: int) -> list[int]:
    """PostgreSQL answers with all of them, SQLite with the last."""
    if not count:
        return []
    numbers = sorted(int(row["n"]) for row in await tx.rows(name, count))
    return numbers if len(numbers) == count else list(range(numbers[0] - count + 1, numbers[0] + 1))
