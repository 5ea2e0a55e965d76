"""Params of a run as a person types them: a JSON object."""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot.errors import Invalid
from onthedot.model.decoding import decode_loose, encode_json

__all__ = ["params_text", "read_params"]


def read_params(given: str | None) -> dict[str, Any] | None:
    """None: nothing was typed."""
    if given is None:
        return None
    accepted = 'a JSON object such as {"day": "2026-03-01"}'
    try:
        value = decode_loose(given)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Invalid.one("params", f"not valid JSON: {error}", accepted=accepted) from None
    if not isinstance(value, dict):
        raise Invalid.one("params", "not an object", accepted=accepted)
    return value


def params_text(params: dict[str, Any]) -> str:
    return msgspec.json.format(encode_json(params), indent=2).decode()
