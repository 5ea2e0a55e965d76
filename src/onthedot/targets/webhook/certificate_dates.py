"""Until when a certificate is valid. Just as much of DER as that takes: no library that is installed reads it."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime

__all__ = ["valid_until"]

_UTC_TIME, _GENERALIZED_TIME, _VERSION = 0x17, 0x18, 0xA0
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def valid_until(pem: str) -> datetime:
    """Of the first certificate in this text. ValueError: there is none that can be read."""
    start, end = pem.find(_BEGIN), pem.find(_END)
    if start < 0 or end < start:
        raise ValueError("contains no certificate")
    try:
        return _not_after(ssl.PEM_cert_to_DER_cert(pem[start : end + len(_END)]))
    except (ValueError, IndexError) as error:
        raise ValueError(f"not a certificate: {error}") from None


def _not_after(der: bytes) -> datetime:
    """Certificate → its signed part → version (left out in the oldest), serial number, signature, issuer, validity."""
    _, certificate, _ = _element(der)
    _, signed, _ = _element(certificate)
    tag, _, rest = _element(signed)
    for _ in range(3 if tag == _VERSION else 2):
        _, _, rest = _element(rest)
    _, validity, _ = _element(rest)
    _, _, rest = _element(validity)
    tag, text, _ = _element(rest)
    if tag == _UTC_TIME:  # two digits of the year: up to 49 is this century
        text = (b"20" if text[:2] < b"50" else b"19") + text
    elif tag != _GENERALIZED_TIME:
        raise ValueError("no expiry date")
    return datetime.strptime(text.decode("ascii"), "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _element(der: bytes) -> tuple[int, bytes, bytes]:
    """The tag and content of the first element, and what follows it."""
    tag, length, at = der[0], der[1], 2
    if length & 0x80:
        at += length & 0x7F
        length = int.from_bytes(der[2:at])
    if len(der) < at + length:
        raise ValueError("it is truncated")
    return tag, der[at : at + length], der[at + length :]
