"""What a run sent, and what it was answered: redacted, for people who look for the reason of a failure. Pure.

Requests are not stored. They are made again of the job as it was when the run started, so no secret is in them, and
nothing is written for a run that nobody looks at.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import msgspec

__all__ = ["RunRequest", "RunResponse", "SentRun", "as_curl", "response_of"]

ANSWER_LIMIT = 2048
"""Bytes that are kept of an answer."""


class RunRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the last attempt sent, or called. `body`: JSON or text as it was sent; of a target that is not a webhook the
    params that it got. Secrets are masked."""

    type: str
    what: str  # in one line: "POST https://example.com/hook", "function reports:build"
    method: str | None = None
    url: str | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    body: Any = None


class RunResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came back. `body`: at most the first 2 KB, as text; `truncated`: there may have been more."""

    status_code: int | None = None
    exit_code: int | None = None
    body: str | None = None
    truncated: bool = False


class SentRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a target must know of a run to say what was sent."""

    run_id: str
    job_id: int
    scheduled_for: str
    attempt: int
    started_at: int  # ms
    params: Mapping[str, Any]
    callback: bool = False


def response_of(outcome: Mapping[str, Any] | None) -> RunResponse | None:
    """None: nothing came back, or nothing of it is kept."""
    if outcome is None:
        return None
    status, code, body = outcome.get("status_code"), outcome.get("exit_code"), outcome.get("response")
    if status is None and code is None and body is None:
        return None
    return RunResponse(
        status_code=status,
        exit_code=code,
        body=body,
        truncated=body is not None and len(body.encode()) >= ANSWER_LIMIT,
    )


def as_curl(request: RunRequest) -> str | None:
    """The command that sends it again, for a shell; None: it was not sent by HTTP."""
    if request.url is None:
        return None
    words = ["curl", "-i"]
    if request.method != "GET":
        words += ["--head"] if request.method == "HEAD" else ["-X", request.method or "POST"]
    words.append(request.url)
    for name, value in request.headers.items():
        words += ["-H", f"{name}: {value}"]
    if request.body is not None:
        text = request.body if isinstance(request.body, str) else msgspec.json.encode(request.body).decode()
        words += ["--data-binary", text]
    return " ".join(map(shlex.quote, words))
