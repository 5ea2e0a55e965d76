"""JSON, YAML or TOML text → plain dicts and lists, with the line of what can't be read."""

from __future__ import annotations

import datetime as dt
import json
import tomllib
from typing import Any

import msgspec
import yaml

from onthedot.errors import Unreadable

__all__ = ["loose"]


class _Loader(yaml.SafeLoader):
    """YAML without its dates: `2022-11-21` stays the text it is in JSON."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def loose(text: str, extension: str, name: str) -> Any:
    """What the file says, unchecked. Unreadable names file and line."""
    try:
        if extension == "json":
            return msgspec.json.decode(text)
        if extension == "toml":
            return _dates_as_text(tomllib.loads(text))
        return yaml.load(text, Loader=_Loader)  # noqa: S506  # a SafeLoader
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


def _json_line(text: str) -> str:
    """msgspec says at which byte, the json module on which line."""
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
