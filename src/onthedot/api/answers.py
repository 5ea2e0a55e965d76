"""Good answers: encoded once, straight from the view."""

from __future__ import annotations

from typing import Any

from litestar.response.base import ASGIResponse

from onthedot.model.decoding import encode_json
from onthedot.model.job import JobView

__all__ = ["html", "job_answer", "json", "no_content", "plain", "redirect"]


def json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> ASGIResponse:
    return ASGIResponse(body=encode_json(value), status_code=status, media_type="application/json", headers=headers)


def job_answer(job: JobView, status: int = 200, headers: dict[str, str] | None = None) -> ASGIResponse:
    """A job with its version as the ETag."""
    return json(job, status, {"etag": f'"{job.version}"', **(headers or {})})


def no_content() -> ASGIResponse:
    return ASGIResponse(status_code=204)


def plain(text: str | bytes, media: str = "text/plain", status: int = 200) -> ASGIResponse:
    return ASGIResponse(body=text, status_code=status, media_type=media)


def html(text: str, status: int = 200, headers: dict[str, str] | None = None) -> ASGIResponse:
    return ASGIResponse(body=text, status_code=status, media_type="text/html", headers=headers)


def redirect(to: str, headers: dict[str, str] | None = None) -> ASGIResponse:
    return ASGIResponse(status_code=303, media_type="text/plain", headers={"location": to, **(headers or {})})
