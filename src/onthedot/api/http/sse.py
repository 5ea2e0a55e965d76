"""Server-sent events: what happens on this node, for every client of the tenant that listens."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Protocol

import msgspec

from onthedot.clock import Clock
from onthedot.model.instant import format_instant
from onthedot.telemetry import Event, Telemetry

__all__ = ["EventStreams", "MayListen"]

BEHIND_MOST = 1000
QUIET_SECONDS = 15.0
DIGEST_SECONDS = 0.9
TOLD_AT_ONCE = 2
TOLD_APART = 0.002
"""Seconds between two groups of listeners that are told of a change. All two hundred at once kept the loop from calls
that were due: the p99 of their lateness rose by 0.7 ms."""
ASK_AGAIN = 1.0
"""Seconds between two looks at whether who listens still may."""
# What no tenant owns and everybody may know. Their error texts may hold anybody's data, so they stay in the log.
_ABOUT_THE_CLUSTER = frozenset(
    (
        "node.registered",
        "node.draining",
        "node.left",
        "node.lost",
        "store.unavailable",
        "store.back",
        "cluster.changed",
    )
)
_encode = msgspec.json.Encoder(enc_hook=str).encode


MayListen = Callable[[], Awaitable[bool]]


async def _may() -> bool:
    return True


class EventStreams:
    """All the open streams of one node. A listener that can't keep up loses the oldest and is told how many."""

    def __init__(self, telemetry: Telemetry, clock: Clock, most: int = 300) -> None:
        self._telemetry = telemetry
        self._clock = clock
        self._most = most
        self._open: set[_Closable] = set()
        self._digests: dict[int, _Digest] = {}

    @property
    def full(self) -> bool:
        return len(self._open) >= self._most

    @property
    def count(self) -> int:
        return len(self._open)

    def listen(self, tenant: int, may_listen: MayListen = _may) -> AsyncIterator[bytes]:
        """The body of the answer, piece by piece, until the client goes, may not listen any more, or the node stops."""
        stream = _Stream(tenant, self._clock)
        return self.serve(stream, lambda: self._telemetry.subscribe(stream.take), may_listen)

    def listen_digest(self, tenant: int, may_listen: MayListen = _may) -> AsyncIterator[bytes]:
        """The same in short: at most one event a second, `changed`. All listeners of a tenant share one subscription,
        so that hundreds of open dashboards cost little, however much happens."""
        stream = _DigestStream(self._clock)
        return self.serve(stream, lambda: self._join(tenant, stream), may_listen)

    def _join(self, tenant: int, stream: _DigestStream) -> Callable[[], None]:
        digest = self._digests.get(tenant)
        if digest is None:
            digest = self._digests[tenant] = _Digest(tenant, self._clock)
            digest.unsubscribe = self._telemetry.subscribe(digest.take)
        digest.streams.add(stream)

        def leave() -> None:
            digest.streams.discard(stream)
            if not digest.streams and self._digests.get(tenant) is digest:
                del self._digests[tenant]
                digest.unsubscribe()

        return leave

    async def serve(
        self,
        stream: _Closable,
        begin: Callable[[], Callable[[], None]] = lambda: lambda: None,
        may_listen: MayListen = _may,
    ) -> AsyncIterator[bytes]:
        """Any stream: it counts as one of the open ones, and ends with the node. `begin` is called when somebody reads
        it, and what that returns at its end."""
        end = begin()
        self._open.add(stream)
        watch = asyncio.create_task(self._watch(stream, may_listen), name="api.stream-watch")
        try:
            yield b"retry: 2000\n\n"
            async for piece in stream.pieces():
                yield piece
        finally:
            watch.cancel()
            end()
            self._open.discard(stream)

    async def _watch(self, stream: _Closable, may_listen: MayListen) -> None:
        """A stream ends with the key or the session that opened it."""
        try:
            while await may_listen():
                await self._clock.sleep(ASK_AGAIN)
        finally:
            stream.close()

    def close(self) -> None:
        """End every stream: an orderly stop does not wait for clients that would listen for ever."""
        for stream in tuple(self._open):
            stream.close()


