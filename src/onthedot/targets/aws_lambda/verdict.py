"""What became of a call, from what Lambda answered. Pure."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from onthedot.model.run import Outcome
from onthedot.targets.aws.failure import AwsFailed

__all__ = ["log_tail", "of_answer", "of_failure"]

ACCEPTED = 202
SNIPPET = 2000
"""Characters of what a function answered that are shown where it failed."""


def of_answer(answer: dict[str, Any]) -> Outcome:
    """A function that raised has answered: its error is in the payload. One that is called later has not: 202."""
    payload: bytes = answer.get("Payload") or b""
    detail: dict[str, Any] = {"status_code": answer.get("StatusCode")}
    if version := answer.get("ExecutedVersion"):
        detail["version"] = version
    if request := answer.get("ResponseMetadata", {}).get("RequestId"):
        detail["request_id"] = request
    if answer.get("StatusCode") == ACCEPTED:
        return Outcome(kind="ok", detail=detail)
    try:
        result = msgspec.json.decode(payload) if payload else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        result = payload.decode(errors="replace")
    error = answer.get("FunctionError")
    if not error:
        return Outcome(kind="ok", detail=detail if result is None else {**detail, "result": result})
    text = payload.decode(errors="replace")[:SNIPPET].replace("\x00", "")
    detail |= {"function_error": error, "response": text}
    return Outcome(kind="error", retryable=True, error=f"the function failed: {_reason(result, text)}", detail=detail)


def _reason(result: Any, text: str) -> str:
    """As the runtimes of Lambda write errors, or as it is."""
    match result:
        case {"errorMessage": str(message), "errorType": str(name)} if name and message:
            return f"{name}: {message}"[:SNIPPET]
        case {"errorMessage": str(message)} if message:
            return message[:SNIPPET]
        case {"errorType": str(name)} if name:
            return name[:SNIPPET]
        case _:
            return text or "without an error message"


def of_failure(failed: AwsFailed) -> Outcome:
    where = "AWS Lambda" if failed.answered else "AWS Lambda was not reached"
    detail: dict[str, Any] = {} if failed.status is None else {"status_code": failed.status}
    return Outcome(
        kind="error",
        retryable=failed.retryable,
        error=f"{where}: {failed}",
        retry_after_ms=failed.after_ms if failed.retryable else None,
        detail=detail,
    )


def log_tail(answer: dict[str, Any]) -> str:
    """The last 4 KB that the function logged."""
    try:
        return base64.b64decode(answer.get("LogResult") or "").decode(errors="replace")
    except (binascii.Error, ValueError):
        return ""
