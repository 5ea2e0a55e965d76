"""Good answers: encoded once, straight from the view."""

from __future__ import annotations

from typing import Any

from litestar.response.base import ASGIResponse
from litestar.types import Receive, Scope, Send

from onthedot.model.decoding import encode_json
from onthedot.model.job import JobView

__all__ = ["Json", "html", "job_answer", "json", "no_content", "plain", "redirect"]

_JSON = (b"content-type", b"application/json")


class Json(ASGIResponse):
    """The framework's own, made by hand: its constructor takes as long as all of a create's checks together."""

    __slots__ = ("given",)

    def __init__(self, body: bytes, status: int, headers: dict[str, str] | None) -> None:
        self.body = body
        self.status_code = status
        self.given = headers or {}

    def encode_headers(self) -> list[tuple[bytes, bytes]]:
        lines = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in self.given.items()]
        return [*lines, _JSON, (b"content-length", str(len(self.body)).encode())]

    def lines(self) -> bytes:
        """The headers as they are written."""
        given = "".join([f"{name}: {value}\r\n" for name, value in self.given.items()])
        return f"{given}content-type: application/json\r\ncontent-length: {len(self.body)}\r\n".encode("latin-1")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.encode_headers()})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


def json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> ASGIResponse:
    return Json(encode_json(value), status, headers)


def job_answer(job: JobView, status: int = 200, headers: dict[str, str] | None = None) -> ASGIResponse:
    """A job with its version as the ETag."""
    return json(job, status, {"etag": f'"{job.version}"', **(headers or {})})


def no_content() -> ASGIResponse:
    return ASGIResponse(status_code=204)


def plain(text: str | bytes, media: str = "text/plain", status: int = 200) -> ASGIResponse:
    return ASGIResponse(body=text, status_code=status, media_type=media)


def html(text: str | bytes, status: int = 200, headers: dict[str, str] | None = None) -> ASGIResponse:
    return ASGIResponse(body=text, status_code=status, media_type="text/html", headers=headers)


def redirect(to: str, headers: dict[str, str] | None = None) -> ASGIResponse:
    return ASGIResponse(status_code=303, media_type="text/plain", headers={"location": to, **(headers or {})})
