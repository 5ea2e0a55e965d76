"""What runs require of nodes (see `model.labels`), and what the live nodes have."""

from __future__ import annotations

import msgspec

from onthedot.model.labels import NodeOffer
from onthedot.store.driver import Transaction
from onthedot.store.topic import Topic

__all__ = ["Requirements", "live_offers"]

_TEXTS = msgspec.json.Decoder(frozenset[str])


class Requirements(Topic):
    async def required(self, after: str, most: int) -> list[str]:
        """What pending runs require, in order, after this one: no more than so many. Of all that wait for destinations
        with the same requirement one is named."""

        async def body(tx: Transaction) -> list[str]:
            found = set[str]()
            for kind in ("free", "cursor", "lane"):
                found |= {row["requires"] for row in await tx.rows(f"required+where.{kind}_runs", after, most)}
            return sorted(found)[:most]

        return await self.driver.read(body, watched=True)


async def live_offers(tx: Transaction) -> list[NodeOffer]:
    """Of each node that is not lost; one of a release before has no labels."""
    rows = await tx.rows("offers")
    return [NodeOffer(_TEXTS.decode(row["offers"]), _TEXTS.decode(row["labels"] or "[]")) for row in rows]
