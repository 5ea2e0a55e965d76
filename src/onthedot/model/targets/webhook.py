"""Webhooks: one HTTP request."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from onthedot.errors import FieldProblem
from onthedot.model.duration import SECOND, Duration
from onthedot.model.secret_text import MASK, is_secret_name, masked_url
from onthedot.model.targets.spec import Flag, TargetSpec, TargetSummary
from onthedot.model.webhook_url import cut_url, read_place

__all__ = ["WebhookTarget", "url_problem"]

ACCEPTED_URL = "an absolute http:// or https:// URL with a host, without user name or password"
SIGNED_WITH = "whsec_ and 24 to 64 bytes in base64, or a text of at least 16 characters"
MAX_HEADERS, MAX_HEADER_VALUE, MAX_URL = 100, 8192, 8192
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_OURS = re.compile(
    r"host|content-length|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect|proxy-.*"
    r"|webhook-.*|x-onthedot-.*|traceparent",
    re.IGNORECASE,
)


class WebhookTarget(TargetSpec, frozen=True, kw_only=True, tag="webhook"):
    default_timeout: ClassVar[Duration | None] = Duration(3 * SECOND)
    timeout_setting: ClassVar[str | None] = "timeout_seconds"
    writes_log: ClassVar[bool] = False
    calls_back: ClassVar[bool] = True
    flags: ClassVar[tuple[Flag, ...]] = (
        Flag("url", "Webhook: URL to call"),
        Flag("method", "Webhook: HTTP method [default: POST]"),
        Flag("headers", "Webhook: request header 'Name: value'; repeatable", ("-H", "--header")),
        Flag("body", "Webhook: request body, JSON or text"),
        Flag("secret", "Webhook: signing secret, whsec_…"),
    )

    url: Annotated[str, msgspec.Meta(max_length=8192)]
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] = "POST"
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    body: Any = None
    secret: str | None = None  # Standard Webhooks signing secret, "whsec_…"

    def level_with(self, params: Mapping[str, Any]) -> int:
        """2: the params of a webhook without a body are sent."""
        return 2 if params and self.body is None else self.level

    def problems(self) -> Iterator[FieldProblem]:
        message = url_problem(self.url)
        if message is not None:
            given = masked_url(self.url)[:200]
            yield FieldProblem(path="target.url", message=message, given=given, accepted=ACCEPTED_URL)
        if len(self.headers) > MAX_HEADERS:
            yield FieldProblem(path="target.headers", message="too many headers", accepted=f"at most {MAX_HEADERS}")
        seen: set[str] = set()
        for name, value in self.headers.items():
            yield from _header(name, value, seen)
        if self.secret is not None and self.secret != MASK and not _is_secret(self.secret):
            yield FieldProblem(path="target.secret", message="not a valid signing secret", accepted=SIGNED_WITH)

    def secret_fields(self) -> tuple[str, ...]:
        return ("secret",)

    def summary(self) -> TargetSummary:
        return TargetSummary(self.method, self.url, self.url if self.method == "POST" else f"{self.method} {self.url}")


def url_problem(url: str) -> str | None:
    """What is wrong with a webhook's URL; None if nothing is."""
    if len(url) > MAX_URL:
        return f"is longer than {MAX_URL} characters"
    try:
        place, _ = cut_url(url)
        if "@" in place:
            return "contains a user name or password; use an Authorization header instead"
        read_place(place)
    except ValueError as error:
        return str(error)
    return None


def _header(name: str, value: str, seen: set[str]) -> Iterator[FieldProblem]:
    path = f"target.headers.{name[:200]}"
    if _TOKEN.fullmatch(name) is None:
        yield FieldProblem(
            path=path, message="not a valid header name", given=name[:200], accepted="letters, digits and -"
        )
    elif _OURS.fullmatch(name):
        yield FieldProblem(path=path, message="reserved: On the Dot sets this header", accepted="any other header")
    elif name.lower() in seen:
        yield FieldProblem(
            path=path, message="duplicate header: names are case-insensitive", accepted="each header once"
        )
    seen.add(name.lower())
    if len(value) > MAX_HEADER_VALUE or _CONTROL.search(value):
        accepted = f"one line of at most {MAX_HEADER_VALUE} characters"
        given = MASK if is_secret_name(name) else value[:200]
        yield FieldProblem(path=path, message="not a valid header value", given=given, accepted=accepted)


def _is_secret(secret: str) -> bool:
    if not secret.startswith("whsec_"):
        return len(secret) >= 16
    try:
        return 24 <= len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) <= 64
    except (binascii.Error, ValueError):
        return False
