"""Where a webhook may go. Pure: the rule decides on addresses, `http1.connector` connects only to those it allowed.

Public addresses: always. Loopback and private ones: while the installation is open (no key was ever made, and no API is
reached from other machines: one person, one machine), or when EGRESS_ALLOW lists them, whatever this node is bound to
and whatever its roles. Link-local, cloud metadata, carrier-grade NAT and special-purpose ranges: only when their
address or network is listed. Our own ports, the API's and the database's: only when listed with the port
("127.0.0.1:8000").
Multicast, reserved and unspecified: never, not even when listed.

A listed name ("hooks.internal", "*.corp.example") opens the private addresses it resolves to, and nothing more: who
controls a name must not reach the metadata service with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Self

from onthedot.errors import SettingsError
from onthedot.targets.webhook.addresses import Address, Network, Zone, bare, zone
from onthedot.targets.webhook.own_ports import EVERYWHERE, OwnPort, is_here

__all__ = ["EgressRule"]


@dataclass(frozen=True)
class EgressRule:
    allow_private: bool = False
    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()
    listed_ports: frozenset[tuple[Address | str, int]] = frozenset()
    own_ports: frozenset[OwnPort] = frozenset()

    @classmethod
    def parse(
        cls, allow: Iterable[str] = (), *, allow_private: bool = False, own_ports: frozenset[OwnPort] = frozenset()
    ) -> Self:
        """Read EGRESS_ALLOW: networks ("10.0.0.0/8"), addresses ("::1"), host names ("*.corp.example"), and either of
        the last two with one port ("127.0.0.1:8000")."""
        networks: list[Network] = []
        hosts: set[str] = set()
        ports: set[tuple[Address | str, int]] = set()
        for entry in (text.strip() for text in allow):
            try:
                networks.append(ip_network(entry.strip("[]"), strict=False))
            except ValueError:
                if (listed := _port_entry(entry)) is not None:
                    ports.add(listed)
                else:
                    hosts.add(_host_entry(entry))
        return cls(
            allow_private=allow_private,
            networks=tuple(networks),
            hosts=frozenset(hosts),
            listed_ports=frozenset(ports),
            own_ports=own_ports,
        )

    def refusal(self, address: Address, host: str | None = None, port: int | None = None) -> str | None:
        """Why this address may not be connected to; None: it may. `host` is the name it was resolved from."""
        kind, reached = zone(address), bare(address)
        if port is not None and kind is not Zone.NEVER:
            if self._lists_port(reached, host, port):
                return None
            if self._is_own(reached, port):
                return f"{reached}, port {port} is used by On the Dot itself or its database"
        if kind is Zone.PUBLIC:
            return None
        if kind is not Zone.NEVER:
            if any(reached in network for network in self.networks if network.version == reached.version):
                return None
            if any(address in network for network in self.networks if network.version == address.version):
                return None
            if kind is Zone.PRIVATE and (self.allow_private or (host is not None and self._lists(host))):
                return None
        advice = "" if kind is Zone.NEVER else " that EGRESS_ALLOW does not list"
        written = str(address) if address == reached else f"{address} ({reached})"
        return f"{written} is {kind.value}{advice}"

    def _is_own(self, address: Address, port: int) -> bool:
        if (address, port) in self.own_ports:
            return True
        return (EVERYWHERE, port) in self.own_ports and is_here(address)

    def _lists_port(self, address: Address, host: str | None, port: int) -> bool:
        """A name opens private addresses alone, with a port as without."""
        if (address, port) in self.listed_ports:
            return True
        named = host is not None and any((name, port) in self.listed_ports for name in _spellings(host))
        return named and zone(address) in (Zone.PUBLIC, Zone.PRIVATE)

    def _lists(self, host: str) -> bool:
        return any(name in self.hosts for name in _spellings(host))


def _spellings(host: str) -> list[str]:
    """Under which a host may be listed."""
    name = host.lower().rstrip(".")
    labels = name.split(".")
    return [name, *("*." + ".".join(labels[start:]) for start in range(1, len(labels)))]


def _port_entry(entry: str) -> tuple[Address | str, int] | None:
    """ "127.0.0.1:8000", "[::1]:8000", "hooks.internal:8000"; None: there is no port in it."""
    host, colon, port = entry.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
        return None
    try:
        return bare(ip_address(host.strip("[]"))), int(port)
    except ValueError:
        return _host_entry(host), int(port)


def _host_entry(entry: str) -> str:
    name = entry.lower().rstrip(".")
    labels = name.removeprefix("*.").split(".")
    fits = all(label and len(label) < 64 and label.replace("-", "a").replace("_", "a").isalnum() for label in labels)
    if not fits or not name.isascii() or labels[-1].isdecimal():
        raise SettingsError(
            f"EGRESS_ALLOW: {entry!r} is not a network (10.0.0.0/8), an address or a host name (*.corp.example)"
        )
    return name
