"""What kind of network an address lies in. Pure: only the address itself is ever judged, never how it was written."""

from __future__ import annotations

import enum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from onthedot.model.address_literal import Address

__all__ = ["Address", "Network", "Zone", "bare", "zone"]

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
