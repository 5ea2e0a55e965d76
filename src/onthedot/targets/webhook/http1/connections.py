"""Connections that are kept for the next request to the same origin.

- Kept for 4 s, less than the 5 s after which common servers hang up, and a second less than a receiver says it keeps
  them, so that a request rarely meets a connection that is being closed. When it does, that is a failed try like any
  other broken connection: whether the receiver acted on it can't be known, and what must not happen is a second send
  behind the engine's back.
- The newest is used first: the others can grow old and go.
- Without a limit to one receiver (the engine has one for all), but of the idle ones at most 1,000 are kept, or calls to
  ever new hosts would use up the file descriptors.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl

from onthedot.targets.exhaustion import Lacking, lack_of
from onthedot.targets.webhook.http1.connection import Origin, ReceiverConnection, Unanswered
from onthedot.targets.webhook.http1.connector import Connector

__all__ = ["ConnectionPool"]

IDLE = 4.0
KEPT = 1000
FAREWELL = 1.0
"""Seconds for connections to be closed in good order when the node stops."""


class ConnectionPool:
    def __init__(self, gate: Connector, tls: ssl.SSLContext, most: int | None = None) -> None:
        """`most`: so many may be open at once, those included that are kept or being opened."""
        self._gate = gate
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._idle: dict[ReceiverConnection, float] = {}  # until when each is kept; in the order they came back
        self._by_origin: dict[Origin, dict[ReceiverConnection, None]] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._empty = asyncio.Event()
        self.open: set[ReceiverConnection] = set()
        self._opening = 0
        self._most = most
        self._keep = KEPT if most is None else min(KEPT, most)
        self._unwanted: set[ReceiverConnection] = set()

    @property
    def idle(self) -> int:
        return len(self._idle)

    def take(self, origin: Origin) -> ReceiverConnection | None:
        """A kept connection, or None."""
        kept = self._by_origin.get(origin)
        now = self._loop.time()
        while kept:
            connection, _ = kept.popitem()
            if not kept:
                del self._by_origin[origin]
            if self._idle.pop(connection) > now and connection.alive:
                return connection
            connection.close()
        return None

    async def connect(self, origin: Origin, *, is_address: bool, tenant: int = 1) -> ReceiverConnection:
        """A new connection, through the gate. Raises EgressRefused, Unanswered, or Lacking."""
        self._make_room()
        self._opening += 1
        try:
            return await self._connect(origin, is_address, tenant)
        finally:
            self._opening -= 1

    def _make_room(self) -> None:
        """One that is kept for another receiver goes. Those that are being closed count no more."""
        if self._most is None or len(self.open) + self._opening < self._most:
            return
        if sum(connection.alive for connection in self.open) + self._opening < self._most:
            return
        if not self._idle:
            raise Lacking(f"all {self._most} webhook connections of this process are in use")
        self._drop(next(iter(self._idle)))

    async def _connect(self, origin: Origin, is_address: bool, tenant: int) -> ReceiverConnection:
        secure, host, port = origin
        connection = ReceiverConnection(origin, self._gone)
        if secure:
            await self._connect_securely(connection, is_address, tenant)
            return connection
        try:
            await self._gate.join(lambda: connection, host, port, is_address=is_address, tenant=tenant)
        except OSError as error:
            raise Unanswered("connection lost", error) from None
        if connection.alive:  # or it has gone already
            self.open.add(connection)
        return connection

    async def _connect_securely(self, connection: ReceiverConnection, is_address: bool, tenant: int) -> None:
        _, host, port = connection.origin
        sock = await self._gate.connect(host, port, is_address=is_address, tenant=tenant)
        self.open.add(connection)
        try:
            await self._loop.create_connection(
                lambda: connection,
                sock=sock,
                ssl=self._tls,
                server_hostname=host.partition("%")[0].removesuffix("."),
            )
        except BaseException as error:
            connection.abort()
            self._gone(connection)
            sock.close()
            if isinstance(error, OSError) and lack_of(error) is None:  # an SSLError is one
                raise Unanswered("TLS handshake failed", error) from None
            raise

    def put(self, connection: ReceiverConnection) -> None:
        """Keep it for the next one, if it can be used again."""
        if not connection.reusable:
            return
        if connection in self._unwanted:
            connection.close()
            return
        wait = IDLE if connection.kept_for is None else min(IDLE, connection.kept_for - 1)
        if wait <= 0:
            connection.close()
            return
        if len(self._idle) >= self._keep:
            self._drop(next(iter(self._idle)))
        self._idle[connection] = self._loop.time() + wait
        kept = self._by_origin.get(connection.origin)
        if kept is None:
            kept = self._by_origin[connection.origin] = {}
        kept[connection] = None
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(IDLE / 2, self._sweep)

    def drop_idle(self) -> None:
        """Where they lead may no longer be permitted: the next request goes through the gate. Those in use go when they
        come back."""
        self._unwanted.update(self.open - self._idle.keys())
        for connection in list(self._idle):
            self._drop(connection)

    def _drop(self, connection: ReceiverConnection) -> None:
        self._forget(connection)
        connection.close()

    def _forget(self, connection: ReceiverConnection) -> None:
        if self._idle.pop(connection, None) is None:
            return
        kept = self._by_origin[connection.origin]
        del kept[connection]
        if not kept:
            del self._by_origin[connection.origin]

    def _gone(self, connection: ReceiverConnection) -> None:
        """Closed, by whomever."""
        self.open.discard(connection)
        self._unwanted.discard(connection)
        self._forget(connection)
        if not self.open:
            self._empty.set()

    def _sweep(self) -> None:
        self._sweeper = None
        now = self._loop.time()
        for connection in [old for old, until in self._idle.items() if until <= now]:
            self._drop(connection)
        if self._idle:
            self._sweeper = self._loop.call_later(IDLE / 2, self._sweep)

    async def close(self) -> None:
        """What is idle says goodbye, what is not is cut."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for connection in list(self.open):
            if connection in self._idle:
                self._drop(connection)
            else:
                connection.abort()
        if not await self._all_gone():
            for connection in list(self.open):
                connection.abort()
            await self._all_gone()

    async def _all_gone(self) -> bool:
        self._empty.clear()
        if self.open:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FAREWELL):
                    await self._empty.wait()
        return not self.open
