"""Headers that make a request safe to repeat, and conditional."""

from __future__ import annotations

import uuid

__all__ = ["if_match_header", "once_header", "verb_headers"]


def once_header(key: str | None) -> dict[str, str]:
    return {"idempotency-key": key or str(uuid.uuid4())}


def if_match_header(version: int | None) -> dict[str, str]:
    return {} if version is None else {"if-match": f'"{version}"'}


def verb_headers(key: str | None, version: int | None = None) -> dict[str, str]:
    return {**once_header(key), **if_match_header(version)}
