"""What a webhook sends: body and headers of contract section 6. Pure.

The body is the job's: an object, list, number or boolean goes out as JSON, text as text (`text/plain`), no body as
an empty one (a timer POSTs nothing: all there is to know is in the headers). A `content-type` among the job's headers
wins.
"""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot.model.instant import format_instant
from onthedot.model.target import WebhookTarget
from onthedot.targets.call import Call
from onthedot.targets.signature import sign, traceparent

__all__ = ["body_of", "headers_of"]


def body_of(body: Any) -> tuple[bytes, str | None]:
    """The bytes and their content type."""
    if body is None:
        return b"", None
    if isinstance(body, str):
        return body.encode(), "text/plain; charset=utf-8"
    return msgspec.json.encode(body), "application/json"


def headers_of(
    call: Call, target: WebhookTarget, body: bytes, content_type: str | None, *, agent: str, now_ms: int
) -> dict[str, str]:
    """The job's headers over the defaults, ours over the job's."""
    headers = {"user-agent": agent, "accept": "*/*", "accept-encoding": "identity"}
    if content_type is not None:
        headers["content-type"] = content_type
    for name, value in target.headers.items():
        headers[name.lower()] = value
    timestamp = now_ms // 1000
    headers["webhook-id"] = call.run_id
    headers["webhook-timestamp"] = str(timestamp)
    if target.secret is not None:
        headers["webhook-signature"] = sign(target.secret, call.run_id, timestamp, body)
    headers["x-onthedot-job"] = str(call.job_id)
    headers["x-onthedot-scheduled-for"] = format_instant(call.slot)
    headers["x-onthedot-attempt"] = str(call.attempt)
    headers["traceparent"] = traceparent(call.run_id, call.attempt)
    return headers
