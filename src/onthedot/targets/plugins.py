"""Kinds that plug-ins add. `model.targets.registry` finds them; here they get their settings.

A plug-in that fails is left out and named: the jobs of all other kinds must go on.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from onthedot.model.targets.registry import plugins
from onthedot.targets.contract import Kind

__all__ = ["plugin_kinds"]


def plugin_kinds(settings: Mapping[str, Mapping[str, Any]]) -> tuple[list[Kind], dict[str, str]]:
    """The kinds of all plug-ins, each made with its table `[targets.NAME]`; and by name, why others can't be used."""
    found = plugins()
    broken = dict(found.broken)
    kinds = []
    for name, plugin in found.kinds.items():
        try:
            kinds.append(_checked(plugin.kind(dict(settings.get(name, {}))), plugin.spec))
        except Exception as error:
            broken[name] = f"{type(error).__name__}: {error}"
    for name in settings.keys() - found.kinds.keys() - broken.keys():  # not an error: all nodes may share one file
        near = difflib.get_close_matches(name, found.kinds, n=1)
        advice = f"Did you mean [targets.{near[0]}]?" if near else f"Installed: {', '.join(found.kinds) or 'none'}"
        broken[name] = f"is not installed, but has settings in [targets.{name}]. {advice}"
    return kinds, broken


def _checked(kind: Any, spec: type[Any]) -> Kind:
    if not isinstance(kind, Kind):
        raise TypeError(f"kind() returned {kind!r}, not a Kind")
    if kind.spec is not spec:
        raise TypeError(f"kind() returned a kind whose spec is {kind.spec!r}, not {spec!r}")
    tag = kind.tag
    for capability in kind.capabilities():
        if capability.partition(":")[0] != tag:
            raise ValueError(f"capability {capability!r} must be {tag!r} or start with '{tag}:'")
        if set(capability) & set("+@"):  # labels and destinations follow them (see `model.labels`)
            raise ValueError(f"capability {capability!r} must not contain '+' or '@'")
    return kind
