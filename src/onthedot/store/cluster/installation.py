"""What all nodes of an installation share and nobody is told."""

from __future__ import annotations

from onthedot.store.driver import Transaction
from onthedot.store.topic import Topic

__all__ = ["Installation"]

_CALLBACKS = "callback_secret"


class Installation(Topic):
    async def callback_secret(self, proposal: str) -> str:
        """The secret that callbacks are signed with: made once, by whoever asks first, and the same for all."""

        async def body(tx: Transaction) -> str:
            row = await tx.row("installation_value", _CALLBACKS)
            if row is None:
                await tx.execute("add_installation_value", _CALLBACKS, proposal)
                row = await tx.row("installation_value", _CALLBACKS)
            assert row is not None
            return str(row["value"])

        return await self.driver.transact_slow(body)
