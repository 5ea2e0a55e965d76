"""Responses to what never becomes a request, encoded once."""

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


NOT_HTTP = _written(HTTPStatus.BAD_REQUEST, "bad-request", "malformed HTTP request")
HEAD_TOO_LARGE = _written(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "headers-too-large", "the request line and headers exceed 64 KiB"
)
CROWDED = _written(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "headers-too-large", "the request has more than 256 headers"
)
TRAILERS_TOO_LARGE = _written(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "headers-too-large",
    "trailers, chunk sizes and chunk extensions exceed 64 KiB and eight times the size of the data",
)
FULL = _written(
    HTTPStatus.SERVICE_UNAVAILABLE, "busy", "too many connections, or too much unprocessed data", "retry-after: 1"
)
