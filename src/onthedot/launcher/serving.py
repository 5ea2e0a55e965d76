"""Runs one node until it is stopped: signals, the listening socket, the banner, reloading the jobs file."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec
import structlog

from onthedot.clock import SystemClock
from onthedot.descriptors import raise_limit
from onthedot.errors import SettingsError
from onthedot.jobsfile import JobsFile
from onthedot.launcher.banner import banner
from onthedot.launcher.collector import calm_collector
from onthedot.launcher.jobs_watch import JobsWatch
from onthedot.launcher.remarks import all_remarks
from onthedot.launcher.wait_for_store import prepared_when_there
from onthedot.main import JobsFileInUse, Prepared, Running, assembled
from onthedot.settings import Settings
from onthedot.telemetry import telemetry
from onthedot.telemetry.log import configure_logging, log_events

if TYPE_CHECKING:
    from onthedot.api.app import App
    from onthedot.api.monitoring import MonitoringApp
    from onthedot.api.server.certificate import ServerCertificate

__all__ = ["Stopping", "check_certificate", "listening", "serve", "served", "tell_remarks"]

SWITCH_SECONDS = 0.001
"""How long the loop waits for a thread that computes (a large request, the writer of SQLite) before it takes its turn.
Python's own 5 ms make every firing meanwhile late by as much."""
_log = structlog.stdlib.get_logger("onthedot.jobsfile")


