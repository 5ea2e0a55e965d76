"""Runs that a clock which was ahead put off until then come as if it had been right (`plan.ahead` decides): retries,
and what was released by a lane or a resume. Of every job: a one-off, or what was started by hand, has no floor that
would tell of it."""

from __future__ import annotations

from onthedot.plan import ready_at, wait_after_clock_back
from onthedot.store.driver import Driver, Transaction
from onthedot.store.runs.row import decode_attempts

__all__ = ["put_waiting_right"]

LOOKED_AT = 50_000
"""Runs in one look, by their key."""
AT_ONCE = 100
LAST = "~"  # after every id


async def put_waiting_right(driver: Driver) -> int:
    """How many there were."""
    after, found = "", 0
    while after != LAST:
        wrong, after = await driver.read(lambda tx, after=after: _look(tx, after))  # type: ignore[misc]
        for start in range(0, len(wrong), AT_ONCE):
            some = wrong[start : start + AT_ONCE]
            found += await driver.transact_slow(lambda tx, some=some: _set_back(tx, some))  # type: ignore[misc]
    return found


async def _look(tx: Transaction, after: str) -> tuple[list[tuple[str, int, int]], str]:
    """Those behind `after`: id, when it is to come, when it was to; and up to which run this look went."""
    there, now = await tx.row("run_after", after, LOOKED_AT), await tx.now()
    until = LAST if there is None else there["id"]
    wrong = []
    for row in await tx.rows("waiting_ahead", after, until, now):
        attempts = decode_attempts(row["attempts"])
        ended = attempts[-1].finished_at if attempts else None
        earliest = ready_at(row["due_at"], lane=bool(row["lane"]), lookahead=tx.lookahead)
        right = wait_after_clock_back(earliest, row["ready_at"], ended, now)
        if right is not None:
            wrong.append((row["id"], right, row["ready_at"]))
    return wrong, until


async def _set_back(tx: Transaction, some: list[tuple[str, int, int]]) -> int:
    return sum([await tx.execute("set_back_waiting", *one) for one in some])
