"""Removes what is left outside of tries that are over: their node died between the commit of the result and the
removal, or lost touch with what it had to remove. And ends what runs past its own deadline, because nobody else did.

An object is there only after its try was recorded as begun, so what the store does not know as living any more is over.
The objects are listed first and the store is asked after that: in the other order, what was begun in between would be
taken for a leftover.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from onthedot.clock import Clock
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.ports import LeftoverStore
from onthedot.engine.tuning import LEFTOVERS_EVERY
from onthedot.errors import StoreUnavailable
from onthedot.targets.contract import Kind
from onthedot.telemetry import emit

__all__ = ["Leftovers"]


class Leftovers:
    """At the start, and then once a minute. Only for kinds of which something may be left."""

    def __init__(
        self, *, kinds: Sequence[Kind], store: LeftoverStore, clock: Clock, rng: random.Random, health: StoreHealth
    ) -> None:
        self._kinds = kinds
        self._store = store
        self._clock = clock
        self._rng = rng
        self._health = health

    async def step(self) -> None:
        for kind in self._kinds:
            await self._sweep(kind)
        await self._clock.sleep(LEFTOVERS_EVERY * self._rng.uniform(0.8, 1.0))

    async def _sweep(self, kind: Kind) -> None:
        """What fails is tried again with the next look; whatever a kind does wrong here must not end the node."""
        try:
            for name in await kind.end_overdue():
                emit("leftover.ended", kind=kind.tag, name=name)
            tries = {name: found for name in await kind.inventory() if (found := _try_of(name)) is not None}
            if not tries:
                return
            living = await self._store.living(list(tries.values()))
            for name, found in tries.items():
                if found not in living and await kind.remove(name) is not False:
                    emit("leftover.removed", kind=kind.tag, name=name)
        except StoreUnavailable as error:
            self._health.failed(error)
        except Exception as error:
            emit("leftover.kept", kind=kind.tag, error=f"{type(error).__name__}: {error}")


def _try_of(name: str) -> tuple[str, int] | None:
    """`<run id>-<try>`; None: it is not one of ours."""
    run_id, _, number = name.rpartition("-")
    return (run_id, int(number)) if run_id and number.isascii() and number.isdigit() else None
