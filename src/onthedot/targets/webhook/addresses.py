"""Addresses: every notation of a host, and what kind of network it lies in. Pure.

A URL can write 127.0.0.1 as 2130706433, 0x7f.1, 0177.0.0.1 or ::ffff:7f00:1, and the system's resolver accepts all of
them. So a host is read here the way the resolver would read it, and only the address itself is ever judged.
"""

from __future__ import annotations

import enum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

__all__ = ["Address", "Network", "Zone", "bare", "literal", "zone"]

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class Zone(enum.Enum):
    """How far an address reaches; the value finishes the sentence "… is "."""

    PUBLIC = "a public address"
    PRIVATE = "a loopback or private address"
    SPECIAL = "a link-local, cloud metadata or special-purpose address"
    NEVER = "not an address of a single host"


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ip_network(text) for text in texts)


# Looked through from the top, so that metadata inside a private range is found as what it is.
_ZONES: tuple[tuple[Zone, tuple[Network, ...]], ...] = (
    (
        Zone.NEVER,
        # "this network" (Linux connects 0.0.0.0 and :: to itself), multicast, reserved and broadcast
        _networks("0.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4", "::/128", "ff00::/8"),
    ),
    (
        Zone.SPECIAL,
        _networks(
            "169.254.0.0/16",  # link-local; 169.254.169.254 is the metadata service of most clouds
            "100.64.0.0/10",  # carrier-grade NAT; 100.100.100.200 is Alibaba's metadata
            "168.63.129.16/32",  # Azure's wire server, a public address that is anything but
            "192.0.0.0/24",  # IETF protocols; 192.0.0.192 is Oracle's metadata
            "192.0.2.0/24",  # documentation, with the next two
            "198.51.100.0/24",
            "203.0.113.0/24",
            "192.88.99.0/24",  # 6to4 relays
            "198.18.0.0/15",  # benchmarks
            "fe80::/10",
            "fec0::/10",
            "fd00:ec2::/32",  # Amazon's metadata over IPv6
            "fd20:ce::/32",  # Google's
            "64:ff9b:1::/48",  # NAT64 for local use: what is behind it can't be known
            "2001::/32",  # Teredo
            "2001:db8::/32",  # documentation, with the next
            "3fff::/20",
            "100::/64",
        ),
    ),
    (
        Zone.PRIVATE,
        _networks("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7"),
    ),
    (Zone.PUBLIC, _networks("0.0.0.0/0", "2000::/3")),
)

_NAT64 = ip_network("64:ff9b::/96")


def bare(address: Address) -> Address:
    """The address that is really reached: without a zone id, and the IPv4 address inside a transition form of IPv6."""
    if isinstance(address, IPv4Address):
        return address
    number = int(address)
    plain = IPv6Address(number)
    if plain.ipv4_mapped is not None:
        return plain.ipv4_mapped
    if plain in _NAT64:
        return IPv4Address(number & 0xFFFF_FFFF)
    if plain.sixtofour is not None:
        return plain.sixtofour
    return plain


@lru_cache(maxsize=4096)
def zone(address: Address) -> Zone:
    reached = bare(address)
    for kind, networks in _ZONES:
        if any(reached in network for network in networks if network.version == reached.version):
            return kind
    return Zone.NEVER  # IPv6 that nobody has given out


def literal(host: str) -> Address | None:
    """The address a host spells out, in any notation; None if it is a name. ValueError: looks like one but is none."""
    text = host.rstrip(".") if host.endswith(".") else host
    if ":" in text:
        return ip_address(text.partition("%")[0])
    last = text.rpartition(".")[2].lower()
    if not (last.isdecimal() and last.isascii()) and not _is_hex(last):
        return None
    return _inet_aton(text)


def _is_hex(text: str) -> bool:
    return text.startswith("0x") and all(c in "0123456789abcdef" for c in text[2:])


def _inet_aton(text: str) -> IPv4Address:
    """1 to 4 numbers, decimal, octal (0…) or hexadecimal (0x…); the last one fills the bytes that are left."""
    numbers = [_number(part, text) for part in text.lower().split(".")]
    *head, tail = numbers
    if len(numbers) > 4 or any(n > 255 for n in head) or tail >= 256 ** (4 - len(head)):
        raise ValueError(f"{text!r} is not an address")
    value = tail
    for position, n in enumerate(head):
        value |= n << (8 * (3 - position))
    return IPv4Address(value)


def _number(part: str, whole: str) -> int:
    digits, base = part, 10
    if part.startswith("0x"):
        digits, base = part[2:] or "0", 16
    elif part.startswith("0") and part != "0":
        base = 8
    if not digits or any(c not in "0123456789abcdef"[:base] for c in digits):  # int() takes "1_0" and " 1"
        raise ValueError(f"{whole!r} is not an address")
    return int(digits, base)
