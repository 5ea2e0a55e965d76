"""A server of its own process, as `onthedot serve` starts it."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.services import START_WITHIN
from tests.services.ports import free_port

__all__ = ["Server", "echoing", "served", "serving"]

PATIENCE = 180.0
"""Seconds until it must answer: a second or two, but over a minute was seen where ten processes shared a core."""


@dataclass(frozen=True)
class Server:
    port: int
    pid: int

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def resident_mb(self) -> float:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@asynccontextmanager
async def serving(
    store: str, roles: str = "api", environ: Mapping[str, str] | None = None, home: Path | None = None
) -> AsyncIterator[Server]:
    """A server that is ready. `home`: where it runs, and writes `server.log`; None: a place of its own, no log."""
    port = free_port()
    arguments = ["serve", "--store", store, "--port", str(port), "--roles", roles]
    async with _started(arguments, port, environ, home) as pid:
        yield Server(port, pid)


@asynccontextmanager
async def served(store: str, roles: str = "api") -> AsyncIterator[int]:
    """The port of a server that is ready."""
    async with serving(store, roles) as server:
        yield server.port


@asynccontextmanager
async def echoing() -> AsyncIterator[str]:
    """The address of a receiver that is not the bottleneck."""
    port = free_port()
    async with _started(["echo", "--port", str(port), "--quiet"], port):
        yield f"http://127.0.0.1:{port}/"


@asynccontextmanager
async def _started(
    arguments: list[str], port: int, environ: Mapping[str, str] | None = None, home: Path | None = None
) -> AsyncIterator[int]:
    with tempfile.TemporaryDirectory() as directory, ExitStack() as files:
        out = asyncio.subprocess.DEVNULL if home is None else files.enter_context((home / "server.log").open("ab"))
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("onthedot")),
            *arguments,
            cwd=home or directory,
            env={"ONTHEDOT_LOG_LEVEL": "WARNING", "PATH": "/usr/bin:/bin", **(environ or {})},
            stdout=out,
            stderr=asyncio.subprocess.DEVNULL if home is None else asyncio.subprocess.STDOUT,
        )
        try:
            await _answers(port, process)
            yield process.pid
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def _answers(port: int, process: asyncio.subprocess.Process) -> None:
    """It listens long before it can answer: half a second of starting was measured with the first requests."""
    async with asyncio.timeout(START_WITHIN):
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                answered = await reader.read()
                writer.close()
            except OSError:
                answered = b""
            if answered:
                return
            if process.returncode is not None:
                raise RuntimeError(f"it ended with exit code {process.returncode}")
            await asyncio.sleep(0.05)
