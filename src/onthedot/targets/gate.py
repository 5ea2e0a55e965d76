"""The gate: only addresses that the egress rule has judged are connected to.

A name is resolved once, every address it gives is judged, and aiohttp connects to exactly those that passed: there is
no second look-up that could answer differently (DNS rebinding). The socket factory sees the very address that is
connected to and judges it again, so that no path through aiohttp can avoid the rule.
"""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from onthedot.targets.egress import EgressRule
from onthedot.targets.url import is_localhost

__all__ = ["EgressRefused", "guarded_connector"]

_LOOKUPS = 16  # look-ups at once: slow name servers must not use up the threads that others need
_REMEMBERED = 4096


class EgressRefused(OSError):
    """The rule does not let this node connect there."""


class _Resolver(AbstractResolver):
    """Resolves names, keeps what the rule permits, and refuses when nothing is left."""

    def __init__(self, rule: EgressRule) -> None:
        self.rule = rule
        self.by_name: set[str] = set()  # addresses that may be connected to because of the name they belong to
        self._threads = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="onthedot-dns")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        name = "localhost" if is_localhost(host) else host  # not every resolver knows "localhost."
        found = await asyncio.get_running_loop().run_in_executor(self._threads, _look_up, name, port, family)
        permitted: list[ResolveResult] = []
        refusals: list[str] = []
        for result in found:
            address = ip_address(result["host"].partition("%")[0])
            why = self.rule.refusal(address, host)
            if why is not None:
                refusals.append(why)
                continue
            permitted.append(result)
            if self.rule.refusal(address) is not None:
                self._remember(result["host"])
        if not permitted:
            raise EgressRefused(f"{host} resolves to {'; '.join(refusals)}" if refusals else f"{host} has no address")
        return permitted

    def _remember(self, address: str) -> None:
        if len(self.by_name) >= _REMEMBERED:
            self.by_name.clear()
        self.by_name.add(address)

    def open_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Called by aiohttp with the address it is about to connect to."""
        family, kind, protocol, _, where = info
        why = None if where[0] in self.by_name else self.rule.refusal(ip_address(where[0].partition("%")[0]))
        if why is not None:
            raise EgressRefused(why)
        return socket.socket(family=family, type=kind, proto=protocol)

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return [
        ResolveResult(hostname=host, host=_spelled(where), port=port, family=kind, proto=protocol, flags=flags)
        for kind, _, protocol, _, where in socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
    ]


def _spelled(where: tuple[Any, ...]) -> str:
    return f"{where[0]}%{where[3]}" if len(where) == 4 and where[3] and "%" not in where[0] else str(where[0])


def guarded_connector(rule: EgressRule, *, idle: float) -> aiohttp.TCPConnector:
    """A pool of connections without a limit of its own (the engine has one), all of them through the gate."""
    resolver = _Resolver(rule)
    return aiohttp.TCPConnector(
        resolver=resolver,
        socket_factory=resolver.open_socket,
        limit=0,
        keepalive_timeout=idle,
        use_dns_cache=True,
        ttl_dns_cache=10,
        enable_cleanup_closed=False,
    )
