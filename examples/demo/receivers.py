"""The systems that the company's webhooks call: one receiver each, so that each is a destination of its own."""

from __future__ import annotations

import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager

import msgspec

from onthedot.echo import Arrival, EchoServer

__all__ = ["SYSTEMS", "free_ports", "receiving"]


class System(msgspec.Struct, frozen=True):
    """How a receiver behaves. `fails`: the fraction of answers with `status`. Not `up`: nobody listens."""

    delay: float
    fails: float = 0.0
    status: int = 503
    error: str = "maintenance, try again later"
    up: bool = True


SYSTEMS = {
    "shop": System(0.012),
    "payments": System(0.045, fails=0.01, status=503),
    "warehouse": System(0.09, fails=0.06, status=500, error="deadlock detected in table orders"),
    "mail": System(0.02, fails=0.02, status=429, error="slow down: 100 messages a minute"),
    "partners": System(0.16, fails=0.03, status=422, error="unknown warehouse LEJ-2"),
    "loyalty": System(0.0, up=False),  # it was switched off, and somebody forgot its jobs
}


def free_ports() -> dict[str, int]:
    """A port for each that is free now. All are held until the last is found, so that no two are the same."""
    with ExitStack() as stack:
        held = {name: stack.enter_context(socket.socket()) for name in SYSTEMS}
        for each in held.values():
            each.bind(("127.0.0.1", 0))
        return {name: each.getsockname()[1] for name, each in held.items()}


@asynccontextmanager
async def receiving(ports: dict[str, int]) -> AsyncIterator[None]:
    """All that are up, listening. Raises OSError if a port is taken."""
    async with AsyncExitStack() as stack:
        for name, system in SYSTEMS.items():
            if not system.up:
                continue
            echo = EchoServer(port=ports[name], delay=system.delay, keep=False)
            echo.answer = _answers(name, system)
            await stack.enter_async_context(echo)
        yield


def _answers(name: str, system: System) -> Callable[[Arrival], tuple[int, dict[str, str], bytes]]:
    def answer(arrival: Arrival) -> tuple[int, dict[str, str], bytes]:
        headers = {"content-type": "application/json"}
        if random.random() < system.fails:
            return system.status, headers, msgspec.json.encode({"error": system.error})
        return 200, headers, msgspec.json.encode({"system": name, "accepted": True, "items": random.randint(1, 60)})

    return answer
