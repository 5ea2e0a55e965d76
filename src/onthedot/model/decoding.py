"""Strict decoding with errors for people: every wrong field at once, each with its path, what was given, what is accepted.

The good case is msgspec's C path alone. Only when that refuses, the input is walked once more in Python to find all that
is wrong with it instead of the first thing.
"""

from __future__ import annotations

import re
import types
import typing
from typing import Any, TypeVar

import msgspec

from onthedot.errors import FieldProblem, Invalid, NotAvailable, Unreadable
from onthedot.model.duration import ACCEPTED_DURATIONS, Duration
from onthedot.model.target import NOT_BUILT, TARGET_TYPES

__all__ = ["convert", "decode_json", "dec_hook", "enc_hook", "encode_json", "schema_hook", "to_builtins"]

T = TypeVar("T")
MAX_DEPTH = 50


def dec_hook(kind: type, value: Any) -> Any:
    if kind is Duration:
        return Duration.parse(value)
    raise NotImplementedError(kind)


def enc_hook(value: Any) -> Any:
    if isinstance(value, Duration):
        return str(value)
    raise NotImplementedError(type(value))


def schema_hook(kind: type) -> dict[str, Any]:
    if kind is Duration:
        return {"oneOf": [{"type": "number", "minimum": 0}, {"type": "string"}], "description": ACCEPTED_DURATIONS}
    raise NotImplementedError(kind)


_encoder = msgspec.json.Encoder(enc_hook=enc_hook)


def encode_json(value: Any) -> bytes:
    return _encoder.encode(value)


def to_builtins(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=enc_hook)


def decode_json(raw: bytes | str, kind: type[T]) -> T:
    """JSON text → struct. Unreadable (400) for what is no JSON, Invalid (422) for what is wrong."""
    try:
        loose = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"the body is not valid JSON: {error}") from None
    return convert(loose, kind)


def convert(loose: Any, kind: type[T], *, path: str = "") -> T:
    """Plain dicts and lists (from JSON, YAML, TOML) → struct, or Invalid with every problem."""
    hazards = list(_hazards(loose, path, 0))
    if hazards:
        raise Invalid(hazards)
    try:
        return msgspec.convert(loose, kind, dec_hook=dec_hook)
    except (msgspec.ValidationError, OverflowError) as error:
        problems = list(_problems(loose, kind, path)) or [FieldProblem(path=path or "$", message=str(error))]
        if all(problem.message.startswith("not available") for problem in problems):
            raise NotAvailable(problems) from None
        raise Invalid(problems) from None


def _hazards(value: Any, path: str, depth: int) -> typing.Iterator[FieldProblem]:
    """What no field may hold: NUL (PostgreSQL can't store it), lone surrogates, endless nesting, huge integers."""
    if depth > MAX_DEPTH:
        yield FieldProblem(path=path, message="nested too deeply", accepted=f"at most {MAX_DEPTH} levels")
    elif isinstance(value, str):
        if "\x00" in value:
            yield FieldProblem(path=path, message="contains a NUL character", accepted="text without \\u0000")
        elif not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            yield FieldProblem(path=path, message="contains half a surrogate pair", accepted="valid Unicode text")
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _hazards(name, _join(path, str(name)), depth + 1)
            yield from _hazards(item, _join(path, str(name)), depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _hazards(item, f"{path}[{index}]", depth + 1)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        yield FieldProblem(path=path, message="the number is too large", given=str(value)[:40], accepted="a 64-bit integer")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _problems(value: Any, kind: Any, path: str) -> typing.Iterator[FieldProblem]:
    struct = _struct_for(value, kind)
    if struct is None or not isinstance(value, dict):
        yield from _leaf_problem(value, kind, path)
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    tag_field = struct.__struct_config__.tag_field
    for name, item in value.items():
        if name == tag_field:
            continue
        field = fields.get(name)
        if field is None:
            yield FieldProblem(
                path=_join(path, str(name)), message="unknown field", given=_brief(item), accepted=", ".join(fields)
            )
        elif not _fits(item, field.type):
            yield from _problems(item, field.type, _join(path, name))
    for name, field in fields.items():
        if field.required and name not in value:
            yield FieldProblem(path=_join(path, name), message="required field is missing", accepted=_accepted(field.type))


def _struct_for(value: Any, kind: Any) -> type[msgspec.Struct] | None:
    """The struct that `value` was meant to be: of a tagged union the member its tag names."""
    members = [m for m in _members(kind) if isinstance(m, type) and issubclass(m, msgspec.Struct)]
    tagged = [m for m in members if m.__struct_config__.tag_field]
    if tagged and isinstance(value, dict):
        tag = value.get(tagged[0].__struct_config__.tag_field)
        return next((m for m in tagged if m.__struct_config__.tag == tag), None)
    return members[0] if len(members) == 1 else None


def _members(kind: Any) -> tuple[Any, ...]:
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        return tuple(m for part in typing.get_args(kind) for m in _members(part))
    if typing.get_origin(kind) is typing.Annotated and not isinstance(typing.get_args(kind)[0], type):
        return _members(typing.get_args(kind)[0])
    return (kind,)


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind, dec_hook=dec_hook)
    except (msgspec.ValidationError, OverflowError):
        return False
    return True


