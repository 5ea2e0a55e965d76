"""uvicorn, set up for the API: bounded connections (server.protocol), and creates by the fast path."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal

import uvicorn

from onthedot.api.fastpath.protocol import ApiProtocol
from onthedot.api.server.certificate import ServerCertificate
from onthedot.api.server.flow import CountedServerState
from onthedot.api.server.protocol import GuardedProtocol

__all__ = ["Server", "make_server"]


class Server(uvicorn.Server):
    """Ends the event streams before it waits for connections to end: they would not by themselves. Who waits for an
    answer when the grace is over is hung up on: for what went straight into the group uvicorn has no task to end."""

    def __init__(self, config: uvicorn.Config, close_streams: Callable[[], None] = lambda: None) -> None:
        super().__init__(config)
        self.server_state = self.counted = CountedServerState()
        self._close_streams = close_streams

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            self.look()
        return await super().on_tick(counter)

    def look(self) -> None:
        """Leave clients that neither give nor take; and if unread answers are too many, whoever took longest."""
        now = asyncio.get_running_loop().time()
        connections: list[Any] = list(self.server_state.connections)
        unread = sum(connection.look(now) for connection in connections)
        most = self.counted.load.limits.unread_bytes
        if unread <= most:
            return
        for connection in sorted(connections, key=GuardedProtocol.unread_since):
            unread -= connection.transport.get_write_buffer_size()
            connection.transport.abort()
            if unread <= most:
                return

    async def shutdown(self, sockets: Any = None) -> None:
        self._close_streams()
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.close()


def make_server(
    app: Any,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    grace_seconds: int = 5,
    lifespan: Literal["on", "off"] = "on",
    certificate: ServerCertificate | None = None,
) -> Server:
    """A server for `await server.serve()`; signals are the caller's business if it runs inside something bigger."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=ApiProtocol,
        interface="asgi3",  # told, not guessed: of a partial function uvicorn guesses wrong
        ws="none",
        loop="uvloop",
        lifespan=lifespan,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=grace_seconds,
        backlog=2048,
        ssl_certfile=None if certificate is None else certificate.cert,
        ssl_keyfile=None if certificate is None or certificate.key is None else str(certificate.key),
    )
    return Server(config, getattr(app, "close_streams", lambda: None))
