"""Where a request goes, read off its URL.

The part up to the path says everything about the place and is read once per place (model/webhook_url.py); the path is
taken as it is when nothing in it needs quoting. So a thousand jobs with a URL each on one host cost 2 µs a send here,
not the 60 to 110 of reading each URL anew, and the memory holds places, not URLs.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from urllib.parse import unquote

import msgspec

from onthedot.model.address_literal import Address
from onthedot.model.webhook_url import cut_url, read_place
from onthedot.targets.webhook.http1.connection import Origin
from onthedot.targets.webhook.url import sent_path

__all__ = ["Destination", "origin_text", "place_of", "split_url"]


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    origin: Origin
    address: Address | None
    """What the host spells out; None if it is a name."""
    host: str
    """As the receiver reads it: without the port that goes without saying."""
    authorization: str | None


def origin_text(named: str) -> str:
    """Scheme, host and port, however they are written: "https://example.com", "http://10.0.0.1:8080"."""
    place = read_place(named)
    return f"{'https' if place.secure else 'http'}://{place.host_header}"


def split_url(url: str) -> tuple[str, str]:
    """What names the place, and the path as it is sent. ValueError says what is wrong with the URL."""
    place, written = cut_url(url)
    return place, sent_path(written)


@lru_cache(maxsize=4096)
def place_of(text: str) -> Destination:
    """ValueError says what is wrong with it."""
    place = read_place(text)
    return Destination(
        origin=(place.secure, place.host, place.port),
        address=place.address,
        host=place.host_header,
        authorization=_basic(place.userinfo),
    )


def _basic(userinfo: str | None) -> str | None:
    if not userinfo:
        return None
    user, _, password = userinfo.partition(":")
    return "Basic " + base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
