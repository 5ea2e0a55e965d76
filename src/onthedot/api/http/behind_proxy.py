"""Behind a reverse proxy: the path under which it serves us, and who is at its other end.

A proxy may pass the prefix on or cut it off; both are understood. What a proxy says of its client (address, scheme and
host name) is believed only of the addresses that the operator trusts: anybody can send these headers.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

__all__ = ["BehindProxy"]

Header = tuple[bytes, bytes]


class BehindProxy:
    """`root`: the prefix of every path as clients see it, such as /scheduler; "" for none."""

    def __init__(self, root: str = "", trusted: Iterable[str] = ()) -> None:
        self.root = root
        self._networks = tuple(ipaddress.ip_network(each, strict=False) for each in trusted)
        self._is_trusted = lru_cache(1024)(self._look_up)

    @property
    def used(self) -> bool:
        return bool(self.root or self._networks)

    def rewrite(self, scope: Any) -> None:
        """Make the request what it would be without the proxy."""
        path: str = scope["path"]
        if self.root and (path == self.root or path.startswith(self.root + "/")):
            scope["path"] = path[len(self.root) :] or "/"
        client = scope.get("client")
        if self._networks and client is not None and self._is_trusted(str(client[0])):
            self._believe(scope)

    def rooted(self, headers: Sequence[Header]) -> Sequence[Header]:
        """Locations within this server get the prefix."""
        if not self.root:
            return headers
        return [
            (name, self.root.encode() + value if name == b"location" and value.startswith(b"/") else value)
            for name, value in headers
        ]

    def _believe(self, scope: Any) -> None:
        headers: list[Header] = scope["headers"]
        if (address := self._client(_said(headers, b"x-forwarded-for"))) is not None:
            scope["client"] = (address, 0)
        # Of several values the last: the proxy that we trust wrote it, the others may be the client's own.
        if (scheme := _said(headers, b"x-forwarded-proto")[-1].lower()) in ("http", "https"):
            scope["scheme"] = scheme
        if host := _said(headers, b"x-forwarded-host")[-1]:
            kept = [header for header in headers if header[0] != b"host"]
            scope["headers"] = [*kept, (b"host", host.encode("latin-1"))]

    def _client(self, said: list[str]) -> str | None:
        """The last address that is not one of a proxy of ours: what stands before it may be made up."""
        known = None
        for address in reversed(said):
            try:
                ipaddress.ip_address(address)
            except ValueError:
                return known
            known = address
            if not self._is_trusted(address):
                return known
        return known

    def _look_up(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:  # a Unix socket has none
            return False
        mapped = getattr(parsed, "ipv4_mapped", None)
        return any((mapped or parsed) in network for network in self._networks)


def _said(headers: list[Header], wanted: bytes) -> list[str]:
    """All values of a header, in order; one empty text if there is none."""
    values = b",".join(value for name, value in headers if name == wanted).decode("latin-1")
    return [value.strip() for value in values.split(",")]