class _Closable(Protocol):
    def pieces(self) -> AsyncIterator[bytes]: ...

    def close(self) -> None: ...


def _concerns(event: Event, tenant: int) -> bool:
    said = event.fields.get("tenant")
    return said == tenant if said is not None else event.name in _ABOUT_THE_CLUSTER


class _Digest:
    """What concerns a tenant, told to all its listeners at most once a second; the first at once."""

    def __init__(self, tenant: int, clock: Clock) -> None:
        self.streams: set[_DigestStream] = set()
        self.unsubscribe: Callable[[], None] = lambda: None
        self._tenant = tenant
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._last = -DIGEST_SECONDS
        self._coming = False

    def take(self, event: Event) -> None:
        """Called by the emitter, in whatever thread that is."""
        if self._coming or not _concerns(event, self._tenant):
            return
        self._coming = True
        self._loop.call_soon_threadsafe(self._soon)

    def _soon(self) -> None:
        wait = self._last + DIGEST_SECONDS - self._loop.time()
        if wait > 0:
            self._loop.call_later(wait, self._tell)
        else:
            self._tell()

    def _tell(self) -> None:
        self._coming, self._last = False, self._loop.time()
        piece = b'event: changed\ndata: {"at": "%s"}\n\n' % format_instant(self._clock.now_ms()).encode()
        self._pass_on(piece, tuple(self.streams))

    def _pass_on(self, piece: bytes, streams: Sequence[_DigestStream]) -> None:
        for stream in streams[:TOLD_AT_ONCE]:
            stream.put(piece)
        if rest := streams[TOLD_AT_ONCE:]:
            self._loop.call_later(TOLD_APART, self._pass_on, piece, rest)


class _DigestStream:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._piece: bytes | None = None
        self._woken = asyncio.Event()
        self._closed = False

    def put(self, piece: bytes) -> None:
        self._piece = piece
        self._woken.set()

    def close(self) -> None:
        self._closed = True
        self._woken.set()

    async def pieces(self) -> AsyncIterator[bytes]:
        while not self._closed:
            self._woken.clear()
            try:
                async with self._clock.timeout(QUIET_SECONDS):
                    await self._woken.wait()
            except TimeoutError:
                yield b": still here\n\n"
            if self._piece is not None and not self._closed:
                piece, self._piece = self._piece, None
                yield piece


class _Stream:
    def __init__(self, tenant: int, clock: Clock) -> None:
        self._tenant = tenant
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Event] = deque(maxlen=BEHIND_MOST)
        self._woken = asyncio.Event()
        self._dropped = 0
        self._closed = False

    def take(self, event: Event) -> None:
        """Called by the emitter, in whatever thread that is."""
        if not _concerns(event, self._tenant):
            return
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        put: Callable[[Event], Any] = self._put if here else lambda e: self._loop.call_soon_threadsafe(self._put, e)
        put(event)

    def close(self) -> None:
        self._closed = True
        self._woken.set()

    async def pieces(self) -> AsyncIterator[bytes]:
        while not self._closed:
            while self._waiting and not self._closed:
                yield self._write(self._waiting.popleft())
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                yield b'event: dropped\ndata: {"n": %d}\n\n' % dropped
            self._woken.clear()
            try:
                async with self._clock.timeout(QUIET_SECONDS):
                    await self._woken.wait()
            except TimeoutError:
                yield b": still here\n\n"  # so that proxies keep the connection, and a dead one is noticed

    def _put(self, event: Event) -> None:
        if len(self._waiting) == BEHIND_MOST:
            self._dropped += 1
        self._waiting.append(event)
        self._woken.set()

    def _write(self, event: Event) -> bytes:
        hidden = ("error",) if "tenant" not in event.fields else ("tenant",)
        fields = {name: value for name, value in event.fields.items() if name not in hidden}
        fields["at"] = format_instant(self._clock.now_ms())
        return b"event: %s\ndata: %s\n\n" % (event.name.encode(), _encode(fields))
