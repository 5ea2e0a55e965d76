"""Checks pod templates of operators against the fields that Kubernetes knows. An API server drops fields that it does
not know, so that a misspelt limit is no limit: here they are named before a job runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from typing import Any

import msgspec

__all__ = ["pod_template_problems"]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "number": (int, float),
    "scalar": (str, int, float),
}


@lru_cache(maxsize=1)
def _fields() -> dict[str, dict[str, str]]:
    """By the name of a type; see scripts/pod_fields.py."""
    text = files("onthedot.settings").joinpath("pod_fields.json").read_text()
    return msgspec.json.decode(text, type=dict[str, dict[str, str]])


def pod_template_problems(template: Any) -> Iterator[str]:
    """`template`: metadata and spec of a pod. Each problem with its place, such as `spec.containers[0].imag`."""
    yield from _object(template, "PodTemplateSpec", "")


def _object(value: Any, kind: str, path: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{path or 'it'} must be a table"
        return
    known = {name.rstrip("!"): (shape, name.endswith("!")) for name, shape in _fields()[kind].items()}
    for name, given in value.items():
        place = f"{path}.{name}" if path else str(name)
        if name not in known:
            near = get_close_matches(str(name), known, 1)
            yield f"unknown field {place}" + (f" (did you mean {near[0]}?)" if near else "")
        else:
            yield from _value(given, known[name][0], place)
    for name, (_, required) in known.items():
        if required and name not in value:
            yield f"{path}.{name} is missing" if path else f"{name} is missing"


def _value(value: Any, shape: str, path: str) -> Iterator[str]:
    if shape == "any" or value is None:
        return
    if shape[0] == "[":
        if not isinstance(value, list | tuple):
            yield f"{path} must be a list"
            return
        for place, item in enumerate(value):
            yield from _value(item, shape[1:-1], f"{path}[{place}]")
    elif shape[0] == "{":
        if not isinstance(value, Mapping):
            yield f"{path} must be a table"
            return
        for name, item in value.items():
            yield from _value(item, shape[1:-1], f"{path}.{name}")
    elif shape in _TYPES:
        if not isinstance(value, _TYPES[shape]) or (isinstance(value, bool) and shape != "boolean"):
            yield f"{path} must be {_word(shape)}, not {str(value)[:50]!r}"
    else:
        yield from _object(value, shape, path)


def _word(shape: str) -> str:
    return {"string": "text", "integer": "a whole number", "boolean": "true or false"}.get(shape, "text or a number")
