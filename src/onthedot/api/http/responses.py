"""Responses of the API and of the pages: encoded once, straight from the view."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from onthedot.model.decoding import encode_json
from onthedot.model.job import JobView

__all__ = [
    "HttpResponse",
    "bundle_answer",
    "event_stream",
    "html",
    "job_answer",
    "json",
    "no_content",
    "plain",
    "redirect",
]

NO_BODY = (204, 304)


class HttpResponse:
    """A complete response. Starlette's own takes as long to construct as all checks of a create together."""

    __slots__ = ("body", "headers", "media", "status")

    def __init__(
        self, body: bytes, status: int = 200, headers: dict[str, str] | None = None, media: str = "application/json"
    ) -> None:
        self.body = body
        self.status = status
        self.headers = headers or {}
        self.media = media

    def header_lines(self) -> bytes:
        """The headers as they are written."""
        given = "".join([f"{name}: {value}\r\n" for name, value in self.headers.items()])
        if self.status in NO_BODY:
            return given.encode("latin-1")
        return f"{given}content-type: {self.media}\r\ncontent-length: {len(self.body)}\r\n".encode("latin-1")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in self.headers.items()]
        if self.status not in NO_BODY:
            headers.append((b"content-type", self.media.encode("latin-1")))
            headers.append((b"content-length", str(len(self.body)).encode()))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


def json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> HttpResponse:
    return HttpResponse(encode_json(value), status, headers)


def bundle_answer(bundle: dict[str, Any], name: str) -> HttpResponse:
    """An incident bundle as a file: indented, since people read it."""
    text = msgspec.json.format(encode_json(bundle), indent=2)
    return HttpResponse(text, headers={"content-disposition": f'attachment; filename="onthedot-{name}.json"'})


def job_answer(job: JobView, status: int = 200, headers: dict[str, str] | None = None) -> HttpResponse:
    """A job with its version as the ETag."""
    return json(job, status, {"etag": f'"{job.version}"', **(headers or {})})


def no_content() -> HttpResponse:
    return HttpResponse(b"", 204)


def plain(
    text: str | bytes, media: str = "text/plain", status: int = 200, headers: dict[str, str] | None = None
) -> HttpResponse:
    """Text of any kind, in UTF-8."""
    body = text.encode() if isinstance(text, str) else text
    charset = "; charset=utf-8" if media.startswith("text/") and "charset=" not in media else ""
    return HttpResponse(body, status, headers, media + charset)


def html(text: str | bytes, status: int = 200, headers: dict[str, str] | None = None) -> HttpResponse:
    return plain(text, "text/html", status, headers)


def redirect(to: str, headers: dict[str, str] | None = None) -> HttpResponse:
    return plain(b"", status=303, headers={"location": to, **(headers or {})})


def event_stream(pieces: AsyncIterator[bytes]) -> StreamingResponse:
    """Server-sent events, until the iterator ends or the client goes."""
    return StreamingResponse(pieces, media_type="text/event-stream")
