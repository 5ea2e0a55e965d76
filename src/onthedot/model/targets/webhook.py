"""Webhooks: one HTTP request."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from onthedot.errors import FieldProblem
from onthedot.model.body_template import CALLBACK, MissingParam, body_problems, encode_body, fill, is_template
from onthedot.model.duration import SECOND, Duration
from onthedot.model.field_note import FieldNote
from onthedot.model.run_request import RunRequest, SentRun
from onthedot.model.secret_text import MASK, is_secret_name, masked_url
from onthedot.model.targets.spec import Flag, TargetSpec, TargetSummary
from onthedot.model.webhook_url import cut_url, read_place

__all__ = ["WebhookTarget", "url_problem"]

ACCEPTED_URL = "an absolute http:// or https:// URL with a host, without user name or password"
SIGNED_WITH = "whsec_ and 24 to 64 bytes in base64, or a text of at least 16 characters"
BODILESS = frozenset({"GET", "HEAD"})
MAX_HEADERS, MAX_HEADER_VALUE, MAX_URL, MAX_SECRETS = 100, 8192, 8192, 2
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
    notes: ClassVar[Mapping[str, FieldNote]] = {
        "url": FieldNote("An absolute http or https URL.", {"url": "https://example.com/hook"}),
        "method": FieldNote("The HTTP method.", {"method": "PUT"}),
        "headers": FieldNote(
            "Request headers. Values of headers such as Authorization are masked when read back.",
            {"headers": {"X-Team": "billing"}},
        ),
        "body": FieldNote(
            'JSON, or text. `{"$": "run_id"}` in place of a value stands for a value of the run. Without a body, the '
            "params are sent.",
            {"body": {"run": {"$": "run_id"}}},
        ),
        "secret": FieldNote(
            "Signs requests as Standard Webhooks does. Masked when read back.", {"secret": "at least 16 characters"}
        ),
        "certificate": FieldNote(
            "The name of a client certificate in the settings.",
            {"url": "https://example.com/hook", "certificate": "partner"},
        ),
        "secrets": FieldNote(
            "Two signing secrets while you rotate them, the new one first.",
            {"secrets": ["the new one, 16+ characters", "the old one, 16+ characters"]},
        ),
    }
    flags: ClassVar[tuple[Flag, ...]] = (
        Flag("url", "Webhook: URL to call"),
        Flag("method", "Webhook: HTTP method [default: POST]"),
        Flag("headers", "Webhook: request header 'Name: value'; repeatable", ("-H", "--header")),
        Flag("body", "Webhook: request body, JSON or text"),
        Flag("secret", "Webhook: signing secret, whsec_…"),
        Flag("certificate", "Webhook: client certificate to show, by the name in the settings"),
        Flag("secrets", "Webhook: signing secret while you rotate it, the new one first; repeatable"),
    )

    url: Annotated[str, msgspec.Meta(max_length=8192)]
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] = "POST"
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    body: Any = None
    secret: str | None = None  # Standard Webhooks signing secret, "whsec_…"
    certificate: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None  # the operator's, by name
    secrets: list[str] | None = None  # while it is changed: the new one, and the old one that receivers still have

    def level_with(self, params: Mapping[str, Any]) -> int:
        """2: the params of a webhook without a body are sent. 3: values of the run are put into its body, it may
        be signed with several secrets and show a certificate."""
        if self.secrets is not None or self.certificate is not None:
            return 3
        if self.body is None:
            return 2 if params else self.level
        return 3 if type(self.body) is not str and is_template(encode_body(self.body)) else self.level

    @property
    def signing_secrets(self) -> list[str]:
        if self.secrets is not None:
            return self.secrets
        return [] if self.secret is None else [self.secret]

    def capability(self) -> str:
        return self.type if self.certificate is None else f"{self.type}:{self.certificate}"

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
        if self.secrets is not None:
            yield from self._wrong_secrets(self.secrets)
        if self.certificate is not None and not self.url[:6].lower().startswith("https:"):
            accepted = "a certificate with an https:// URL"
            yield FieldProblem(
                path="target.certificate", message="only for https", given=self.certificate, accepted=accepted
            )

    def _wrong_secrets(self, secrets: list[str]) -> Iterator[FieldProblem]:
        if self.secret is not None:
            accepted = "secret, or secrets: [new, old]"
            yield FieldProblem(path="target.secrets", message="can't be combined with secret", accepted=accepted)
        if not 1 <= len(secrets) <= MAX_SECRETS:
            given = f"{len(secrets)} secrets"
            yield FieldProblem(path="target.secrets", message="one or two secrets", given=given, accepted="[new, old]")
            return
        for place, secret in enumerate(secrets):
            if secret != MASK and not _is_secret(secret):
                path = f"target.secrets[{place}]"
                yield FieldProblem(path=path, message="not a valid signing secret", accepted=SIGNED_WITH)
        if len(secrets) == 2 and secrets[0] == secrets[1] != MASK:
            yield FieldProblem(path="target.secrets[1]", message="the same secret twice", accepted="two secrets")

    def problems_with(self, params: Mapping[str, Any], *, callback: bool = False) -> Iterator[FieldProblem]:
        return body_problems(self.body, params, callback=callback)

    def secret_fields(self) -> tuple[str, ...]:
        return ("secret", "secrets")

    def secret_for(self, field: str, place: int) -> str | None:
        """Whichever of the two fields a job had: where it has one secret, each mask stands for it."""
        known = self.signing_secrets
        return known[0] if len(known) == 1 else super().secret_for("secrets", place)

    @classmethod
    def how_to_offer(cls, name: str) -> str:
        if not name:
            return super().how_to_offer(name)
        return f"define [certificates.{name}] in a node's onthedot.toml, with files that it can read"

    def summary(self) -> TargetSummary:
        return TargetSummary(self.method, self.url, self.url if self.method == "POST" else f"{self.method} {self.url}")

    def request(self, sent: SentRun) -> RunRequest:
        """Without what depends on the connection alone (host, length, trace)."""
        body = self.body
        if body is None:
            body = dict(sent.params) or None if self.method not in BODILESS else None
        elif type(body) is not str and is_template(encode_body(body)):
            values = {"run_id": sent.run_id, "scheduled_for": sent.scheduled_for, "attempt": sent.attempt}
            with suppress(MissingParam):  # it was never sent: shown as it is written
                body = fill(body, {**values, **({CALLBACK: MASK} if sent.callback else {})}, sent.params)
        headers = {name.lower(): value for name, value in self.headers.items()}
        if body is not None:
            headers.setdefault("content-type", "text/plain; charset=utf-8" if type(body) is str else "application/json")
        headers |= {"webhook-id": sent.run_id, "webhook-timestamp": str(sent.started_at // 1000)}
        if self.signing_secrets:
            headers["webhook-signature"] = f"v1,{MASK}"
        headers |= {"x-onthedot-job": str(sent.job_id), "x-onthedot-scheduled-for": sent.scheduled_for}
        headers["x-onthedot-attempt"] = str(sent.attempt)
        if sent.callback:
            headers["x-onthedot-callback"] = MASK
        return RunRequest(
            type=self.type,
            what=f"{self.method} {self.url}",
            method=self.method,
            url=self.url,
            headers=headers,
            body=body,
        )


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
