"""Signing, after the Standard Webhooks specification: `v1,` + base64(HMAC-SHA256(secret, "id.timestamp.body")).

The receiver verifies with any Standard Webhooks library; the id is the run's, the same on every attempt, so that a
receiver that remembers ids sees exactly one effect. While a secret is changed there are two signatures, separated by a
space: a receiver that has either of the secrets accepts.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from functools import lru_cache

__all__ = ["read_secret", "sign"]

_PREFIX = "whsec_"


@lru_cache(maxsize=1024)
def read_secret(secret: str) -> bytes:
    """The key: base64 after "whsec_", as Standard Webhooks libraries read it (they read it so without the prefix too);
    a text that is no base64 is the key itself."""
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return secret.encode()


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    signed = f"{message_id}.{timestamp}.".encode() + body
    mac = _keyed(secret).copy()
    mac.update(signed)
    return "v1," + base64.b64encode(mac.digest()).decode()


@lru_cache(maxsize=1024)
def _keyed(secret: str) -> hmac.HMAC:
    """With the key mixed in already: 1.5 µs instead of 2.3 for each message."""
    return hmac.new(read_secret(secret), digestmod=hashlib.sha256)
