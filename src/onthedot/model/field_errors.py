"""Finds every mistake in a value that msgspec refused: walks it next to the type it was meant to be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, takewhile
from typing import Any, get_args, get_origin

import msgspec

from onthedot.errors import FieldProblem
from onthedot.model.accepted import accepted, basic, known_names, members
from onthedot.model.duration import Duration
from onthedot.model.targets import OpaqueTarget, Target
from onthedot.model.targets.registry import find_spec, not_built, plugins, specs, target_types
from onthedot.model.unstorable import MOST_PROBLEMS, child

__all__ = ["brief", "dec_hook", "mistakes"]


SHOWN = 200  # characters of what was given
OTHER_TYPES = "for another type, install its plug-in on this node with pip (`pip install PACKAGE`) and restart the node"


def dec_hook(kind: type, value: Any) -> Any:
    if kind is Duration:
        return Duration.parse(value)
    if kind is Target:
        return _target(value)
    raise NotImplementedError(kind)


def _target(value: Any) -> Target:
    """Strictly, where its kind is known; as it stands, where it is not."""
    given = value.get("type") if isinstance(value, dict) else None
    if not isinstance(given, str):
        raise TypeError("not an object with a type")
    spec = find_spec(given)
    return OpaqueTarget(value) if spec is None else msgspec.convert(value, spec, dec_hook=dec_hook)


def mistakes(value: Any, kind: Any, path: str) -> Iterator[FieldProblem]:
    """One problem per wrong field; nothing if the value fits."""
    refusal = _refusal(value, kind)
    if refusal is None:
        return
    structs = [member for member in members(kind) if isinstance(member, type) and issubclass(member, msgspec.Struct)]
    inner = _items(value, kind, path)
    if isinstance(value, dict) and structs:
        inner = _fields(value, structs, path)
    yield from inner or [_leaf(value, kind, path, refusal)]


def _refusal(value: Any, kind: Any) -> str | None:
    try:
        msgspec.convert(value, kind, dec_hook=dec_hook)
    except (msgspec.ValidationError, OverflowError) as error:
        return str(error)
    return None


def _fields(value: dict[str, Any], structs: list[type[msgspec.Struct]], path: str) -> list[FieldProblem]:
    """An object that should be a struct; of a tagged union the one that its tag names."""
    struct, tag_field = structs[0], structs[0].__struct_config__.tag_field
    if tag_field is not None:
        named = next((s for s in structs if s.__struct_config__.tag == value.get(tag_field)), None)
        if named is None:
            return [_tag_problem(value, tag_field, path)]
        struct = named
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    found: list[FieldProblem] = []
    for name, item in value.items():
        if len(found) >= MOST_PROBLEMS:
            return found
        if name in fields:
            found += mistakes(item, fields[name].type, child(path, name))
        elif name != tag_field:
            known = known_names(name, fields)
            found.append(
                FieldProblem(path=child(path, name), message="unknown field", given=brief(item), accepted=known)
            )
    for name, field in fields.items():
        if field.required and name not in value:
            wanted = accepted(field.type)
            found.append(FieldProblem(path=child(path, name), message="required field is missing", accepted=wanted))
    return found


def _first(problems: Iterator[FieldProblem]) -> list[FieldProblem]:
    return list(islice(problems, MOST_PROBLEMS))


def _items(value: Any, kind: Any, path: str) -> list[FieldProblem]:
    """The members of a list, or of an object that is a map."""
    for member in members(kind):
        plain = basic(member)
        if isinstance(value, list) and get_origin(plain) in (list, tuple):
            wanted = get_args(plain)[0]  # of a tuple, too: all of ours are of one type
            return _first(p for index, item in enumerate(value) for p in mistakes(item, wanted, f"{path}[{index}]"))
        if isinstance(value, dict) and get_origin(plain) is dict:
            _, wanted = get_args(plain)
            return _first(p for name, item in value.items() for p in mistakes(item, wanted, child(path, name)))
    return []


def _tag_problem(value: dict[str, Any], tag_field: str, path: str) -> FieldProblem:
    where, given = child(path, tag_field), value.get(tag_field)
    if tag_field not in value:
        return FieldProblem(path=where, message="required field is missing", accepted=", ".join(target_types()))
    if isinstance(given, str) and given in plugins().broken:  # why is the operator's to know: the log and doctor say it
        message = "the plug-in for this target type is installed but can't be used; `onthedot doctor` shows the reason"
        return FieldProblem(path=where, message=message, given=brief(given), accepted=", ".join(specs()))
    if given in not_built():
        built = ", ".join(specs())
        message = f"not available: {given!r} is not supported in this version"
        return FieldProblem(path=where, message=message, given=given, accepted=built)
    known = f"{', '.join(specs())}; {OTHER_TYPES}"
    return FieldProblem(path=where, message="unknown target type", given=brief(given), accepted=known)


_JSON_NAMES = {
    "str": "text",
    "int": "a whole number",
    "float": "a decimal number",
    "bool": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}
_WORDS = (
    (re.compile(r"Expected `\w+` of length >= 1$"), "is empty"),
    (re.compile(r"Expected `\w+` of length >="), "is too short"),
    (re.compile(r"Expected `\w+` of length <="), "is too long"),
    (re.compile(r"Expected `\w+` >"), "is too small"),
    (re.compile(r"Expected `\w+` <"), "is too large"),
    (re.compile(r"Expected `\w+` matching regex"), "does not have the required format"),
    (re.compile(r"Invalid enum value"), "is not an accepted value"),
)


def _leaf(value: Any, kind: Any, path: str, refusal: str) -> FieldProblem:
    wanted = accepted(kind)
    return FieldProblem(path=path or "$", message=_in_words(refusal, kind), given=brief(value), accepted=wanted)


def _in_words(refusal: str, kind: Any) -> str:
    """msgspec's "Expected `int`, got `str`", said to a person."""
    refusal = refusal.partition(" - at `")[0]
    for pattern, words in _WORDS:
        if pattern.match(refusal):
            return words
    match = re.fullmatch(r"Expected `.*`, got `(\w+)`", refusal)
    if match is None:
        return refusal.partition(": expected")[0]  # our own, from a dec_hook: "a duration can't be negative"
    return f"expected {accepted(kind, limits=False)}, not {_JSON_NAMES.get(match[1], match[1])}"


def brief(value: Any) -> Any:
    """What was given, short enough for an error message."""
    if isinstance(value, (dict, list)):
        value = msgspec.json.encode(_beginning(value, [SHOWN])).decode(errors="replace")
    if isinstance(value, str) and len(value) > SHOWN:
        return value[:SHOWN] + "…"
    return value


def _beginning(value: Any, left: list[int]) -> Any:
    """As many values as fill what is shown: to write out all of a long list takes longer than anything else here."""
    left[0] -= 1
    if isinstance(value, list):
        return [_beginning(item, left) for item in takewhile(lambda _: left[0] > 0, value)]
    if isinstance(value, dict):
        return {name: _beginning(item, left) for name, item in takewhile(lambda _: left[0] > 0, value.items())}
    return value[: SHOWN + 1] if isinstance(value, str) else value
