"""How an engine sends what a container prints: entries with a head that says which stream and how long."""

from __future__ import annotations

from collections.abc import AsyncIterator

from onthedot.targets.container_engine.http_client import EngineAway, EngineResponse

__all__ = ["frames"]

_HEAD = 8
_LARGEST_FRAME = 32 << 20


async def frames(response: EngineResponse) -> AsyncIterator[tuple[int, bytes]]:
    """The entries of a log: 1 for the standard output or 2 for the standard error, and what was printed."""
    kept = bytearray()
    async for portion in response.portions():
        kept += portion
        while len(kept) >= _HEAD:
            size = int.from_bytes(kept[4:_HEAD])
            if size > _LARGEST_FRAME or kept[0] > 2:
                raise EngineAway("the engine sent an invalid log stream")
            if len(kept) < _HEAD + size:
                break
            stream, entry = kept[0], bytes(kept[_HEAD : _HEAD + size])
            del kept[: _HEAD + size]
            yield 2 if stream == 2 else 1, entry
