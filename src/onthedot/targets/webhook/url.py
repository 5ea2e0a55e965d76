"""The URL of a webhook: read once, strictly, with its host in the one notation that is connected to."""

from __future__ import annotations

import re

from yarl import URL

from onthedot.targets.webhook.addresses import Address, literal

__all__ = ["is_localhost", "read_url"]

_IN_NAMES = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
_ZONE = re.compile(r"[A-Za-z0-9._~-]{1,64}")
ACCEPTED = "an absolute http or https URL"


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
    except (ValueError, IndexError) as error:  # the latter is yarl's for an empty host after brackets
        raise ValueError(f"is not a URL: {error}") from None
    if not host or not url.absolute:
        raise ValueError("names no host")
    if url.port == 0:
        raise ValueError("names port 0")
    raw = host if ":" in host else str(url.raw_host).lower()
    address = literal(raw)
    if "%" in raw and not _ZONE.fullmatch(raw.partition("%")[2]):
        raise ValueError("has a zone that is not the name of an interface")
    if address is None:
        _check_name(raw)
        if raw != url.raw_host:  # beside a name that is not ASCII, capitals are left standing
            url = url.with_host(raw)
    elif ":" not in raw and raw != str(address):
        url = url.with_host(str(address))
    return url.with_fragment(None), address


def is_localhost(name: str) -> bool:
    """Names that mean this machine wherever they are asked for (RFC 6761), so that they can be judged unresolved."""
    plain = name.lower().removesuffix(".")
    return plain == "localhost" or plain.endswith(".localhost")


def _check_name(name: str) -> None:
    labels = name.removesuffix(".").split(".")
    if len(name) > 253 or any(not 0 < len(label) < 64 or not _IN_NAMES.issuperset(label) for label in labels):
        raise ValueError("has a host that is not a name of the DNS")
