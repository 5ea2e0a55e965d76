"""Where a browser's request comes from: pages of other sites must not act here in the user's name."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from urllib.parse import urlsplit

__all__ = ["from_elsewhere", "host_is_loopback"]


@lru_cache(maxsize=64)
def host_is_loopback(host: str) -> bool:
    """Is the Host header a name of this machine itself? (A rebound DNS name is not, wherever it points.)"""
    if "@" in host:
        return False
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        return name == "localhost" or name.endswith(".localhost") or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=64)
def from_elsewhere(origin: str | None, host: str | None, fetch_site: str | None) -> bool:
    """Did a page of another origin send this? Programs send neither header, and are not browsers."""
    if origin is not None:
        try:
            return urlsplit(origin).netloc.lower() != (host or "").lower()
        except ValueError:
            return True
    return fetch_site not in (None, "same-origin", "none")
