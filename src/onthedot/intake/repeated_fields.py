"""Objects with a field twice. JSON allows them, and readers differ in which of both counts: of `"op": "run"` and
`"op": "delete"`, whoever sent them meant at most one."""

from __future__ import annotations

import json
from typing import Any

from onthedot.errors import Invalid

__all__ = ["refuse_repeated_fields"]


class _Repeated(Exception):
    pass


class _Members(list[tuple[str, Any]]):
    """Of an object, as they are written."""


def refuse_repeated_fields(raw: bytes) -> None:
    """Invalid, with the first of them. `raw` is known to be JSON that is not nested too deeply."""
    text = raw.decode()
    try:
        _looking.decode(text)
    except _Repeated:
        path = _find(_keeping.decode(text), "")
        raise Invalid.one(path or "$", "is there twice", accepted="each field once") from None


def _look(members: list[tuple[str, Any]]) -> None:
    if len(dict(members)) != len(members):
        raise _Repeated


def _find(value: Any, path: str) -> str | None:
    """Where the first one is, or None."""
    names = set[str]()
    if isinstance(value, _Members):
        for name, inner in value:
            at = f"{path}.{name}" if path else name
            if name in names:
                return at
            names.add(name)
            if (found := _find(inner, at)) is not None:
                return found
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            if (found := _find(inner, f"{path}[{number}]")) is not None:
                return found
    return None


_looking = json.JSONDecoder(
    object_pairs_hook=_look, strict=False, parse_int=str, parse_float=str
)  # numbers may have any length
_keeping = json.JSONDecoder(object_pairs_hook=_Members, strict=False, parse_int=str, parse_float=str)
