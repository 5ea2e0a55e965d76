"""A type in words: what a field accepts."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from onthedot.model.duration import ACCEPTED_DURATIONS, Duration

__all__ = ["accepted", "basic", "known_names", "members"]

_PLAIN = {str: "text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null"}


def members(kind: Any) -> list[Any]:
    """The members of a union, flat; of any other type itself alone."""
    if isinstance(kind, types.UnionType) or get_origin(kind) is Union:
        parts = [part for part in get_args(kind) if part is not msgspec.UnsetType]  # a field that may be left out
        return [member for part in parts for member in members(part)]
    return [kind]


def known_names(given: str, known: Iterable[str], nothing: str = "nothing") -> str:
    """What could have been written instead of `given`, the nearest first."""
    names = list(known)
    close = difflib.get_close_matches(given[:100], names, n=1)
    return ", ".join([f"did you mean {close[0]}? Known: {names[0]}", *names[1:]] if close else names) or nothing


def basic(kind: Any) -> Any:
    """A type without its limits."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def accepted(kind: Any, *, limits: bool = True) -> str:
    """`Annotated[int, Meta(ge=1, le=1000)] | None` → "a whole number from 1 to 1000 or null"."""
    words = []
    for member in members(kind):
        metas = [meta for meta in get_args(member)[1:] if isinstance(meta, msgspec.Meta)] if limits else []
        own = next((meta.description for meta in metas if meta.description), None)
        unit = "characters" if basic(member) is str else "entries"
        words.append(own or _plain(basic(member), limits) + "".join(_limits(meta, unit) for meta in metas))
    return " or ".join(dict.fromkeys(words))


def _plain(kind: Any, limits: bool) -> str:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind is Duration:
        return ACCEPTED_DURATIONS if limits else "a duration"
    origin = get_origin(kind)
    if origin is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    if origin in (list, tuple):
        return "a list"
    if origin is dict or not limits:
        return "an object"
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind.__struct_config__.tag_field:
            return f"an object with {kind.__struct_config__.tag_field} {kind.__struct_config__.tag}"
        return "an object with " + ", ".join(field.encode_name for field in msgspec.structs.fields(kind))
    return "any value"


def _limits(meta: msgspec.Meta, unit: str) -> str:
    length = _span(meta.min_length or None, meta.max_length, "of {} to {}")
    return f"{length} {unit}" if length else _span(meta.ge, meta.le, "from {} to {}")


def _span(low: float | None, high: float | None, both: str) -> str:
    if low is not None and high is not None:
        return " " + both.format(low, high)
    if low is not None:
        return f" of at least {low}"
    return f" of at most {high}" if high is not None else ""
