"""How long to wait before asking the database again: longer each time, never in step with the other nodes."""

from __future__ import annotations

import random

__all__ = ["Backoff"]


class Backoff:
    """Doubles up to `most` seconds and takes a random part of up to half away. It never gives up."""

    def __init__(self, rng: random.Random, first: float = 0.05, most: float = 2.0) -> None:
        self._rng = rng
        self._first = first
        self._most = most
        self._failures = 0

    def delay(self) -> float:
        longest = min(self._most, self._first * (1 << min(self._failures, 20)))
        self._failures += 1
        return longest * self._rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        self._failures = 0
