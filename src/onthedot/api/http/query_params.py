"""Query strings, read as strictly as bodies: an unknown parameter is an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from onthedot.errors import FieldProblem, Invalid
from onthedot.model.accepted import known_names
from onthedot.model.instant import parse_rfc3339

__all__ = ["Param", "choice", "flag", "instant", "integer", "read_query", "text"]


class Param(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter: how to parse it (None: invalid), and what is accepted, as text and as a JSON schema."""

    name: str
    read: Callable[[str], Any]
    accepted: str
    schema: dict[str, Any]
    description: str = ""
    default: Any = None
    required: bool = False


def text(name: str, description: str, *, longest: int = 500) -> Param:
    return Param(
        name=name,
        read=lambda value: value if 0 < len(value) <= longest else None,
        accepted=f"text of 1 to {longest} characters",
        schema={"type": "string", "minLength": 1, "maxLength": longest},
        description=description,
    )


def choice(name: str, description: str, options: Iterable[str]) -> Param:
    known = tuple(options)
    return Param(
        name=name,
        read=lambda value: value if value in known else None,
        accepted="one of " + ", ".join(known),
        schema={"type": "string", "enum": list(known)},
        description=description,
    )


def integer(name: str, description: str, low: int, high: int, default: int | None = None) -> Param:
    def read(value: str) -> int | None:
        number = int(value) if re.fullmatch(r"\d{1,19}", value, re.ASCII) else -1
        return number if low <= number <= high else None

    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Param(
        name=name,
        read=read,
        accepted=f"an integer from {low} to {high}",
        schema=schema if default is None else {**schema, "default": default},
        description=description,
        default=default,
    )


def instant(name: str, description: str) -> Param:
    return Param(
        name=name,
        read=parse_rfc3339,
        accepted='a date and time with offset such as "2026-03-28T00:00:00Z"',
        schema={"type": "string", "format": "date-time"},
        description=description,
    )


def flag(name: str, description: str, *, default: bool | None = False) -> Param:
    """default=None: left out it means neither."""
    schema: dict[str, Any] = {"type": "boolean"}
    return Param(
        name=name,
        read=lambda value: {"true": True, "false": False}.get(value),
        accepted="true or false",
        schema=schema if default is None else {**schema, "default": default},
        description=description,
        default=default,
    )


def read_query(raw: bytes, params: tuple[Param, ...]) -> dict[str, Any]:
    """Every declared parameter by name, or Invalid with all problems."""
    known = {param.name: param for param in params}
    found: dict[str, Any] = {param.name: param.default for param in params}
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    for name, value in _pairs(raw):
        param = known.get(name)
        if param is None:
            accepted = known_names(name, known, "no parameters")
            problems.append(
                FieldProblem(path=_brief(name), message="unknown parameter", given=_brief(value), accepted=accepted)
            )
        elif name in seen:
            problems.append(FieldProblem(path=name, message="given more than once", accepted="one value"))
        else:
            seen.add(name)
            found[name] = param.read(value) if "\x00" not in value else None
            if found[name] is None:
                problems.append(
                    FieldProblem(path=name, message="invalid value", given=_brief(value), accepted=param.accepted)
                )
    problems += [
        FieldProblem(path=param.name, message="required parameter is missing", accepted=param.accepted)
        for param in params
        if param.required and param.name not in seen
    ]
    if problems:
        raise Invalid(problems)
    return found


def _pairs(raw: bytes) -> list[tuple[str, str]]:
    if not raw:
        return []
    try:
        return parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50)
    except UnicodeDecodeError:
        raise Invalid.one("query", "is not UTF-8", accepted="percent-encoded UTF-8") from None
    except ValueError:
        raise Invalid.one("query", "has too many parameters", accepted="at most 50") from None


def _brief(value: str) -> str:
    return value if len(value) <= 200 else value[:200] + "…"
