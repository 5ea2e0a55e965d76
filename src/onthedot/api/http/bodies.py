"""Request bodies: read within a limit and a deadline, whatever the headers promise, and decoded strictly."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

from starlette.requests import Request

from onthedot.api.context import context_of, service_of
from onthedot.api.http.client_connection import asked_again
from onthedot.api.http.problems import HttpProblem
from onthedot.api.operations import Operation, operation_of
from onthedot.errors import Invalid, TooLarge, Unreadable
from onthedot.model.decoding import decode_json
from onthedot.model.portions import check_values
from onthedot.model.struct import Strict
from onthedot.service.aside import SMALL_BYTES

__all__ = [
    "BODY",
    "NDJSON_MEDIA",
    "EmptyBody",
    "decode_large",
    "media_of",
    "read_body",
    "read_bytes",
    "read_json",
    "read_optional_json",
    "sent_with",
]

T = TypeVar("T")
READ_SECONDS = 30.0
SMALL = 64 * 1024  # not worth the counting
BODY = "onthedot.body"
"""Where a request's scope has its body, once it was read."""
NDJSON_MEDIA = ("application/x-ndjson", "application/jsonl", "application/x-jsonlines")
# What tools send when nobody told them: curl -d says urlencoded, fetch() says text/plain. The body is JSON anyway.
_UNSPOKEN = ("", "application/x-www-form-urlencoded", "text/plain", "application/octet-stream")


class EmptyBody(Strict, frozen=True):
    """No body, or an empty object."""


async def read_json(request: Request, kind: type[T]) -> T:
    return await _decoded(request, await read_body(request), kind)


async def read_optional_json(request: Request, kind: type[T]) -> T:
    """The same, but no body at all means `{}`."""
    return await _decoded(request, await read_body(request) or b"{}", kind)


async def _decoded(request: Request, raw: bytes, kind: type[T]) -> T:
    """A large one beside the loop."""
    if len(raw) <= SMALL_BYTES:
        return decode_json(raw, kind)
    return await service_of(request).aside.run(decode_large, raw, kind)


def decode_large(raw: bytes, kind: type[T]) -> T:
    check_values(raw)
    return decode_json(raw, kind)


async def read_body(request: Request) -> bytes:
    """The whole body, or an error as soon as it is known to be too large, too slow or of an unsupported type."""
    declared = operation_of(request)
    headers = request.headers
    _check_media(headers.get("content-type", ""), declared.media)
    if headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        raise HttpProblem(
            415,
            "compressed request bodies are not supported; send the body uncompressed",
            {"accept-encoding": "identity"},
        )
    length = headers.get("content-length", "")
    if length.isdecimal() and (len(length) > 15 or int(length) > declared.limit):
        raise _too_large(declared)
    return await _received(request, declared)


async def _received(request: Request, declared: Operation) -> bytes:
    body: bytes | None = request.scope.get(BODY)
    if body is not None:  # it came with the head
        return body
    try:
        async with context_of(request).clock.timeout(READ_SECONDS):
            body = await _collect(request, declared)
    except TimeoutError:
        raise HttpProblem(
            408, f"the request body was not received within {READ_SECONDS:.0f} s", {"connection": "close"}
        ) from None
    asked_again()
    request.scope[BODY] = body
    return body


async def read_bytes(request: Request) -> bytes:
    """The whole body, of whatever type it says it is: for what is only kept, and never decoded."""
    declared = operation_of(request)
    length = request.headers.get("content-length", "")
    if length.isdecimal() and (len(length) > 15 or int(length) > declared.limit):
        raise _too_large(declared)
    return await _received(request, declared)


def sent_with(request: Request) -> bytes:
    """The body that was read, as it was sent; empty if none was."""
    body: bytes = request.scope.get(BODY, b"")
    return body


async def _collect(request: Request, declared: Operation) -> bytes:
    scope = request.scope
    bodies = context_of(request).bodies
    tenant = scope["principal"].tenant if "principal" in scope else 0
    parts: list[bytes] = []
    size = 0
    while True:
        message: Any = await request.receive()
        if message["type"] == "http.disconnect":
            raise Unreadable("the connection was closed before the request body was complete")
        part = message.get("body", b"")
        size += len(part)
        if size > declared.limit:
            raise _too_large(declared)
        if size > SMALL:
            if not bodies.more(tenant, len(part)):
                raise HttpProblem(
                    503, "too many large request bodies at the same time", {"retry-after": "2", "connection": "close"}
                )
            _, before = scope.get("large_body", (tenant, 0))
            scope["large_body"] = tenant, before + len(part)  # the middleware gives it back
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(declared: Operation) -> TooLarge:
    return TooLarge(f"the request body exceeds the limit of {declared.limit // 1024} KiB")


@lru_cache(256)
def media_of(content_type: str) -> tuple[str, str]:
    """("application/json", "utf-8"): the media type and the charset, lowercased; "" where not given."""
    media, _, rest = content_type.partition(";")
    charset = next(
        (p.partition("=")[2] for p in rest.split(";") if p.partition("=")[0].strip().lower() == "charset"), ""
    )
    return media.strip().lower(), charset.strip().strip('"').lower()


def _check_media(content_type: str, accepted: tuple[str, ...]) -> None:
    media, charset = media_of(content_type[:500])
    if media not in accepted and media not in _UNSPOKEN:
        raise HttpProblem(
            415,
            f"unsupported media type {media[:100]!r}; send {' or '.join(accepted)}",
            {"accept": ", ".join(accepted)},
        )
    if charset not in ("", "utf-8", "utf8", "us-ascii"):
        raise HttpProblem(415, f"unsupported charset {charset[:50]!r}; JSON is UTF-8")


def required_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Invalid.one("$", "must be an object", accepted="an object with the fields to change")
    return value
