"""The gate: only addresses that the egress rule has judged are connected to.

A name is resolved once, every address it gives is judged, and the socket is connected to exactly one of those that
passed: there is no second look-up that could answer differently (DNS rebinding), and no other way for a webhook to open
a socket. The address is judged again right before it is connected to.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import lru_cache
from ipaddress import ip_address
from typing import Any

from onthedot.model.connection_error import unreached_words
from onthedot.targets.exhaustion import NO_PORTS, Lacking, lack_of, ports_are_gone
from onthedot.targets.webhook.egress import EgressRule
from onthedot.targets.webhook.http1.connection import Unanswered
from onthedot.targets.webhook.lookups import Lookups, NoAnswer
from onthedot.targets.webhook.url import is_localhost

__all__ = ["Connector", "EgressRefused"]

STAGGER = 0.25
"""Seconds until the next address of a name is tried beside one that does not answer (RFC 8305)."""
TTL = 10.0
_REMEMBERED = 4096

Where = tuple[int, tuple[Any, ...]]
"""Family and address as the socket takes it, its port to be filled in."""


class EgressRefused(Exception):
    """The rule does not let this node connect there."""


class Connector:
    def __init__(self, rule: EgressRule) -> None:
        self._rule = rule
        self._names: dict[str, tuple[float, list[Where]]] = {}
        self._asking: dict[tuple[str, int], asyncio.Task[list[Where]]] = {}
        self._judge = lru_cache(maxsize=_REMEMBERED)(self._judged)
        self._literals = lru_cache(maxsize=_REMEMBERED)(self._literal)
        self._lookups = Lookups(_look_up)

    def obey(self, rule: EgressRule) -> None:
        """Go by another rule from now on."""
        self._rule = rule
        self._judge.cache_clear()
        self._literals.cache_clear()
        self._names.clear()

    async def connect(self, host: str, port: int, *, is_address: bool, tenant: int = 1) -> socket.socket:
        """A socket that is connected to one of the host's permitted addresses: the first that answers, in the
        system's order. Raises EgressRefused, or Unanswered."""
        places = self._literals(host) if is_address else await self._resolve(host, tenant)
        if len(places) == 1:
            return await self._open(host, port, places[0])
        return await self._first(host, port, places)

    async def join(
        self, made: Callable[[], asyncio.BaseProtocol], host: str, port: int, *, is_address: bool, tenant: int = 1
    ) -> asyncio.BaseTransport:
        """The same as far as a protocol that speaks over it. One address is connected to in one step, which costs half
        of the CPU: the loop is given that address, so that it has nothing to look up."""
        loop = asyncio.get_running_loop()
        places = self._literals(host) if is_address else await self._resolve(host, tenant)
        if len(places) > 1 or not _plain(places[0]):
            sock = await self.connect(host, port, is_address=is_address, tenant=tenant)
            try:
                transport, _ = await loop.create_connection(made, sock=sock)
            except BaseException:
                sock.close()
                raise
            return transport
        address = self._passed(host, port, places[0])
        try:
            transport, _ = await loop.create_connection(made, address, port)
        except OSError as error:
            raise _unreached(error, places[0][0], address, port) from None
        return transport

    async def _resolve(self, host: str, tenant: int) -> list[Where]:
        """Many sends of a tenant to one name share one look-up; what it gave is kept for ten seconds, for everybody,
        failures are not."""
        now = asyncio.get_running_loop().time()
        known = self._names.get(host)
        if known is not None and now < known[0]:
            return known[1]
        task = self._asking.get((host, tenant))
        if task is None:
            task = self._asking[host, tenant] = asyncio.ensure_future(self._ask(host, tenant))
            task.add_done_callback(lambda done: self._asked(host, tenant, done))
        return await asyncio.shield(task)

    async def _ask(self, host: str, tenant: int) -> list[Where]:
        name = "localhost" if is_localhost(host) else host  # not every resolver knows "localhost."
        try:
            found = await self._lookups.find(name, tenant)
        except (OSError, UnicodeError, RuntimeError, NoAnswer) as error:
            if lack := lack_of(error, starting=True, looking_up=True):
                raise Lacking(lack) from None
            raise Unanswered("can't resolve the host name", f"{host}: {error}") from None
        return self._permitted(host, found)

    def _asked(self, host: str, tenant: int, done: asyncio.Task[list[Where]]) -> None:
        self._asking.pop((host, tenant), None)
        if done.cancelled() or done.exception() is not None:
            return
        if len(self._names) >= _REMEMBERED:
            self._names.clear()
        self._names[host] = (asyncio.get_running_loop().time() + TTL, done.result())

    def _permitted(self, host: str, found: list[Where]) -> list[Where]:
        refusals: list[str] = []
        permitted: list[Where] = []
        for place in found:
            why = self._judge(host, place[1][0])
            if why is None:
                permitted.append(place)
            else:
                refusals.append(why)
        if not permitted:
            if not refusals:
                raise EgressRefused(f"{host} has no address")
            raise EgressRefused(f"{host} resolves only to addresses that are not allowed: {'; '.join(refusals)}")
        return permitted

    def _judged(self, host: str, address: str, port: int | None = None) -> str | None:
        return self._rule.refusal(ip_address(address.partition("%")[0]), host, port)

    def _literal(self, host: str) -> list[Where]:
        try:
            found = _look_up(host, socket.AI_NUMERICHOST)
        except OSError as error:  # an interface that this machine does not have
            raise Unanswered("can't connect", f"{host}: {error}") from None
        return self._permitted(host, found)

    async def _open(self, host: str, port: int, place: Where) -> socket.socket:
        family, (_, _, *rest) = place
        address = self._passed(host, port, place)
        try:
            # Told that it is TCP, asyncio lets small packets go at once.
            sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            try:
                sock.setblocking(False)
                await asyncio.get_running_loop().sock_connect(sock, (address, port, *rest))
            except BaseException:
                sock.close()
                raise
        except OSError as error:
            raise _unreached(error, family, address, port) from None
        return sock

    def _passed(self, host: str, port: int, place: Where) -> str:
        """The address, judged right before it is connected to."""
        address: str = place[1][0]
        if why := self._judge(host, address, port):
            raise EgressRefused(why)
        return address

    async def _first(self, host: str, port: int, places: list[Where]) -> socket.socket:
        """Each next address as soon as one failed, or beside one that takes too long."""
        waiting = list(reversed(places))
        trying: set[asyncio.Task[socket.socket]] = set()
        failure: BaseException | None = None
        try:
            while waiting or trying:
                if waiting:
                    trying.add(asyncio.ensure_future(self._open(host, port, waiting.pop())))
                within = STAGGER if waiting else None
                done, _ = await asyncio.wait(trying, timeout=within, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    trying.discard(task)
                    if (error := task.exception()) is None:
                        return task.result()
                    failure = failure or error
        finally:
            for task in trying:
                task.cancel()
                task.add_done_callback(_close_late)
        assert failure is not None
        raise failure

    def close(self) -> None:
        for task in self._asking.values():
            task.cancel()


def _look_up(host: str, flags: int = 0) -> list[Where]:
    found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=flags)
    return [(family, where) for family, _, _, _, where in found]


def _plain(place: Where) -> bool:
    """Whether the address says it all: some of IPv6 also need to be told the interface."""
    address, _, *rest = place[1]
    return not any(rest) and "%" not in address


def _unreached(error: OSError, family: int, address: str, port: int) -> Exception:
    """Lacking: it is this machine that has no room for another connection."""
    if lack := lack_of(error):
        return Lacking(lack)
    if ports_are_gone(error, family, (address, port)):
        return Lacking(NO_PORTS)
    return Unanswered("can't connect", unreached_words(error, address, port))


def _close_late(task: asyncio.Task[socket.socket]) -> None:
    """Connected too, but another one was before it."""
    if not task.cancelled() and task.exception() is None:
        task.result().close()
