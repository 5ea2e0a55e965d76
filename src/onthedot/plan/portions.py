"""How much of a bulk operation is done at a time."""

from __future__ import annotations

__all__ = ["portion"]


def portion(rate: int | None, most: int) -> tuple[int, int]:
    """How many in one transaction, and the ms until the next one. About two portions a second, so that a rate of
    hundreds is no burst each second; rounded so that no second gets more than `rate`."""
    if rate is None:
        return most, 0
    size = max(1, min(most, rate // 2))
    return size, -(-size * 1000 // rate)
