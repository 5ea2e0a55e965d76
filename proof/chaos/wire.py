"""A process of ours that takes orders: JSON lines in on stdin, one JSON line back for each. It ends with its pipe, so
that nothing outlives the run."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

__all__ = ["ROOT", "Helper", "obey"]

Order = dict[str, Any]
ROOT = Path(__file__).parents[2]
PYTHON_PATH = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
"""The product of the tree that this lies in, wherever else one is installed."""


class Helper:
    """The harness's side."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._turn = asyncio.Lock()

    @classmethod
    async def start(cls, module: str, *args: str) -> Helper:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            module,
            *args,
            env={**os.environ, "PYTHONPATH": PYTHON_PATH},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        return cls(process)

    async def ask(self, **order: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        async with self._turn:
            self.process.stdin.write(msgspec.json.encode(order) + b"\n")
            await self.process.stdin.drain()
            line = await asyncio.wait_for(self.process.stdout.readline(), 30)
        if not line:
            raise RuntimeError(f"a helper ended: {self.process.returncode}")
        return msgspec.json.decode(line)

    async def stop(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


async def obey(handle: Callable[[Order], Awaitable[Any]]) -> None:
    """The helper's side: until the pipe closes."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        answer = await handle(msgspec.json.decode(line))
        os.write(1, msgspec.json.encode(answer) + b"\n")
