"""An answer that is JSON is what the run gives back. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot.targets.webhook.verdict import SNIPPET

__all__ = ["add_result"]


def add_result(detail: dict[str, Any], body: bytes) -> None:
    """To what the outcome tells. A short one is there already, as the answer, and is not stored twice (see
    `model.result`). What says that it is JSON and is not, is an answer like any other."""
    try:
        result = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return
    if result is None:
        return
    if len(body) <= SNIPPET and b"\x00" not in body:
        detail["json"] = True
    else:
        detail["result"] = result
