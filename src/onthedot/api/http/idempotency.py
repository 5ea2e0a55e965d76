"""Idempotency-Key: a POST that is repeated because its response was lost must not be carried out twice."""

from __future__ import annotations

import asyncio
import hashlib

from starlette.requests import Request

from onthedot.api.http.bodies import sent_with
from onthedot.api.operations import KIB
from onthedot.errors import Invalid
from onthedot.service import Repeat

__all__ = ["LONGEST_KEY", "idempotency_key"]

LONGEST_KEY = 200
LONG_BODY = 256 * KIB
"""Above it a body counts as it was written, byte for byte: to read 16 MB of JSON and to write it again in order would
hold the loop for longer than anything may."""


async def idempotency_key(request: Request) -> Repeat | None:
    """The header's value with the body that came with it, which was read before; None if the header was not sent."""
    key: str | None = request.headers.get("idempotency-key")
    if key is None:
        return None
    if len(key) > LONGEST_KEY or not key.isascii() or not key.isprintable() or not key.strip():
        raise Invalid.one(
            "Idempotency-Key",
            "invalid value",
            given=key[:200],
            accepted=f"1 to {LONGEST_KEY} printable ASCII characters",
        )
    sent = sent_with(request)
    if len(sent) > LONG_BODY:
        sent = await asyncio.to_thread(lambda: hashlib.sha256(sent).digest())
    return Repeat(key, sent)
