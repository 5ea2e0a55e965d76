"""`--workers N`: supervises N node processes that share one port, restarts those that die and forwards signals.

Each worker is a separate process that inherits the listening socket. It holds the other end of a pipe to its
supervisor: when the supervisor dies, the pipe closes and the worker stops, so that no orphan is left behind.

The first signal is forwarded as SIGTERM, the second by closing the pipe: the kernel merges two equal signals that reach
a busy worker before it runs again, so a second SIGTERM could be lost.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec
import structlog

from onthedot.clock import Clock, SystemClock
from onthedot.errors import OnTheDotError, StoreUnavailable
from onthedot.jobsfile import JobsFile
from onthedot.launcher.banner import banner
from onthedot.launcher.serving import Stopping, check_certificate, listening, tell_remarks
from onthedot.launcher.worker import encode_order
from onthedot.main import prepare
from onthedot.settings import Settings
from onthedot.telemetry.log import configure_logging

__all__ = ["NodeProcess", "Supervisor", "supervise"]

HEALTHY = 5.0  # seconds that a worker must live for its death not to count as a failure to start
GIVE_UP = 5
LONGEST_PAUSE = 10.0
_log = structlog.stdlib.get_logger("onthedot.supervisor")


class Pipe(Protocol):
    def close(self) -> None: ...


class NodeProcess(Protocol):
    """The part of asyncio's Process that the supervisor needs."""

    @property
    def stdin(self) -> Pipe | None: ...
    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    async def wait(self) -> int: ...
    def send_signal(self, number: int, /) -> None: ...


Start = Callable[[int], Awaitable[NodeProcess]]  # of the worker with this number, from 0 on


class Supervisor:
    def __init__(self, count: int, start: Start, clock: Clock) -> None:
        self._count = count
        self._start = start
        self._clock = clock
        self._workers: dict[int, NodeProcess] = {}
        self._stopping = asyncio.Event()
        self._at_once = False

    async def run(self) -> None:
        """Run until all workers have exited after `stop`, or one of them can't be kept alive."""
        seats = [
            asyncio.create_task(self._seat(number), name=f"supervisor.seat-{number}") for number in range(self._count)
        ]
        try:
            done, _ = await asyncio.wait(seats, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            self.stop()
            await asyncio.gather(*seats, return_exceptions=True)
        for seat in done:
            seat.result()

    def stop(self) -> None:
        """Drain and stop. Idempotent: to a worker a second signal would mean an immediate stop."""
        if not self._stopping.is_set():
            self._stopping.set()
            self.forward(signal.SIGTERM)

    def stop_at_once(self) -> None:
        self.stop()
        self._at_once = True
        for worker in self._workers.values():
            _hurry(worker)

    def forward(self, number: int) -> None:
        for worker in list(self._workers.values()):
            if worker.returncode is None:
                worker.send_signal(number)

    async def _seat(self, number: int) -> None:
        """Keep one of the N workers running."""
        failures = 0
        while not self._stopping.is_set():
            began = self._clock.monotonic()
            worker = self._workers[number] = await self._start(number)
            if self._stopping.is_set():  # stop was requested while it was starting
                self._pass_on(worker)
            code = await worker.wait()
            if self._stopping.is_set():
                return
            failures = failures + 1 if self._clock.monotonic() - began < HEALTHY else 0
            if failures >= GIVE_UP:
                raise OnTheDotError(
                    f"a worker exited {failures} times in a row right after starting, last with exit code {code}"
                )
            _log.warning("worker exited; restarting it", pid=worker.pid, code=code)
            if failures:
                await self._pause(min(LONGEST_PAUSE, 0.2 * 2**failures))

    def _pass_on(self, worker: NodeProcess) -> None:
        if worker.returncode is None:
            worker.send_signal(signal.SIGTERM)
        if self._at_once:
            _hurry(worker)

    async def _pause(self, seconds: float) -> None:
        try:
            async with self._clock.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            pass


def _hurry(worker: NodeProcess) -> None:
    if worker.stdin is not None:
        worker.stdin.close()


async def supervise(settings: Settings, jobs: JobsFile | None) -> None:
    configure_logging(settings.log_level, style=settings.log_format)
    if "api" in settings.roles:
        check_certificate(settings)
    listener = listening(settings.host, settings.port) if "api" in settings.roles else None
    try:
        port = listener.getsockname()[1] if listener is not None else None
        sys.stdout.write(await _told(settings, jobs, port))
        sys.stdout.flush()
        await _supervised(settings, listener)
    finally:
        if listener is not None:
            listener.close()


async def _told(settings: Settings, jobs: JobsFile | None, port: int | None) -> str:
    """Report errors that stop every worker once, here: no API key, an invalid jobs file. If the store is unavailable,
    each worker waits for it."""
    if port is not None:
        settings = msgspec.structs.replace(settings, port=port)  # 0: whichever was free
    try:
        prepared = await prepare(settings, jobs, SystemClock())
    except StoreUnavailable as error:
        _log.warning("store unavailable; workers will wait for it", error=str(error))
        return banner(settings, jobs, None, port=port, is_open=False)
    await prepared.close()
    tell_remarks(prepared)
    access = {"is_open": prepared.is_open, "keyless": prepared.keyless}
    return banner(settings, jobs, prepared.synced, port=port, targets=prepared.targets, **access)


async def _supervised(settings: Settings, listener: socket.socket | None) -> None:
    supervisor = Supervisor(settings.workers, lambda number: start_worker(settings, listener, number), SystemClock())
    stopping = Stopping()
    with stopping.on_signals():
        relays = [
            asyncio.create_task(_stop(supervisor, stopping), name="supervisor.stop"),
            asyncio.create_task(
                _relay(stopping.reload, lambda: supervisor.forward(signal.SIGHUP)), name="supervisor.hup"
            ),
        ]
        try:
            await supervisor.run()
        finally:
            for relay in relays:
                relay.cancel()
            await asyncio.gather(*relays, return_exceptions=True)


async def _stop(supervisor: Supervisor, stopping: Stopping) -> None:
    await stopping.asked.wait()
    supervisor.stop()
    await stopping.at_once.wait()
    supervisor.stop_at_once()


async def _relay(event: asyncio.Event, act: Callable[[], None]) -> None:
    while True:
        await event.wait()
        event.clear()
        act()


async def start_worker(settings: Settings, listener: socket.socket | None, number: int) -> NodeProcess:
    """Start a fresh interpreter. Its orders come through standard input, which stays open as long as we live."""
    if settings.metrics_port is not None:  # each has its own numbers
        settings = msgspec.structs.replace(settings, metrics_port=settings.metrics_port + number)
    descriptor = -1 if listener is None else listener.fileno()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "onthedot.launcher.worker",
        stdin=asyncio.subprocess.PIPE,
        pass_fds=[] if listener is None else [descriptor],
        start_new_session=True,  # Ctrl-C reaches the supervisor alone, which passes it on once
    )
    assert process.stdin is not None
    process.stdin.write(encode_order(settings, descriptor))
    await process.stdin.drain()
    return process
