"""A receiver that tells later how its work ended, by the URL that came with the call: before it has even answered,
soon, twice, or never. It asks again until it is answered, at every API that it has heard of: nodes die."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Callable
from urllib.parse import urlsplit

__all__ = ["CallingBack", "try_of"]

PATIENCE = 2.0
"""Seconds for one answer."""
AGAIN = 0.4
TIMES = 60
BODIES = {
    "done": b'{"status": "done", "result": 1}',
    "failed": b'{"status": "failed", "error": "it went wrong"}',
}
Note = Callable[[str, int, str, int], None]


def try_of(callback: str) -> int:
    """The try that a callback URL speaks of; 0: there is none."""
    found = re.search(r"[?&]token=([0-9]+)\.", callback)
    return int(found[1]) if found else 0


class CallingBack:
    def __init__(self, note: Note) -> None:
        self._note = note
        self._bases: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def follow(self, callback: str, run: str, token: int, took: int) -> None:
        """Decided by the run and its token, so that nothing depends on the order of arrival."""
        base, slash, path = callback.partition("/v1/")
        if base not in self._bases:
            self._bases = [base, *self._bases][:8]
        dice = zlib.crc32(f"{run}/{token}/later".encode()) % 100
        if dice < 4:
            return
        delay = 0.0 if dice < 20 else (took + 50 + dice * 12) / 1000
        told = "failed" if dice % 10 == 9 else "done"
        for _ in range(2 if dice % 7 == 0 else 1):
            task = asyncio.get_running_loop().create_task(self._tell(base, slash + path, run, told, delay))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _tell(self, base: str, path: str, run: str, told: str, delay: float) -> None:
        await asyncio.sleep(delay)
        status = 0
        for nth in range(TIMES):
            others = [base, *(each for each in self._bases if each != base)]
            try:
                async with asyncio.timeout(PATIENCE):
                    status = await _post(others[nth % len(others)], path, BODIES[told])
            except (OSError, TimeoutError, ValueError, IndexError, asyncio.IncompleteReadError):
                status = 0
            if status and status < 500:
                break
            status = 0
            await asyncio.sleep(AGAIN)
        self._note(run, try_of(path), told, status)


async def _post(base: str, path: str, body: bytes) -> int:
    """The status of the answer."""
    place = urlsplit(base)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        head = f"POST {path} HTTP/1.1\r\nhost: {place.netloc}\r\nconnection: close\r\ncontent-length: {len(body)}\r\n"
        writer.write(f"{head}content-type: application/json\r\n\r\n".encode() + body)
        await writer.drain()
        line = await reader.readline()
        await reader.read()
        return int(line.split()[1])
    finally:
        writer.close()
