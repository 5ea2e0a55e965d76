"""What differs between versions of a job, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from onthedot.model.decoding import encode_json

__all__ = ["FieldChange", "FieldEdit", "conflicts", "edits", "merge"]

Value: TypeAlias = str | tuple[str, ...]
"""A value of a field as text: a list of texts, such as tags, is one text for each. Empty: it is not set."""


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """One field: as it was when the form was opened, as it is now, and as it was typed."""

    path: str
    before: Value
    theirs: Value
    yours: Value

    @property
    def clashes(self) -> bool:
        """Both changed it, and not to the same."""
        return self.theirs not in (self.before, self.yours) and self.yours != self.before


class FieldEdit(msgspec.Struct, frozen=True, kw_only=True):
    """One field that a version changed; empty: it was not there, or is no more."""

    path: str
    before: Value
    after: Value


def edits(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[FieldEdit]:
    """What one version has that the other has not, in the order of the paths."""
    found = conflicts(before, before, after)
    return [FieldEdit(path=each.path, before=each.before, after=each.yours) for each in found]


def conflicts(before: Mapping[str, Any], theirs: Mapping[str, Any], yours: Mapping[str, Any]) -> list[FieldChange]:
    """The fields that somebody changed, in the order of their paths."""
    old, other, own = (dict(_flat(version)) for version in (before, theirs, yours))
    changes = [
        FieldChange(path=path, before=old.get(path, ""), theirs=other.get(path, ""), yours=own.get(path, ""))
        for path in sorted({*old, *other, *own})
    ]
    return [change for change in changes if not change.before == change.theirs == change.yours]


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Value]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _flat(inner, f"{path}.{name}" if path else str(name))
    elif value not in (None, {}, []):
        yield path, _as_text(value)


def _as_text(value: Any) -> Value:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    return encode_json(value).decode()


def merge(before: Any, theirs: Any, yours: Any) -> Any:
    """Both changes; where they changed the same, yours. A target of another kind is taken whole."""
    maps = [each for each in (before, theirs, yours) if isinstance(each, Mapping)]
    if len(maps) < 3 or len({each.get("type") for each in maps}) > 1:
        return theirs if yours == before else yours
    merged = {
        name: merge(before.get(name), theirs.get(name), yours.get(name))
        for name in dict.fromkeys([*theirs, *yours, *before])
    }
    return {name: value for name, value in merged.items() if value is not None}
