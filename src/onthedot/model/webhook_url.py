"""The one grammar of webhook URLs: what is valid, what the egress rule judges and what is connected to are read here.

    http[s]://[user[:password]@]host[:port][/path][?query][#fragment]

A URL is cut at the first "/", "?" or "#" (RFC 3986). What stands before that names the place and is read by
`read_place` alone; the rest is never looked at for where to connect. A host is an IPv6 address in brackets, an IPv4
address in any notation that resolvers accept, or a name: letters of any script, encoded by IDNA. Nothing in it is
percent-decoded.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address

import msgspec

from onthedot.model.address_literal import Address, literal

__all__ = ["UrlPlace", "cut_url", "read_place"]

_NEVER = r"\x00-\x20\x7f\\\s"
_NOT_IN_URL = re.compile(f"[{_NEVER}]")
_CUT = re.compile(rf"([hH][tT][tT][pP][sS]?://[^/?#{_NEVER}]*)([^#{_NEVER}]*)(?:#[^{_NEVER}]*)?")
_HOST_PORT = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([\w.-]+))(?::([0-9]{0,5}))?")
_NAME = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?")
_LONGEST_HOST = 253


class UrlPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a URL leads. `host` is what is connected to: an address in its usual notation, or a name in lower case and
    ASCII. `address` is None for a name. `userinfo` is as it was written."""

    secure: bool
    host: str
    port: int
    address: Address | None
    userinfo: str | None

    @property
    def host_header(self) -> str:
        """As the receiver reads it: without a trailing dot, and without the port that goes without saying."""
        host = f"[{self.host}]" if ":" in self.host else self.host.removesuffix(".")
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


def cut_url(url: str) -> tuple[str, str]:
    """What names the place, and the path with the query, as written. ValueError says what is wrong with the URL."""
    cut = _CUT.fullmatch(url)
    if cut is None:
        if _NOT_IN_URL.search(url):
            raise ValueError("contains a space, a backslash or a control character")
        raise ValueError("is not an absolute http or https URL")
    return cut[1], cut[2]


@lru_cache(maxsize=4096)
def read_place(text: str) -> UrlPlace:
    """Of the first part that `cut_url` returns. ValueError says what is wrong with it."""
    scheme, _, authority = text.partition("://")
    userinfo, at, rest = authority.rpartition("@")
    found = _HOST_PORT.fullmatch(rest)
    if found is None:
        raise ValueError("has no valid host and port")
    bracketed, name, digits = found.groups()
    secure = scheme.lower() == "https"
    port = int(digits) if digits else 443 if secure else 80
    if not 0 < port < 65536:
        raise ValueError(f"has the port {port}, which is not valid")
    host = bracketed or _ascii(name)
    try:
        address = IPv6Address(bracketed) if bracketed else literal(host)
    except ValueError:
        raise ValueError("has a host that is not an address") from None
    if address is None and not (_NAME.fullmatch(host) and len(host) <= _LONGEST_HOST):
        raise ValueError("has no valid host")
    return UrlPlace(
        secure=secure,
        host=host if address is None else str(address),
        port=port,
        address=address,
        userinfo=userinfo if at else None,
    )


def _ascii(name: str) -> str:
    if name.isascii():
        return name.lower()
    if len(name) > _LONGEST_HOST:  # before it is worked on
        raise ValueError("has no valid host")
    import idna  # its tables take 10 ms to load, and few names need them

    try:
        encoded = idna.encode(name, uts46=True)
    except UnicodeError:
        try:
            encoded = name.encode("idna")
        except UnicodeError:
            raise ValueError("has no valid host") from None
    return encoded.decode("ascii").lower()
