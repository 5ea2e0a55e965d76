"""Where a webhook may go. Pure: the rule judges addresses, `gate.py` makes sure that only judged ones are connected to.

Public addresses: always. Loopback and private ones: when the node itself is bound to loopback (one person, one machine)
or when EGRESS_ALLOW lists them. Link-local, cloud metadata, carrier-grade NAT and special-purpose ranges: only when
their address or network is listed. Multicast, reserved and unspecified: never, not even when listed.

A listed name ("hooks.internal", "*.corp.example") opens the private addresses it resolves to, and nothing more: who
controls a name must not reach the metadata service with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Self

from onthedot.errors import SettingsError
from onthedot.targets.address import Address, Network, Zone, bare, zone

__all__ = ["EgressRule"]


@dataclass(frozen=True)
class EgressRule:
    allow_private: bool = False
    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, allow: Iterable[str] = (), *, allow_private: bool = False) -> Self:
        """Read EGRESS_ALLOW: networks ("10.0.0.0/8"), addresses ("::1") and host names ("*.corp.example")."""
        networks: list[Network] = []
        hosts: set[str] = set()
        for entry in (text.strip() for text in allow):
            try:
                networks.append(ip_network(entry.strip("[]"), strict=False))
            except ValueError:
                hosts.add(_host_entry(entry))
        return cls(allow_private=allow_private, networks=tuple(networks), hosts=frozenset(hosts))

    def refusal(self, address: Address, host: str | None = None) -> str | None:
        """Why this address may not be connected to; None: it may. `host` is the name it was resolved from."""
        kind, reached = zone(address), bare(address)
        if kind is Zone.PUBLIC:
            return None
        if kind is not Zone.NEVER:
            if any(reached in network for network in self.networks if network.version == reached.version):
                return None
            if any(address in network for network in self.networks if network.version == address.version):
                return None
            if kind is Zone.PRIVATE and (self.allow_private or (host is not None and self._lists(host))):
                return None
        advice = "" if kind is Zone.NEVER else ", and EGRESS_ALLOW does not list it"
        written = str(address) if address == reached else f"{address} ({reached})"
        return f"{written} is {kind.value}{advice}"

    def _lists(self, host: str) -> bool:
        name = host.lower().rstrip(".")
        if name in self.hosts:
            return True
        labels = name.split(".")
        return any("*." + ".".join(labels[start:]) in self.hosts for start in range(1, len(labels)))


def _host_entry(entry: str) -> str:
    name = entry.lower().rstrip(".")
    labels = name.removeprefix("*.").split(".")
    fits = all(label and len(label) < 64 and label.replace("-", "a").replace("_", "a").isalnum() for label in labels)
    if not fits or not name.isascii() or labels[-1].isdecimal():
        raise SettingsError(
            f"EGRESS_ALLOW: {entry!r} is neither a network (10.0.0.0/8), an address nor a host name (*.corp.example)"
        )
    return name
