"""JSON schemas of the model's types.

msgspec's own generator can't write defaults of custom types (our durations), so this walks msgspec's type information.
"""

from __future__ import annotations

import inspect as python_inspect
from typing import Any

import msgspec
from msgspec import inspect

from onthedot.model.decoding import schema_hook, to_builtins
from onthedot.model.field_reference import field_notes
from onthedot.model.targets import OpaqueTarget, Target
from onthedot.model.targets.registry import known_union

__all__ = ["Schemas"]


class Schemas:
    """Collects the named types that the document refers to."""

    def __init__(self) -> None:
        self.components: dict[str, dict[str, Any]] = {}
        self._known: dict[str, dict[str, Any]] = {}
        self._classes: dict[str, type] = {}

    def of(self, kind: Any) -> dict[str, Any]:
        """The schema of a type; structs become references into `components`."""
        known = self._known.get(str(kind))
        if known is None:
            known = self._known[str(kind)] = self._schema(inspect.type_info(kind))
        return known

    def _schema(self, info: inspect.Type) -> dict[str, Any]:
        match info:
            case inspect.Metadata():
                return {**self._schema(info.type), **(info.extra_json_schema or {})}
            case inspect.NoneType():
                return {"type": "null"}
            case inspect.BoolType():
                return {"type": "boolean"}
            case inspect.IntType():
                return {"type": "integer", **_bounds(info)}
            case inspect.FloatType():
                return {"type": "number", **_bounds(info)}
            case inspect.StrType():
                return {"type": "string", **_lengths(info, "Length"), **_pattern(info.pattern)}
            case inspect.LiteralType():
                return {"enum": list(info.values)}
            case inspect.ListType():
                return {"type": "array", "items": self._schema(info.item_type), **_lengths(info, "Items")}
            case inspect.DictType():
                values = self._schema(info.value_type)
                return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
            case inspect.UnionType():
                return self._union(info)
            case inspect.StructType():
                return self._struct(info)
            case inspect.CustomType() if info.cls is Target:
                return self._target()
            case inspect.CustomType():
                return schema_hook(info.cls)
            case _:
                return {}

    def _target(self) -> dict[str, Any]:
        """The target of a job that is read: any that can be made here, or one of a kind that is not known here."""
        name = OpaqueTarget.__name__
        self.components[name] = {
            "type": "object",
            "properties": {"type": {"type": "string"}},
            "required": ["type"],
            "description": "A kind of target that this node does not know: all fields but `type` are masked",
        }
        known = self._schema(inspect.type_info(known_union()))
        return {**known, "anyOf": [*known["anyOf"], {"$ref": f"#/components/schemas/{name}"}]}

    def _union(self, info: inspect.UnionType) -> dict[str, Any]:
        schema: dict[str, Any] = {"anyOf": [self._schema(one) for one in info.types]}
        tagged = [one for one in info.types if isinstance(one, inspect.StructType) and one.tag_field]
        if tagged:
            mapping = {str(one.tag): f"#/components/schemas/{one.cls.__name__}" for one in tagged}
            schema["discriminator"] = {"propertyName": tagged[0].tag_field, "mapping": mapping}
        return schema

    def _struct(self, info: inspect.StructType) -> dict[str, Any]:
        name = info.cls.__name__
        if self._classes.setdefault(name, info.cls) is not info.cls:
            raise ValueError(f"two types are named {name}: the document can't tell them apart")
        if name not in self.components:
            self.components[name] = {}  # a place first: types may refer to themselves
            self.components[name] = self._component(info)
        return {"$ref": f"#/components/schemas/{name}"}

    def _component(self, info: inspect.StructType) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        required = [info.tag_field] if info.tag_field else []
        if info.tag_field:
            properties[info.tag_field] = {"enum": [info.tag]}
        notes = field_notes(info.cls)
        for field in info.fields:
            note = notes.get(field.encode_name)
            said = {} if note is None else {"description": note.meaning}
            properties[field.encode_name] = {**self._schema(field.type), **_default(field), **said}
            if field.required:
                required.append(field.encode_name)
        schema: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
        if info.forbid_unknown_fields:
            schema["additionalProperties"] = False
        if info.cls.__doc__:
            schema["description"] = python_inspect.cleandoc(info.cls.__doc__)
        return schema


def _bounds(info: inspect.IntType | inspect.FloatType) -> dict[str, Any]:
    named = {"minimum": info.ge, "maximum": info.le, "exclusiveMinimum": info.gt, "exclusiveMaximum": info.lt}
    return {name: value for name, value in named.items() if value is not None}


def _lengths(info: inspect.StrType | inspect.ListType, what: str) -> dict[str, Any]:
    named = {f"min{what}": info.min_length, f"max{what}": info.max_length}
    return {name: value for name, value in named.items() if value is not None}


def _pattern(pattern: str | None) -> dict[str, Any]:
    r"""JSON Schema's dialect knows `$` where Python needs `\Z`."""
    return {} if pattern is None else {"pattern": pattern.replace(r"\Z", "$")}


def _default(field: inspect.Field) -> dict[str, Any]:
    if field.default_factory is not msgspec.NODEFAULT:
        return {"default": to_builtins(field.default_factory())}
    if field.default is msgspec.NODEFAULT or field.default is None:
        return {}
    return {"default": to_builtins(field.default)}
