"""What `onthedot doctor` wants to know of the database itself."""

from __future__ import annotations

import msgspec

from onthedot.store.topic import Topic

__all__ = ["Diagnosis", "Durability", "Failover"]

FULL_SYNC = 2  # SQLite's synchronous = FULL


class Durability(msgspec.Struct, frozen=True, kw_only=True):
    """Whether what was acknowledged survives a power cut, and the settings that say so."""

    safe: bool
    found: str


class Failover(msgspec.Struct, frozen=True, kw_only=True):
    """PostgreSQL became another one than it was, or the same on another timeline."""

    before: str
    after: str
    changed_at: int


class Diagnosis(Topic):
    async def durability(self) -> Durability:
        row = await self.driver.read(lambda tx: tx.row("durability"))
        assert row is not None
        if self.driver.dialect == "sqlite":
            level = int(row["synchronous"])
            return Durability(safe=level >= FULL_SYNC, found=f"SQLite synchronous {level}")
        found = f"PostgreSQL {row['version']}: fsync {row['fsync']}, synchronous_commit {row['synchronous_commit']}"
        return Durability(safe="off" not in (row["fsync"], row["synchronous_commit"]), found=found)

    async def last_failover(self) -> Failover | None:
        row = await self.driver.read(lambda tx: tx.row("last_failover"))
        if row is None:
            return None
        after = f"{row['system']}/{row['timeline']}"
        return Failover(before=row["previous"], after=after, changed_at=row["changed_at"])

    async def count_dead(self) -> int:
        """Dead letters of all tenants."""
        row = await self.driver.read(lambda tx: tx.row("count_all_dead"))
        return 0 if row is None else int(row["n"])
