"""Which kinds of target there are: those built in, and those of installed plug-ins.

A plug-in is a distribution with an entry point of the group `onthedot.targets`. The entry point has the name of the
kind, and leads to an object with two attributes: `spec`, the struct of its targets, and `kind(settings)`, which makes
the Kind (`targets.plugins`). Plug-ins are looked for once, when somebody needs to know all kinds: the first decoder of
jobs, or a type that is not built in. From then on the kinds are fixed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Union

import msgspec

from onthedot.model.targets.command import CommandTarget
from onthedot.model.targets.function import FunctionTarget
from onthedot.model.targets.spec import TargetSpec
from onthedot.model.targets.webhook import WebhookTarget

__all__ = ["GROUP", "Plugins", "find_spec", "known_union", "not_built", "plugins", "specs", "target_types"]

GROUP = "onthedot.targets"
BUILT_IN: dict[str, type[TargetSpec]] = {
    "webhook": WebhookTarget,
    "function": FunctionTarget,
    "command": CommandTarget,
}
PLANNED = ("script", "container", "kubernetes", "queue", "lambda", "workflow")
"""Further kinds of the contract: where one is neither built in nor installed, it is "not available", not unknown."""


class Plugins(msgspec.Struct, frozen=True):
    """What was found installed: objects by the name of their kinds, and why others can't be used."""

    kinds: dict[str, Any]
    broken: dict[str, str]


@lru_cache(maxsize=1)
def plugins() -> Plugins:
    """A plug-in that fails is left out and named: the jobs of all other kinds must go on."""
    from importlib.metadata import entry_points  # takes longer than all else here

    found = Plugins({}, {})
    taken = set(BUILT_IN)
    for entry in entry_points(group=GROUP):
        try:
            kind = entry.load()
            tag = _checked(entry.name, kind, taken)
        except (Exception, SystemExit) as error:
            found.broken[entry.name] = f"{type(error).__name__}: {error}"
            continue
        taken.add(tag)
        found.kinds[entry.name] = kind
    return found


def _checked(name: str, kind: Any, taken: set[str]) -> str:
    spec = kind.spec
    if not (isinstance(spec, type) and issubclass(spec, TargetSpec)):
        raise TypeError(f"its spec is {spec!r}, not a subclass of TargetSpec")
    tag = spec.__struct_config__.tag
    if not isinstance(tag, str) or not tag.isidentifier():
        raise ValueError(f"its tag is {tag!r}, not a word")
    if tag in taken:
        raise ValueError(f"there is a kind {tag!r} already")
    msgspec.json.Decoder(spec)  # its fields must be types that can be decoded
    if tag != name:
        raise ValueError(f"its entry point has another name than its tag {tag!r}")
    if not callable(kind.kind):
        raise TypeError(f"its kind is {kind.kind!r}, not a function")
    return tag


@lru_cache(maxsize=1)
def specs() -> dict[str, type[TargetSpec]]:
    """All kinds, by type."""
    more = (kind.spec for kind in plugins().kinds.values())
    return BUILT_IN | {spec.__struct_config__.tag: spec for spec in more}


def find_spec(target_type: Any) -> type[TargetSpec] | None:
    """Looks for plug-ins only if it must: a client that lists webhooks need not."""
    if not isinstance(target_type, str):
        return None
    return BUILT_IN.get(target_type) or specs().get(target_type)


@lru_cache(maxsize=1)
def known_union() -> Any:
    """All kinds as one type, as msgspec wants it."""
    return Union[tuple(specs().values())]  # noqa: UP007


def not_built() -> tuple[str, ...]:
    return tuple(kind for kind in PLANNED if kind not in specs())


def target_types() -> tuple[str, ...]:
    """Every type that a target may name, available or not."""
    return tuple(dict.fromkeys((*BUILT_IN, *PLANNED, *specs())))
