"""Parses JSON, YAML or TOML text into plain dicts and lists; errors name the line."""

from __future__ import annotations

import datetime as dt
import json
import tomllib
from typing import Any

import msgspec
import yaml

from onthedot.errors import Unreadable

__all__ = ["loose"]


MOST_VALUES = 1_000_000


class _Loader(yaml.SafeLoader):
    """YAML without dates: `2022-11-21` stays text, as in JSON."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def loose(text: str, extension: str, name: str) -> Any:
    """The parsed file, not validated. Unreadable names file and line."""
    try:
        if extension == "json":
            return msgspec.json.decode(text)
        if extension == "toml":
            return _dates_as_text(tomllib.loads(text))
        return _yaml(text)
    except msgspec.DecodeError as error:
        raise Unreadable(f"{name}{_json_line(text)}: not valid JSON: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(f"{name}: not valid TOML: {error}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f":{mark.line + 1}" if mark else ""
        raise Unreadable(f"{name}{where}: not valid YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Unreadable(f"{name}: can't be read: {error}") from None


def _yaml(text: str) -> Any:
    """Nested aliases can expand nine lines to a billion values, so count before constructing."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _written_out(node, {}, frozenset()) > MOST_VALUES:
            raise ValueError(f"its aliases expand to more than {MOST_VALUES} values")
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _written_out(node: yaml.Node, known: dict[int, int], above: frozenset[int]) -> int:
    """The number of values with all aliases expanded."""
    if id(node) in above:
        raise ValueError(f"line {node.start_mark.line + 1}: an alias refers to a node that contains it")
    if id(node) not in known:
        below = above | {id(node)} if not isinstance(node, yaml.ScalarNode) else above
        inner: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            inner = [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            inner = node.value
        known[id(node)] = 1 + sum(_written_out(part, known, below) for part in inner)
    return known[id(node)]


def _json_line(text: str) -> str:
    """msgspec reports the byte, the json module the line."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f":{error.lineno}"
    except RecursionError:
        return ""
    return ""


def _dates_as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _dates_as_text(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_dates_as_text(item) for item in value]
    if isinstance(value, (dt.date, dt.time)):  # a datetime is a date too
        return value.isoformat()
    return value
