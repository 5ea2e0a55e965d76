"""Runs the receiver as a command until it is interrupted."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Mapping

from onthedot.echo.arrival import Arrival
from onthedot.echo.server import EchoServer

__all__ = ["run_echo"]


def run_echo(
    port: int = 5003,
    host: str = "127.0.0.1",
    delay: float = 0.0,
    fail: float = 0.0,
    drop: float = 0.0,
    json: bool = False,
    status: int = 500,
    quiet: bool = False,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Listen and log until interrupted. Raises OSError if the port is in use."""

    def show(arrival: Arrival) -> None:
        sys.stdout.write((arrival.json() if json else arrival.line()) + "\n")
        sys.stdout.flush()

    echo = EchoServer(
        host=host,
        port=port,
        delay=delay,
        fail=fail,
        status=status,
        drop=drop,
        keep=False,
        headers=headers,
        on_arrival=None if quiet else show,
    )
    with asyncio.Runner(loop_factory=_fast_loop()) as runner:
        runner.run(_serve(echo))


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not on every system
        return None
    return uvloop.new_event_loop


async def _serve(echo: EchoServer) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with echo:
        sys.stderr.write(f"listening on {echo.url} (Ctrl-C to stop)\n")
        sys.stderr.flush()
        await stopped.wait()
    sys.stderr.write(f"{echo.count} requests received\n")