def _leaf_problem(value: Any, kind: Any, path: str) -> typing.Iterator[FieldProblem]:
    tagged = next((m for m in _members(kind) if isinstance(m, type) and issubclass(m, msgspec.Struct)), None)
    if tagged is not None and isinstance(value, dict) and tagged.__struct_config__.tag_field:
        yield _tag_problem(value, tagged.__struct_config__.tag_field, path)
        return
    try:
        msgspec.convert(value, kind, dec_hook=dec_hook)
    except (msgspec.ValidationError, OverflowError) as error:
        message, _, where = str(error).partition(" - at `$")
        inner = re.sub(r"`$", "", where)
        yield FieldProblem(path=path + inner or "$", message=message, given=_brief(value), accepted=_accepted(kind))


def _tag_problem(value: dict[str, Any], tag_field: str, path: str) -> FieldProblem:
    where, given = _join(path, tag_field), value.get(tag_field)
    if tag_field not in value:
        return FieldProblem(path=where, message="required field is missing", accepted=", ".join(TARGET_TYPES))
    if given in NOT_BUILT:
        built = ", ".join(kind for kind in TARGET_TYPES if kind not in NOT_BUILT)
        return FieldProblem(path=where, message=f"not available: {given!r} is not built into this version", given=given, accepted=built)
    return FieldProblem(path=where, message="unknown target type", given=_brief(given), accepted=", ".join(TARGET_TYPES))


_PLAIN = {str: "text", int: "a whole number", float: "a number", bool: "true or false", Duration: ACCEPTED_DURATIONS}


def _accepted(kind: Any) -> str:
    words = []
    for member in _members(kind):
        if member is type(None):
            words.append("null")
        elif typing.get_origin(member) is typing.Literal:
            words.append("one of " + ", ".join(map(str, typing.get_args(member))))
        elif typing.get_origin(member) is typing.Annotated:
            inner, *meta = typing.get_args(member)
            words.append(_accepted(inner) + "".join(_limits(m) for m in meta if isinstance(m, msgspec.Meta)))
        elif typing.get_origin(member) in (list, tuple):
            words.append(f"a list of {_accepted(typing.get_args(member)[0])}")
        elif member in _PLAIN:
            words.append(_PLAIN[member])
        elif isinstance(member, type) and issubclass(member, msgspec.Struct):
            fields = ", ".join(f.encode_name for f in msgspec.structs.fields(member))
            words.append(f"an object with {fields}")
        else:
            words.append("an object" if typing.get_origin(member) is dict else "any value")
    return " or ".join(dict.fromkeys(words))


def _limits(meta: msgspec.Meta) -> str:
    limits = {">=": meta.ge, "<=": meta.le, "at least": meta.min_length, "at most": meta.max_length, "matching": meta.pattern}
    return "".join(f" {word} {limit}" for word, limit in limits.items() if limit is not None)


def _brief(value: Any) -> Any:
    """What was given, short enough for an error message."""
    if isinstance(value, str) and len(value) > 200:
        return value[:200] + "…"
    if isinstance(value, (dict, list)):
        text = encode_json(value).decode(errors="replace")
        return text if len(text) <= 200 else text[:200] + "…"
    return value
