"""What a webhook's answer means. Pure.

2xx is done; 408, 425, 429 and 5xx are tried again, as Retry-After says if it does; everything else is failed at once:
a receiver that redirects or refuses will do so again.
"""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from onthedot.model.duration import DAY
from onthedot.model.run import Outcome

__all__ = ["classify", "retry_after_ms", "snippet"]

SNIPPET = 2048
_RETRYABLE = frozenset({408, 425, 429})


def classify(
    status: int, response: str, *, retry_after: str | None = None, location: str | None = None, now_ms: int = 0
) -> Outcome:
    detail: dict[str, Any] = {"status_code": status}
    if response:
        detail["response"] = response
    if 200 <= status < 300:
        return Outcome(kind="ok", detail=detail)
    error = f"the receiver returned {_named(status)}"
    if 300 <= status < 400 and location:
        error += f" to {location[:500]}; redirects are not followed"
    if status in _RETRYABLE or status >= 500:
        wait = retry_after_ms(retry_after, now_ms)
        return Outcome(kind="error", retryable=True, error=error, retry_after_ms=wait, detail=detail)
    return Outcome(kind="error", error=error, detail=detail)


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def retry_after_ms(header: str | None, now_ms: int) -> int | None:
    """Retry-After in milliseconds: seconds or a date, between now and a day ahead. None: absent or unreadable."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdecimal():
        return min(int(text[:9]) * 1000, DAY) if len(text) <= 9 else DAY
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max(0, int(moment.timestamp() * 1000) - now_ms), DAY)


def snippet(raw: bytes) -> str:
    """The beginning of an answer as text that any store and any page can hold."""
    text = raw[:SNIPPET].decode("utf-8", errors="replace")
    return text.replace("\x00", "�")
