"""Where a request goes and how it begins: all that follows from the URL alone, worked out once per URL."""

from __future__ import annotations

import base64
from functools import lru_cache

import msgspec

from onthedot.targets.address import Address
from onthedot.targets.connection import Origin
from onthedot.targets.url import read_url

__all__ = ["Route", "route_of"]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    origin: Origin
    address: Address | None
    """What the host spells out; None if it is a name."""
    path: str
    host: str
    """As the receiver reads it: without the port that goes without saying."""
    authorization: str | None


@lru_cache(maxsize=4096)
def route_of(url: str) -> Route:
    """ValueError says what is wrong with the URL."""
    read, address = read_url(url)
    assert read.host is not None
    assert read.port is not None
    host = read.host if address is not None else str(read.raw_host)
    return Route(
        origin=(read.scheme == "https", host, read.port),
        address=address,
        path=read.raw_path_qs or "/",
        host=str(read.host_port_subcomponent),
        authorization=_basic(read.user, read.password),
    )


def _basic(user: str | None, password: str | None) -> str | None:
    if user is None and password is None:
        return None
    return "Basic " + base64.b64encode(f"{user or ''}:{password or ''}".encode()).decode()
