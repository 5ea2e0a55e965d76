"""Our own ports: where the API and the database listen. No job may call them, unless EGRESS_ALLOW lists the port.

An address of this machine is never typed in here: whether one is ours is asked of the kernel, which lets a socket be
bound to no other.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import unquote

from onthedot.model.store_url import split_store_url
from onthedot.targets.webhook.addresses import Address, bare

__all__ = ["EVERYWHERE", "OwnPort", "is_here", "ports_of_store", "read_own_port", "read_own_ports"]

EVERYWHERE = None
"""In place of an address: every one that this machine has."""
OwnPort = tuple[Address | None, int]

_POSTGRES = 5432


def read_own_ports(bindings: Iterable[str]) -> frozenset[OwnPort]:
    """What API nodes of this machine wrote down: "127.0.0.1:8000", "[::]:8000", "localhost:8000"."""
    return frozenset(port for binding in bindings for port in read_own_port(binding))


def read_own_port(binding: str) -> list[OwnPort]:
    host, _, port = binding.rpartition(":")
    name = host.strip("[]")
    if name == "localhost":
        return [(ip_address("127.0.0.1"), int(port)), (ip_address("::1"), int(port))]
    try:
        address = ip_address(name)
    except ValueError:  # a name of this machine: whichever address it means
        return [(EVERYWHERE, int(port))]
    return [(EVERYWHERE if address.is_unspecified else bare(address), int(port))]


def ports_of_store(url: str) -> frozenset[OwnPort]:
    """Where the database listens. Looks names up; one that has no address now is left out."""
    if url.startswith("sqlite:"):
        return frozenset()
    found: set[OwnPort] = set()
    for place in split_store_url(url).netloc.rpartition("@")[2].split(","):
        host, port = _host_and_port(place)
        try:
            answers = socket.getaddrinfo(unquote(host) or "localhost", port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            continue
        found.update((bare(ip_address(str(where[0]).partition("%")[0])), port) for *_, where in answers)
    return frozenset(found)


def _host_and_port(place: str) -> tuple[str, int]:
    if place.startswith("["):
        host, _, rest = place[1:].partition("]")
        port = rest.removeprefix(":")
    else:
        host, _, port = place.partition(":")
    return host, int(port) if port.isdecimal() else _POSTGRES


@lru_cache(maxsize=4096)
def is_here(address: Address) -> bool:
    """Is this an address of this machine?"""
    if address.is_loopback:
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True
