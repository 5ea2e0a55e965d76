"""Pings: how a job that runs elsewhere reports, and the token of the URL at which it does.

The token names the job and proves that we made it (an HMAC under the secret of the installation). So an unknown one is
refused without a look into the store, in the same time whatever it says.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Literal

import msgspec

__all__ = ["KEPT_PINGS", "LONGEST_BODY", "Ping", "PingSignal", "job_of_token", "ping_path", "ping_token"]

PingSignal = Literal["success", "start", "fail", "log"]

KEPT_PINGS = 20
LONGEST_BODY = 65_536
"""Characters of a report that are kept, the last ones: as of every log."""

_MAC = 16
_LENGTH = 8 + _MAC


class Ping(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One report. `run_id`: the run that it was for; `late_for`: the run that had been missed before it came; neither:
    it came early, or the run had been reported already. `message`: the beginning of what it said."""

    at: str
    signal: PingSignal
    run_id: str | None = None
    late_for: str | None = None
    exit_status: int | None = None
    message: str | None = None
    rid: str | None = None


def ping_token(secret: str, job_id: int) -> str:
    """32 characters, for a URL."""
    named = job_id.to_bytes(8, "big", signed=True)
    return base64.urlsafe_b64encode(named + _mac(secret, named)).decode()


def job_of_token(secret: str, token: str) -> int | None:
    """The job whose token this is; None: it is none of ours. Takes the same time for every text of the right length."""
    try:
        given = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        given = b""
    given = given if len(given) == _LENGTH else bytes(_LENGTH)
    named, mac = given[:8], given[8:]
    return int.from_bytes(named, "big", signed=True) if hmac.compare_digest(_mac(secret, named), mac) else None


def ping_path(token: str) -> str:
    return f"/ping/{token}"


def _mac(secret: str, named: bytes) -> bytes:
    return hmac.digest(secret.encode(), b"ping " + named, hashlib.sha256)[:_MAC]
