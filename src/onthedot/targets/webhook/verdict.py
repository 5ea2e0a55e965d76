"""What a webhook's answer means. Pure.

2xx is done; 408, 425, 429 and 5xx are tried again, as Retry-After says if it does; everything else is failed at once:
a receiver that redirects or refuses will do so again. 410 also pauses the job. So does the header `webhook-delivery:
disable`, whatever the status; with `abort-message` a failed run is not tried again.
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
DISABLE, ABORT = "disable", "abort-message"
"""What a receiver may ask for in the header `webhook-delivery` of its answer."""
_RETRYABLE = frozenset({408, 425, 429})


def classify(
    status: int,
    response: str,
    *,
    retry_after: str | None = None,
    location: str | None = None,
    delivery: str | None = None,
    now_ms: int = 0,
) -> Outcome:
    detail: dict[str, Any] = {"status_code": status}
    if response:
        detail["response"] = response
    wish = None if delivery is None else delivery.strip().lower()
    parks = "the receiver asked for no more calls (webhook-delivery: disable)" if wish == DISABLE else None
    if 200 <= status < 300:
        return Outcome(kind="ok", parks=parks, detail=detail)
    error = f"the receiver returned {_named(status)}"
    if 300 <= status < 400 and location:
        error += f" to {location[:500]}; redirects are not followed"
    if parks is not None:
        error += " and asked for no more calls (webhook-delivery: disable)"
        return Outcome(kind="error", error=error, parks=parks, detail=detail)
    if status == HTTPStatus.GONE:
        return Outcome(kind="error", error=error, parks=error, detail=detail)
    if wish == ABORT:
        error += " and asked not to be called again for this run (webhook-delivery: abort-message)"
        return Outcome(kind="error", error=error, detail=detail)
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
