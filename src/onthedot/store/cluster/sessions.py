"""Sessions of people who logged in to the pages: each stands for a key, and is worth nothing once that key is not.

Only hashes are kept. A session ends by logout, when it was not used for long enough, some days after its beginning in
any case, and with its key; all by the database's clock.
"""

from __future__ import annotations

from onthedot.model.actor import ChangeActor
from onthedot.model.duration import DAY, HOUR, MINUTE
from onthedot.store.cluster.keys import FoundKey, found_key
from onthedot.store.driver import Transaction
from onthedot.store.jobs.audit_log import write_audit
from onthedot.store.topic import Topic

__all__ = ["SESSION_IDLE", "SESSION_LONGEST", "Sessions"]

SESSION_IDLE = 12 * HOUR
SESSION_LONGEST = 7 * DAY
_WRITTEN_EVERY = 5 * MINUTE  # that it was used: a page that refreshes itself need not write each time


class Sessions(Topic):
    async def create_session(
        self, hashed: str, key_id: int, tenant: int | None = None, actor: ChangeActor | None = None
    ) -> None:
        """Somebody logged in with that key, and that is written down if it is said who. Sessions that have run out are
        swept on the way."""

        async def body(tx: Transaction) -> None:
            await tx.execute("drop_old_sessions", SESSION_IDLE, SESSION_LONGEST)
            await tx.execute("insert_session", hashed, key_id)
            if tenant is not None:
                await write_audit(tx, "login", tenant, await tx.now(), actor=actor)

        await self.driver.transact_slow(body)

    async def find_session(self, hashed: str, *, used: bool = True) -> FoundKey | None:
        """Whose session it is; None if it has ended, or its key has. `used` False: to look at it is not to use it."""
        asked = (hashed, SESSION_IDLE, SESSION_LONGEST, _WRITTEN_EVERY)
        row = await self.driver.read(lambda tx: tx.row("find_session", *asked))
        if row is None:
            return None
        if used and row["unwritten"]:
            await self.driver.transact_slow(lambda tx: tx.execute("use_session", hashed))
        return found_key(row)

    async def end_session(self, hashed: str, address: str | None = None) -> bool:
        """Logout, from that address. Whether there was such a session."""

        async def body(tx: Transaction) -> bool:
            row = await tx.row("find_session", hashed, SESSION_IDLE, SESSION_LONGEST, _WRITTEN_EVERY)
            if row is not None:
                key = found_key(row)
                actor = ChangeActor(kind="key", name=key.name, key_id=key.id, address=address)
                await write_audit(tx, "logout", key.tenant, await tx.now(), actor=actor)
            return await tx.execute("end_session", hashed) > 0

        return await self.driver.transact_slow(body)
