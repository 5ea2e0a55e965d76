"""IP addresses as hosts may spell them. Pure.

A URL can write 127.0.0.1 as 2130706433, 0x7f.1 or 0177.0.0.1, and the system's resolver accepts all of them. So a host
is read here the way the resolver would read it.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

__all__ = ["Address", "literal"]

Address = IPv4Address | IPv6Address


def literal(host: str) -> Address | None:
    """The address a host spells out, in any notation; None if it is a name. ValueError: looks like one but is none."""
    text = host.rstrip(".") if host.endswith(".") else host
    if ":" in text:
        return ip_address(text.partition("%")[0])
    last = text.rpartition(".")[2].lower()
    if not (last.isdecimal() and last.isascii()) and not _is_hex(last):
        return None
    return _inet_aton(text)


def _is_hex(text: str) -> bool:
    return text.startswith("0x") and all(c in "0123456789abcdef" for c in text[2:])


def _inet_aton(text: str) -> IPv4Address:
    """1 to 4 numbers, decimal, octal (0…) or hexadecimal (0x…); the last one fills the bytes that are left."""
    numbers = [_number(part, text) for part in text.lower().split(".")]
    *head, tail = numbers
    if len(numbers) > 4 or any(n > 255 for n in head) or tail >= 256 ** (4 - len(head)):
        raise ValueError(f"{text!r} is not an address")
    value = tail
    for position, n in enumerate(head):
        value |= n << (8 * (3 - position))
    return IPv4Address(value)


def _number(part: str, whole: str) -> int:
    digits, base = part, 10
    if part.startswith("0x"):
        digits, base = part[2:] or "0", 16
    elif part.startswith("0") and part != "0":
        base = 8
    if not digits or any(c not in "0123456789abcdef"[:base] for c in digits):  # int() takes "1_0" and " 1"
        raise ValueError(f"{whole!r} is not an address")
    return int(digits, base)
