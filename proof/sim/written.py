"""When the rows of the ledger were written. The database's clock is set back and passes the same times again, so the
database itself notes with each row how often its clock had been set by then."""

from __future__ import annotations

from onthedot.store.driver import Driver, Transaction
from proof.sim.loop import at_once

__all__ = ["WRITTEN", "clock_was_set", "note_writes"]

WRITTEN = "(SELECT w.clock FROM temp.written w WHERE w.run = history.id)"
"""How often the clock had been set when this row of `history` was written."""

_NOTES = (
    "CREATE TEMP TABLE clock (times INTEGER NOT NULL)",
    "INSERT INTO temp.clock VALUES (0)",
    "CREATE TEMP TABLE written (run TEXT PRIMARY KEY, clock INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TEMP TRIGGER note_written AFTER INSERT ON main.history
    BEGIN INSERT OR REPLACE INTO written SELECT NEW.id, times FROM clock; END""",
)


async def note_writes(driver: Driver) -> None:
    async def body(tx: Transaction) -> None:
        for statement in _NOTES:
            await tx.sql(statement)

    await driver.transact(body)


def clock_was_set(driver: Driver) -> None:
    async def body(tx: Transaction) -> None:
        await tx.sql("UPDATE temp.clock SET times = times + 1")

    at_once(driver.transact(body))
