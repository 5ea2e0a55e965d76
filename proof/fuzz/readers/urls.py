"""The URL of a webhook: what is judged is what is connected to, and nothing of it can break the request apart."""

from __future__ import annotations

import random
import socket
from ipaddress import ip_address

from onthedot.model.address_literal import literal
from onthedot.model.targets.webhook import url_problem
from onthedot.model.webhook_url import read_place
from onthedot.targets.webhook.addresses import zone
from onthedot.targets.webhook.destination import place_of, split_url
from proof.fuzz.reader import Reader, Wrong

__all__ = ["URLS"]


def check(raw: bytes, _: random.Random) -> bool:
    text = raw.decode("utf-8", "surrogatepass" if raw.isascii() else "replace")
    read_place.cache_clear()
    problem = url_problem(text)
    try:
        named, path = split_url(text)
        place = place_of.__wrapped__(named)
    except ValueError:
        if problem is None:
            raise Wrong(f"{text!r} is accepted for a job, and can't be called") from None
        return False
    host, address = place.origin[1], place.address
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        found = []
    reached = {ip_address(str(where[0]).partition("%")[0]) for *_, where in found}
    if address is None and (reached or literal(host) is not None):
        raise Wrong(f"{host!r} was judged as a name, the resolver reads {reached}")
    if address is not None:
        if reached and reached != {ip_address(str(address).partition("%")[0])}:
            raise Wrong(f"{host!r} was judged as {address}, the resolver reads {reached}")
        zone(address)
    written = host + place.host + path + (place.authorization or "").replace(" ", "")
    if not host.isascii() or any(character <= " " for character in written):
        raise Wrong(f"not to be written into a request: {host!r} {place.host!r} {path!r}")
    if not path.startswith("/") or not path.isascii():
        raise Wrong(f"path {path!r}")
    if not 0 < place.origin[2] < 65536:
        raise Wrong(f"port {place.origin[2]}")
    again = place_of.__wrapped__(f"http{'s' if place.origin[0] else ''}://{place.host}")
    if (again.origin[1].rstrip("."), again.origin[2]) != (host.rstrip("."), place.origin[2]):
        raise Wrong(f"{place.host!r} in the request means {again.origin}, connected is {place.origin}")
    return True


URLS = Reader(
    "urls",
    check,
    (
        b"https://example.com/hook?a=b&c=d#f",
        b"http://127.0.0.1:8080/",
        b"http://2130706433/",
        b"http://0x7f.1/",
        b"http://0177.0.0.1/a%20b",
        b"http://[::ffff:7f00:1]:99/x",
        b"http://[fe80::1%25eth0]/",
        b"http://user:pass@host.example:8443/p;q",
        "http://bücher.example/ü?ü".encode(),
        b"HTTP://EXAMPLE.com./../a//b",
        b"http://xn--bcher-kva.example:80",
    ),
    (
        b"http://", b"https://", b"//", b"@", b":", b"/", b"\\", b"?", b"#", b"%", b"%00", b"%2e", b"%40", b"[",
        b"]", b"::", b"::1", b"::ffff:",
        b"127.0.0.1", b"0x", b"localhost", b".", b"..", b"10.0.0.1", b"169.254.169.254", b"\xe3\x80\x82",
        b"\xef\xbc\x8e",
        b"\xe2\x91\xa0", b"\xc3\x9f", b"xn--", b"\xc2\xad", b"1e3", b"0b1", b"_", b"-",
    ),
)  # fmt: skip
