"""What no single field can say of itself: zero durations that make no sense, URLs, headers, names, secrets.

Whether a schedule can fire is `timing`'s to say, whether a target may be called is the targets'; this is about shape.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

from onthedot.errors import FieldProblem, Invalid
from onthedot.model.duration import ACCEPTED_DURATIONS
from onthedot.model.job import JobSpec
from onthedot.model.policy import Policy
from onthedot.model.secrets import is_secret_name, masked_url
from onthedot.model.target import MASK, CommandTarget, FunctionTarget, Target, WebhookTarget

__all__ = ["check_spec", "target_problems", "url_problem"]

ACCEPTED_URL = "an absolute http:// or https:// URL with a host, without user name or password"
SIGNED_WITH = "whsec_ and 24 to 64 bytes in base64, or a text of at least 16 characters"
MAX_HEADERS, MAX_HEADER_VALUE, MAX_URL = 100, 8192, 8192
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_NOT_IN_URL = re.compile(r"[\x00-\x20\x7f\\\s]")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_OURS = re.compile(
    r"host|content-length|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect|proxy-.*"
    r"|webhook-.*|x-onthedot-.*|traceparent",
    re.IGNORECASE,
)
_LABEL = re.compile(r"[\w-]{1,63}")  # letters of any script; the resolver has the last word


def check_spec(spec: JobSpec) -> None:
    """Raises Invalid with every problem."""
    problems = [*_policy(spec.policy), *(_tags(spec.tags) if spec.tags else ()), *target_problems(spec.target)]
    if problems:
        raise Invalid(problems)


def target_problems(target: Target) -> list[FieldProblem]:
    """What is wrong with a target wherever it would run."""
    match target:
        case WebhookTarget():
            if not target.headers and target.secret is None and url_problem(target.url) is None:
                return []
            return list(_webhook(target))
        case FunctionTarget():
            return list(_function(target))
        case CommandTarget():
            return list(_command(target))


@lru_cache(maxsize=256)
def _policy(policy: Policy) -> tuple[FieldProblem, ...]:
    """Cached: few jobs have a policy of their own."""
    return tuple(_zero_durations(policy))


def _zero_durations(policy: Policy) -> Iterator[FieldProblem]:
    positive = {
        "timeout": policy.timeout,
        "retry.backoff": policy.retry.backoff,
        "retry.max": policy.retry.max,
        "retry.max_age": policy.retry.max_age,
        "expires_in": policy.expires_in,
    }
    for name, duration in positive.items():
        if duration is not None and duration <= 0:
            yield FieldProblem(
                path=f"policy.{name}",
                message="must be more than zero",
                given=str(duration),
                accepted=ACCEPTED_DURATIONS,
            )


def _tags(tags: list[str]) -> Iterator[FieldProblem]:
    for index, tag in enumerate(tags):
        if tag in tags[:index]:
            yield FieldProblem(path=f"tags[{index}]", message="duplicate tag", given=tag, accepted="each tag once")


def _webhook(target: WebhookTarget) -> Iterator[FieldProblem]:
    message = url_problem(target.url)
    if message is not None:
        yield FieldProblem(
            path="target.url", message=message, given=masked_url(target.url)[:200], accepted=ACCEPTED_URL
        )
    if len(target.headers) > MAX_HEADERS:
        yield FieldProblem(path="target.headers", message="too many headers", accepted=f"at most {MAX_HEADERS}")
    seen: set[str] = set()
    for name, value in target.headers.items():
        yield from _header(name, value, seen)
    if target.secret is not None and target.secret != MASK and not _is_secret(target.secret):
        yield FieldProblem(path="target.secret", message="not a valid signing secret", accepted=SIGNED_WITH)


@lru_cache(maxsize=512)
def url_problem(url: str) -> str | None:
    """What is wrong with the shape of a webhook's URL; None if nothing is.

    Cached: a create asks twice, and a batch names the same few receivers. It was a fifth of the CPU of a bulk create.
    """
    if len(url) > MAX_URL:
        return f"longer than {MAX_URL} characters"
    if _NOT_IN_URL.search(url):
        return "contains a space, a backslash or a control character"  # urlsplit drops some of them without a word
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "not a valid URL"
    if parts.scheme not in ("http", "https"):
        return "not an absolute http or https URL"
    if port == 0:
        return "port 0 is not valid"
    if "@" in parts.netloc:
        return "contains a user name or password; use an Authorization header instead"
    return None if _is_host(parts) else "has no valid host"


def _is_host(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    if parts.netloc.startswith("["):
        return re.fullmatch(r"\[[0-9A-Fa-f:.]+\](:\d+)?", parts.netloc) is not None  # urlsplit checked the address
    labels = host.removesuffix(".").split(".")
    return len(host) <= 253 and all(_LABEL.fullmatch(label) for label in labels)


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


def _function(target: FunctionTarget) -> Iterator[FieldProblem]:
    module, colon, function = target.function.partition(":")
    parts = [*module.split("."), *(function.split(".") if colon else ())]
    if not all(part.isidentifier() for part in parts):
        yield FieldProblem(
            path="target.function",
            message="not a valid function name",
            given=target.function[:200],
            accepted='"package.module:function", or the name under which an embedding program registered it',
        )


def _command(target: CommandTarget) -> Iterator[FieldProblem]:
    if not target.command.strip():
        yield FieldProblem(path="target.command", message="is empty", accepted="the name of a registered command")