class Stopping:
    """Signal handling: the first SIGTERM or SIGINT drains and stops, the second stops immediately; SIGHUP reloads."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.at_once = asyncio.Event()
        self.reload = asyncio.Event()

    def ask(self) -> None:
        if self.asked.is_set():
            self.at_once.set()
        self.asked.set()

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        handlers = {signal.SIGTERM: self.ask, signal.SIGINT: self.ask, signal.SIGHUP: self.reload.set}
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)


async def serve(
    settings: Settings,
    jobs: JobsFile | None,
    *,
    listener: socket.socket | None = None,
    stopping: Stopping | None = None,
    quiet: bool = False,
) -> None:
    """Run until stopped. `listener`: an inherited socket; `quiet`: no banner (the supervisor printed it)."""
    configure_logging(settings.log_level, style=settings.log_format)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # we report startup and shutdown ourselves
    logging.getLogger("asyncpg.pool").setLevel(
        logging.ERROR
    )  # it logs each failed attempt with a traceback; we log the outage once
    raise_limit()
    stop_logging = log_events(telemetry)
    stopping = stopping or Stopping()
    routes = []
    if "api" in settings.roles:
        from onthedot.web import routes as pages

        routes = [*pages]
        check_certificate(settings)
        listener = listener or listening(settings.host, settings.port)
        settings = msgspec.structs.replace(settings, port=listener.getsockname()[1])  # 0: whichever was free
    watched = None
    try:
        if settings.metrics_port is not None:
            watched = listening(settings.host, settings.metrics_port, "METRICS_PORT")
        with stopping.on_signals():
            prepared = await prepared_when_there(
                settings, jobs, stop=stopping.asked, listener=listener, watched=watched
            )
            if prepared is None:
                return
            async with assembled(settings, prepared=prepared, routes=routes) as running:
                if not quiet:
                    port = listener.getsockname()[1] if listener is not None else None
                    access = {"is_open": prepared.is_open, "keyless": prepared.keyless}
                    told = banner(settings, jobs, running.synced, port=port, targets=prepared.targets, **access)
                    sys.stdout.write(told)
                    sys.stdout.flush()
                    tell_remarks(prepared)
                await _until_stopped(settings, running, jobs, (listener, watched), stopping)
    finally:
        stop_logging()
        for each in (listener, watched):
            if each is not None:
                each.close()


def check_certificate(settings: Settings) -> ServerCertificate | None:
    """What the API shows, if it speaks TLS; looked at before anything else starts. Raises SettingsError."""
    from onthedot.api.server.certificate import server_certificate

    return server_certificate(settings.tls_cert, settings.tls_key)


def tell_remarks(prepared: Prepared) -> None:
    """After the banner: log warnings about jobs of the file that were not applied or will fail."""
    if prepared.jobs is not None and prepared.synced is not None:
        for remark in all_remarks(prepared, prepared.jobs, prepared.synced):
            _log.warning(remark)


def listening(host: str, port: int, setting: str = "--port") -> socket.socket:
    """Bind before anything else starts, so that a port in use is an error message and not a half-started node."""
    listener: socket.socket | None = None
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        if listener is not None:
            listener.close()
        advice = "check that this is an address of this machine"
        if error.errno == errno.EADDRINUSE:
            advice = (
                "On the Dot may already be running there "
                f"(check with `onthedot nodes --url http://{host}:{port}`); choose another port with {setting}"
            )
        raise SettingsError(f"can't listen on {host}:{port}: {error.strerror}; {advice}") from None
    listener.setblocking(False)
    return listener


async def _until_stopped(
    settings: Settings,
    running: Running,
    jobs: JobsFile | None,
    listeners: tuple[socket.socket | None, socket.socket | None],
    stopping: Stopping,
) -> None:
    """When any part ends, normally or by an error, stop the others too; an error is raised."""
    certificate = None if running.app is None else check_certificate(settings)
    async with (
        served(running.app, listeners[0], stopping, lifespan="on", certificate=certificate) as server,
        served(running.monitoring, listeners[1], stopping, lifespan="off") as monitoring,
        _watched(settings, running, jobs, stopping) as watch,
        _templates_prepared(running),
    ):
        calm_collector()
        sys.setswitchinterval(SWITCH_SECONDS)
        node = asyncio.create_task(running.node.wait(), name="launcher.node")
        parts = [task for task in (server, monitoring, watch, node) if task is not None]
        asked = asyncio.create_task(stopping.asked.wait(), name="launcher.asked")
        await asyncio.wait([asked, *parts], return_when=asyncio.FIRST_COMPLETED)
        stopping.asked.set()
        hurried = asyncio.create_task(_hurry(running, stopping), name="launcher.hurry")
        running.node.request_stop()
        await asyncio.wait([node])
        hurried.cancel()
        asked.cancel()
        await asyncio.gather(hurried, asked, return_exceptions=True)
        node.result()


async def _hurry(running: Running, stopping: Stopping) -> None:
    await stopping.at_once.wait()
    running.node.request_stop()


@asynccontextmanager
async def _templates_prepared(running: Running) -> AsyncIterator[None]:
    if running.app is None:
        yield
        return
    from onthedot.web.templating import prepare

    preparing = asyncio.create_task(prepare(SystemClock().sleep), name="launcher.templates")
    try:
        yield
    finally:
        preparing.cancel()
        await asyncio.wait([preparing])


@asynccontextmanager
async def served(
    app: App | MonitoringApp | None,
    listener: socket.socket | None,
    stopping: Stopping,
    *,
    lifespan: Literal["on", "off"],
    certificate: ServerCertificate | None = None,
) -> AsyncIterator[asyncio.Task[None] | None]:
    """Run uvicorn on our loop with our signal handlers. It serves until the engine has stopped; /readyz returns 503."""
    if app is None or listener is None:
        yield None
        return
    from onthedot.api.server.certificate import CertificateWatch
    from onthedot.api.server.server import make_server

    server = make_server(app, lifespan=lifespan, certificate=certificate)
    server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]  # signals are ours
    renewing: asyncio.Task[None] | None = None
    if certificate is not None:
        server.config.load()
        assert server.config.ssl is not None
        renewing = asyncio.create_task(CertificateWatch(certificate, server.config.ssl).run(), name="launcher.tls")
    task = asyncio.create_task(server.serve(sockets=[listener]), name=f"launcher.{type(app).__name__}")
    try:
        yield task
    finally:
        if renewing is not None:
            renewing.cancel()
            await asyncio.wait([renewing])
        server.should_exit = True
        if stopping.at_once.is_set():
            server.config.timeout_graceful_shutdown = 0  # `force_exit` would leave the application's end out
        await asyncio.wait([task])
        task.result()


@asynccontextmanager
async def _watched(
    settings: Settings, running: Running, jobs: JobsFile | None, stopping: Stopping
) -> AsyncIterator[asyncio.Task[None] | None]:
    if jobs is None:
        yield None
        return
    watch = JobsWatch(
        settings,
        JobsFileInUse(running.prepared).apply,
        stopping.reload,
        SystemClock(),
        remarks=partial(all_remarks, running.prepared),
    )
    task = asyncio.create_task(watch.run(), name="launcher.jobs-watch")
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
