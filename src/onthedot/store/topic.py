"""A topic of the Store: some of its methods, and the driver they speak through."""

from __future__ import annotations

from onthedot.store.driver import Driver

__all__ = ["Topic"]


class Topic:
    """One public method = one transaction = one sentence of the product."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
