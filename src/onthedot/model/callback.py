"""The address at which the receiver of a call tells later how it ended. Pure.

Its token is a MAC of the run and the try under a secret that all nodes of an installation share: nothing is stored for
it, every send of a try carries the same one, and it is the only credential that a callback needs.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import Annotated, Any, Literal

import msgspec

from onthedot.model.struct import Strict

__all__ = ["Completion", "Progress", "callback_token", "callback_url", "installation_id", "run_and_token", "try_named"]

_MAC = 24  # bytes
_URL = re.compile(r"/v1/runs/([0-9a-z-]+)/complete\?token=([0-9A-Za-z._-]+)\Z", re.ASCII)
_TOKEN = re.compile(r"([1-9][0-9]{0,8})\.([A-Za-z0-9_-]{32})", re.ASCII)


class Completion(Strict, frozen=True, kw_only=True):
    """How the work of a run ended. `retryable` (default true): whether a failed one is tried again, as the job's policy
    says."""

    status: Literal["done", "failed"]
    retryable: bool | None = None
    result: Any = None
    error: Annotated[str, msgspec.Meta(max_length=2000)] | None = None


class Progress(Strict, frozen=True, kw_only=True):
    """How far the work of a run has got."""

    percent: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    message: Annotated[str, msgspec.Meta(max_length=500)] | None = None


def installation_id(secret: str) -> str:
    """The name of the installation that has this secret: the same on all its nodes, and it tells nothing of it."""
    return hmac.digest(secret.encode(), b"installation", hashlib.sha256)[:8].hex()


def callback_token(secret: str, run_id: str, try_number: int) -> str:
    mac = hmac.digest(secret.encode(), f"{run_id} {try_number}".encode(), hashlib.sha256)[:_MAC]
    return f"{try_number}.{base64.urlsafe_b64encode(mac).decode()}"


def try_named(secret: str, run_id: str, token: str) -> int | None:
    """The try that this token speaks of; None: it is none of ours."""
    match = _TOKEN.fullmatch(token)
    if match is None:
        return None
    try_number = int(match[1])
    return try_number if hmac.compare_digest(callback_token(secret, run_id, try_number), token) else None


def callback_url(base: str, run_id: str, token: str) -> str:
    """`base`: where the API is reached from outside."""
    return f"{base}/v1/runs/{run_id}/complete?token={token}"


def run_and_token(url: str) -> tuple[str, str]:
    """What a callback URL says. ValueError: it is none."""
    match = _URL.search(url)
    if match is None:
        raise ValueError(f"not a callback URL: {url[:200]!r}")
    return match[1], match[2]
