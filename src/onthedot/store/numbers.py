"""Numbers that are given once and never again: job ids, and the n of manual, backfill and redrive runs."""

from __future__ import annotations

from onthedot.store.driver import Transaction

__all__ = ["take_job_ids", "take_run_numbers"]


async def take_job_ids(tx: Transaction, count: int) -> list[int]:
    return await _take(tx, "take_job_ids", count)


async def take_run_numbers(tx: Transaction, count: int) -> list[int]:
    return await _take(tx, "take_run_numbers", count)


async def _take(tx: Transaction, name: str, count: int) -> list[int]:
    """PostgreSQL answers with all of them, SQLite with the last."""
    if not count:
        return []
    numbers = sorted(int(row["n"]) for row in await tx.rows(name, count))
    return numbers if len(numbers) == count else list(range(numbers[0] - count + 1, numbers[0] + 1))
