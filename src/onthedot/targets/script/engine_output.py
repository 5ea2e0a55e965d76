"""What a script prints in its container, passed on to the pipes that a run is read from."""

from __future__ import annotations

import asyncio
import os

from onthedot.targets.container_engine.engine import ContainerEngine
from onthedot.targets.container_engine.log_frames import frames

__all__ = ["EngineOutput"]


class EngineOutput:
    """Attached before the container is started, so that nothing is missed. It is read no faster than the pipes are."""

    def __init__(self, engine: ContainerEngine, container: str, stdout: int, stderr: int) -> None:
        self._engine, self._container = engine, container
        self._pipes = {1: os.dup(stdout), 2: os.dup(stderr)}
        for pipe in self._pipes.values():
            os.set_blocking(pipe, False)
        self._attached = asyncio.Event()
        self._task = asyncio.create_task(self._copy(), name="onthedot-script-output")

    async def attach(self) -> None:
        """EngineAway or EngineRefused: it could not be."""
        attached = asyncio.create_task(self._attached.wait())
        try:
            await asyncio.wait({attached, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            attached.cancel()
        if self._task.done():
            self._task.result()

    async def read_to_its_end(self, within: float) -> bool:
        """Whether all of it was read by then."""
        await asyncio.wait({self._task}, timeout=within)
        return self._task.done() and not self._task.cancelled() and self._task.exception() is None

    @property
    def is_over(self) -> bool:
        """It ended, or was cut."""
        return self._task.done()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        for pipe in self._pipes.values():
            os.close(pipe)
        self._pipes.clear()

    async def _copy(self) -> None:
        async with self._engine.output(self._container) as response:
            self._attached.set()
            async for stream, portion in frames(response):
                await _write(self._pipes[stream], portion)


async def _write(pipe: int, portion: bytes) -> None:
    loop, rest = asyncio.get_running_loop(), memoryview(portion)
    while rest:
        try:
            rest = rest[os.write(pipe, rest) :]
        except BlockingIOError:
            writable = asyncio.Event()
            loop.add_writer(pipe, writable.set)
            try:
                await writable.wait()
            finally:
                loop.remove_writer(pipe)
        except BrokenPipeError:
            return  # nobody reads it any more
