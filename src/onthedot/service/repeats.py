"""What a repeat of a request is recognised by: its key, and a fingerprint of what was asked.

The fingerprint is of what the client sent, not of what we make of it: a release that knows one field more, or another
default, must recognise what the release before it was asked. It lives for a day, and across upgrades.
"""

from __future__ import annotations

import hashlib

import msgspec

from onthedot.model.decoding import encode_json
from onthedot.store import Idempotency

__all__ = ["FORM", "Idempotency", "IdempotencyKey", "Repeat", "canonical", "fingerprint", "idempotency"]

FORM = "2"
"""Which way of writing fingerprints this is; a test holds it to what it was. (The first had no name, and changed with
every field that a job learned.)"""


class Repeat(msgspec.Struct, frozen=True):
    """An Idempotency-Key and the body that came with it, as it was sent."""

    key: str
    sent: bytes = b""


IdempotencyKey = Repeat | str | Idempotency
"""A caller in this process gives the key alone: what it asks for is then what it passed. Or it gives the fingerprint
too, where what was asked is more than what it passes."""


def idempotency(verb: str, key: IdempotencyKey | None, *named: int | str, body: object = None) -> Idempotency | None:
    """`named`: what the address said besides. The verb is part of it: one key can't answer for two kinds of request."""
    if key is None or isinstance(key, Idempotency):
        return key
    if isinstance(key, str):
        key = Repeat(key, encode_json(body))
    return Idempotency(key.key, fingerprint(verb, canonical(key.sent), *named))


def fingerprint(verb: str, sent: bytes, *named: int | str) -> str:
    address = "/".join([verb, *map(str, named)])
    return f"{FORM}:{hashlib.sha256(address.encode() + bytes(1) + sent).hexdigest()}"


def canonical(sent: bytes) -> bytes:
    """The same for all ways to write the same JSON; what is no JSON stands for itself."""
    try:
        return msgspec.json.encode(msgspec.json.decode(sent), order="deterministic")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return sent
