"""The URL of a webhook: read once, strictly, with its host in the one notation that is connected to."""

from __future__ import annotations

from functools import lru_cache

from yarl import URL

from onthedot.targets.address import Address, literal

__all__ = ["read_url"]

ACCEPTED = "an absolute http or https URL"


@lru_cache(maxsize=4096)
def read_url(text: str) -> tuple[URL, Address | None]:
    """The URL and, if its host spells out an address, that address. ValueError says what is wrong with it.

    An address in an odd notation (0x7f.1) is rewritten as itself (127.0.0.1): what was judged is what gets connected.
    """
    if any(c <= " " or c == "\x7f" for c in text):
        raise ValueError("contains a space or a control character")
    scheme = text.partition(":")[0].lower()
    if scheme not in ("http", "https"):
        raise ValueError("is not an http or https URL")
    try:
        url = URL(text)
        host = url.host
    except (ValueError, UnicodeError) as error:
        raise ValueError(f"is not a URL: {error}") from None
    if not host or not url.absolute:
        raise ValueError("names no host")
    if url.port == 0:
        raise ValueError("names port 0")
    if ":" not in host and any(c in '%\\^|<>"`{}@' for c in host):
        raise ValueError("has a host with characters that no host has")
    raw = host if ":" in host else str(url.raw_host)
    address = literal(raw)
    if address is None:
        _check_name(raw)
    elif ":" not in raw and raw != str(address):
        url = url.with_host(str(address))
    return url.with_fragment(None), address


def _check_name(name: str) -> None:
    labels = name.removesuffix(".").split(".")
    if not name.isascii() or len(name) > 253 or any(not 0 < len(label) < 64 for label in labels):
        raise ValueError("has a host that is not a name of the DNS")
