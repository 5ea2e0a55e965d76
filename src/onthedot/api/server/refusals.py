"""Answers to what never becomes a request, written out once."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

__all__ = ["CROWDED", "FULL", "HEAD_TOO_LARGE", "NOT_HTTP", "TRAILERS_TOO_LARGE"]


def _written(status: HTTPStatus, name: str, detail: str, *headers: str) -> bytes:
    problem = {"type": f"urn:onthedot:problem:{name}", "title": status.phrase, "status": status.value, "detail": detail}
    body = msgspec.json.encode(problem)
    lines = (
        f"HTTP/1.1 {status.value} {status.phrase}",
        "content-type: application/problem+json",
        f"content-length: {len(body)}",
        *headers,
        "connection: close",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


NOT_HTTP = _written(HTTPStatus.BAD_REQUEST, "bad-request", "not valid HTTP")
HEAD_TOO_LARGE = _written(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "headers-too-large", "the request line and headers are over 64 KiB"
)
CROWDED = _written(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "headers-too-large", "there are more than 256 headers")
TRAILERS_TOO_LARGE = _written(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "headers-too-large",
    "trailers, chunk sizes and chunk extensions are over 64 KiB and eight times what they carry",
)
FULL = _written(
    HTTPStatus.SERVICE_UNAVAILABLE, "busy", "too many connections, or too much that waits on them", "retry-after: 1"
)
