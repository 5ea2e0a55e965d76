"""Clients that mean harm, against a real server, and what it costs that server: memory, and the patience of others."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from tests.services.ports import free_port
from tests.services.process import NodeProcess

__all__ = ["ABUSES", "Attack", "Report", "Victim", "victim"]

MIB = 1024 * 1024
PAUSE = 0.1
GET = b"GET %s HTTP/1.1\r\nhost: localhost\r\n\r\n"
CHUNKED = b"POST %s HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"


class Victim:
    """A real `onthedot serve`."""

    def __init__(self, node: NodeProcess) -> None:
        self.node = node
        self.address = "127.0.0.1", node.port

    def memory(self) -> int:
        """Resident, now."""
        status = Path(f"/proc/{self.node.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))

    async def ask(self, sent: bytes = GET % b"/healthz", source: str = "127.0.0.1") -> bytes:
        """One answer, on a connection of its own."""
        async with asyncio.timeout(30):
            reader, writer = await asyncio.open_connection(*self.address, local_addr=(source, 0))
            try:
                writer.write(sent.replace(b"\r\n", b"\r\nconnection: close\r\n", 1))
                return await reader.read()
            finally:
                writer.close()


class Report:
    """What an abuse did: how much memory at most, and how long others waited for /healthz."""

    def __init__(self) -> None:
        self.grown = 0
        self.waits: list[float] = []

    @property
    def slowest(self) -> float:
        return max(self.waits)

    def __str__(self) -> str:
        ordered = sorted(self.waits)
        usual = ordered[len(ordered) // 2]
        return f"memory +{self.grown / MIB:.1f} MiB, healthz {usual * 1000:.0f} ms, slowest {ordered[-1] * 1000:.0f} ms"


class Attack:
    """Connections from another address than the one that watches."""

    def __init__(self, victim: Victim) -> None:
        self._victim = victim
        self._open: list[asyncio.StreamWriter] = []
        self.answers: list[asyncio.StreamReader] = []

    async def connect(self, source: str = "127.0.0.2") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*self._victim.address, local_addr=(source, 0), limit=2**16)
        self._open.append(writer)
        return reader, writer

    async def pour(self, first: bytes, then: bytes, *, source: str = "127.0.0.2", most: int = 1 << 40) -> None:
        """For ever, or until the server has had enough; whatever it says is not read."""
        with contextlib.suppress(OSError):
            reader, writer = await self.connect(source)
            self.answers.append(reader)
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(first)
            sent = 0
            while sent < most and not writer.transport.is_closing():
                writer.write(then)
                sent += len(then)
                await writer.drain()
            await asyncio.Event().wait()

    async def end(self, tasks: Sequence[asyncio.Future[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in self._open:
            writer.transport.abort()

    async def measured(self, attackers: Iterable[Awaitable[None]], seconds: float) -> Report:
        victim, report = self._victim, Report()
        await victim.ask()
        before = victim.memory()
        tasks = [asyncio.ensure_future(attacker) for attacker in attackers]
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                began = time.monotonic()
                assert (await victim.ask()).startswith(b"HTTP/1.1 200"), "others are answered meanwhile"
                report.waits.append(time.monotonic() - began)
                report.grown = max(report.grown, victim.memory() - before)
                await asyncio.wait([*tasks, never], timeout=PAUSE)
        finally:
            await self.end(tasks)
        return report


Abuse = Callable[[Attack], list[Awaitable[None]]]
ABUSES: dict[str, Abuse] = {}


def abuse(function: Abuse) -> Abuse:
    ABUSES[function.__name__] = function
    return function


@abuse
def trailers(attack: Attack) -> list[Awaitable[None]]:
    more = b"".join(b"x-%d: %s\r\n" % (n, b"y" * 50) for n in range(1000))
    return [attack.pour(CHUNKED % b"/timers" + b"2\r\n{}\r\n0\r\n", more) for _ in range(4)]


@abuse
def one_trailer(attack: Attack) -> list[Awaitable[None]]:
    return [attack.pour(CHUNKED % b"/timers" + b"0\r\nx: ", b"y" * 65536) for _ in range(4)]


@abuse
def trailers_of_what_is_refused(attack: Attack) -> list[Awaitable[None]]:
    return [attack.pour(CHUNKED % b"/nowhere" + b"0\r\nx: ", b"y" * 65536) for _ in range(4)]


@abuse
def chunk_extensions(attack: Attack) -> list[Awaitable[None]]:
    return [attack.pour(CHUNKED % b"/timers" + b"2;a=", b"y" * 65536) for _ in range(4)]


@abuse
def tiny_chunks(attack: Attack) -> list[Awaitable[None]]:
    return [attack.pour(CHUNKED % b"/v1/jobs/batch", b"1\r\n \r\n" * 10_000) for _ in range(4)]


@abuse
def pipelined_and_unread(attack: Attack) -> list[Awaitable[None]]:
    return [attack.pour(b"", (GET % b"/healthz") * 2000) for _ in range(30)]


@abuse
def smallest_requests(attack: Attack) -> list[Awaitable[None]]:
    return [attack.pour(b"", b"GET / HTTP/1.1\r\n\r\n" * 10_000) for _ in range(30)]


@abuse
def pipelined_behind_a_stream(attack: Attack) -> list[Awaitable[None]]:
    return [attack.pour(GET % b"/v1/events", (GET % b"/healthz") * 200) for _ in range(90)]


@abuse
def half_heads(attack: Attack) -> list[Awaitable[None]]:
    head = b"GET / HTTP/1.1\r\nhost: localhost\r\n" + b"x: " + b"y" * 60_000
    return [attack.pour(head, b"", most=0) for _ in range(400)]


@abuse
def many_headers(attack: Attack) -> list[Awaitable[None]]:
    head = b"GET / HTTP/1.1\r\nhost: localhost\r\n" + b"x:\r\n" * 15_000
    return [attack.pour(head, b"", most=0) for _ in range(400)]


@abuse
def unread_answers(attack: Attack) -> list[Awaitable[None]]:
    return [attack.pour((GET % b"/openapi.json") * 20, b"", most=0) for _ in range(400)]


@abuse
def large_bodies(attack: Attack) -> list[Awaitable[None]]:
    head = b"POST /v1/jobs/batch HTTP/1.1\r\nhost: localhost\r\ncontent-length: 16000000\r\n\r\n["
    return [attack.pour(head, b" " * 65536, most=15_900_000) for _ in range(40)]


@abuse
def unwanted_bodies(attack: Attack) -> list[Awaitable[None]]:
    return [attack.pour(CHUNKED % b"/nowhere", b"8000\r\n" + b"x" * 0x8000 + b"\r\n") for _ in range(20)]


@abuse
def idle_connections(attack: Attack) -> list[Awaitable[None]]:
    return [attack.pour(b"", b"", most=0, source=f"127.0.0.{2 + n % 8}") for n in range(1500)]


@contextlib.asynccontextmanager
async def victim(directory: Path, *args: str, descriptors: int | None = None) -> AsyncIterator[Victim]:
    store = f"sqlite:///{directory}/store.db"
    node = await NodeProcess.serve(
        "--store", store, *args, directory=directory, port=free_port(), descriptors=descriptors
    )
    try:
        yield Victim(node)
    finally:
        node.kill()
