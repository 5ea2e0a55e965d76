"""One thing that reads what strangers wrote, and what must hold whatever they write."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

__all__ = ["Reader", "Wrong"]


class Wrong(AssertionError):
    """A property does not hold."""


class Reader(msgspec.Struct, frozen=True):
    """`check` reads an input: it raises Wrong for a property that does not hold, and anything else is a find as well.
    It answers whether the input was accepted. `rng` is for how it is read, such as where it is cut."""

    name: str
    check: Callable[[bytes, random.Random], bool]
    seeds: tuple[bytes, ...]
    words: tuple[bytes, ...]
