"""What an object store must be able to do."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

__all__ = ["ObjectStore", "checked"]

_NAME = re.compile(r"[a-z0-9]{1,100}(/[a-z0-9]{1,100}){0,5}", re.ASCII)


class ObjectStore(ABC):
    """Bytes by name. Once `put` has returned, they survive a power failure; who reads sees all of an object or none.
    ObjectStoreUnavailable where it can't be used."""

    @abstractmethod
    async def put(self, name: str, content: bytes) -> None: ...

    @abstractmethod
    async def get(self, name: str) -> bytes:
        """ObjectMissing if there is none."""

    @abstractmethod
    async def exists(self, name: str) -> bool: ...

    @abstractmethod
    async def delete(self, name: str) -> None:
        """Nothing happens if there is none."""


def checked(name: str) -> str:
    """A name is made by us, never by a user; a path must not come of it all the same."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a valid object name")
    return name
