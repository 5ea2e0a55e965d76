"""Values as people write them in flags."""

from __future__ import annotations

from typing import Any

import typer

__all__ = ["header_value", "object_value", "pair_value", "parsed_value"]


def header_value(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise typer.BadParameter(f"{text!r} is not a valid header. Accepted: 'Name: value'", param_hint="--header")
    return name.strip(), value.strip()


def pair_value(text: str, divider: str) -> tuple[str, str]:
    name, found, value = text.partition(divider)
    if not found or not name:
        raise typer.BadParameter(f"{text!r} is not valid. Accepted: NAME{divider}value")
    return name, value


def object_value(flag: str, text: str) -> dict[str, Any]:
    value = parsed_value(text)
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{flag} takes a JSON object such as '{{\"day\": 1}}', not {text[:100]!r}")
    return value


def parsed_value(text: str) -> Any:
    """JSON if it is valid JSON, else the text itself: `retries=3` is a number, `colour=red` needs no quotes."""
    import msgspec

    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
