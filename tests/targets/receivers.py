"""Receivers that do as they like with their connections."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from onthedot.targets.webhook.http1.connection import ReceiverConnection, Unanswered
from onthedot.targets.webhook.http1.response import WebhookResponse

Respond = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
CERTIFICATES = Path(__file__).parent / "certificates"
"""Made for these tests by an authority that nobody trusts: for localhost, receiver.example, 127.0.0.1 and ::1."""


@asynccontextmanager
async def server(respond: Respond, host: str = "127.0.0.1", **options: Any) -> AsyncIterator[str]:
    """Calls `respond` for each request, once its head is read. Yields the URL."""
    tasks: set[asyncio.Task[Any] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            while (await reader.readuntil(b"\r\n\r\n")) and not writer.is_closing():
                await respond(reader, writer)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError, ssl.SSLError):
            pass  # asyncio's streams would log a cancelled one as a mistake
        finally:
            writer.close()
            tasks.discard(asyncio.current_task())

    listening = await asyncio.start_server(serve, host, 0, **options)
    shown = f"[{host}]" if ":" in host else host
    try:
        yield f"http://{shown}:{listening.sockets[0].getsockname()[1]}/"
    finally:
        listening.close()
        serving = [task for task in tasks if task is not None]
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


def written(*portions: bytes, close: bool = False) -> Respond:
    """Answer each request with these bytes, each portion in a packet of its own as far as the kernel lets us."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for portion in portions:
            writer.write(portion)
            await writer.drain()
            await asyncio.sleep(0)
        if close:
            writer.close()

    return respond


async def answer_of(connection: ReceiverConnection, request: bytes) -> WebhookResponse:
    answer: asyncio.Future[WebhookResponse | Unanswered] = asyncio.get_running_loop().create_future()
    connection.ask(request, answer.set_result)
    told = await answer
    if isinstance(told, Unanswered):
        raise told
    return told


def certified(name: str = "receiver") -> ssl.SSLContext:
    """The receiver's side of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / f"{name}.pem")
    return context


def trusting() -> ssl.SSLContext:
    """The sender's side, with no other authority than ours."""
    return ssl.create_default_context(cafile=str(CERTIFICATES / "authority.pem"))
