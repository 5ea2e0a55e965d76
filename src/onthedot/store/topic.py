"""A topic of the Store: some of its methods, and the driver they speak through."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TypeVar

from onthedot.store.abandoned_requests import ASKER
from onthedot.store.driver import Driver, Transaction

__all__ = ["Topic"]

T = TypeVar("T")


class Topic:
    """One public method = one transaction = one sentence of the product."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    async def as_asked(self, body: Callable[[Transaction], Awaitable[T]], *, long: bool = False) -> T:
        """A transaction for a verb: nothing is written for somebody who is gone, or was kept waiting for too long.
        `long`: the work itself may take long, so only the beginning is held to the deadline."""
        asker = ASKER.get()
        if asker is None:
            return await self.driver.transact_slow(body)

        @wraps(body)  # the driver knows by `body` what to prepare
        async def still_asked(tx: Transaction) -> T:
            asker.check()
            answer = await body(tx)
            asker.check(late=not long)
            return answer

        return await self.driver.transact_slow(still_asked)
