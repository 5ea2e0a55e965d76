"""What the areas of Client share: the AsyncClient behind it, and how it is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

from onthedot.client.async_client import AsyncClient

__all__ = ["BlockingArea"]

T = TypeVar("T")


class BlockingArea:
    _async: AsyncClient
    _runner: asyncio.Runner

    def _run(self, verb: Coroutine[Any, Any, T]) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._runner.run(verb)
        verb.close()  # it will never be awaited
        raise RuntimeError("Client can't be used in a running event loop (async code, Jupyter); use AsyncClient there")

    def _each(self, items: AsyncIterator[T]) -> Iterator[T]:
        async def following() -> list[T]:
            async for item in items:
                return [item]
            return []

        while item := self._run(following()):
            yield item[0]
