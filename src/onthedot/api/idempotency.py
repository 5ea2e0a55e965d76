"""Idempotency-Key: a POST that is sent again because its answer got lost must not act twice."""

from __future__ import annotations

from onthedot.api.operations import Req
from onthedot.errors import Invalid

__all__ = ["LONGEST_KEY", "idempotency_key"]

LONGEST_KEY = 200


def idempotency_key(request: Req) -> str | None:
    """The header's value, or None if it was not sent."""
    key: str | None = request.headers.get("idempotency-key")
    if key is None:
        return None
    if len(key) > LONGEST_KEY or not key.isascii() or not key.isprintable() or not key.strip():
        raise Invalid.one(
            "Idempotency-Key",
            "not accepted",
            given=key[:200],
            accepted=f"1 to {LONGEST_KEY} printable ASCII characters",
        )
    return key
