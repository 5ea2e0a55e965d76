"""A server of its own process, as `onthedot serve` starts it."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.services.ports import free_port

__all__ = ["Server", "echoing", "served", "serving"]

PATIENCE = 180.0
"""Seconds until it must answer: a second or two, but over a minute was seen where ten processes shared a core."""


@dataclass(frozen=True)
class Server:
    port: int
    pid: int

    def resident_mb(self) -> float:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@asynccontextmanager
async def serving(store: str, roles: str = "api", **settings: str) -> AsyncIterator[Server]:
    """A server that is ready. `settings`: more of them, as in its environment."""
    port = free_port()
    arguments = ["serve", "--store", store, "--port", str(port), "--roles", roles]
    async with _started(arguments, port, settings) as pid:
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
async def _started(arguments: list[str], port: int, settings: Mapping[str, str] | None = None) -> AsyncIterator[int]:
    chosen = {f"ONTHEDOT_{name.upper()}": value for name, value in (settings or {}).items()}
    with tempfile.TemporaryDirectory() as directory:
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("onthedot")),
            *arguments,
            cwd=directory,
            env={"ONTHEDOT_LOG_LEVEL": "WARNING", "PATH": "/usr/bin:/bin", **chosen},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
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
    async with asyncio.timeout(PATIENCE):
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
