"""Which kinds of target there are: those built in, and those of installed plug-ins.

A plug-in is a distribution with an entry point of the group `onthedot.targets`. The entry point has the name of the
kind, and leads to an object with two attributes: `spec`, the struct of its targets, and `kind(settings)`, which makes
the Kind (`targets.plugins`). Plug-ins are looked for once, when somebody needs to know all kinds: the first decoder of
jobs, or a type that is not built in. From then on the kinds are fixed.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple, Union

import msgspec

from onthedot.model.targets.spec import TargetSpec

__all__ = [
    "BUILT_IN",
    "GROUP",
    "Plugins",
    "built_in_specs",
    "find_spec",
    "known_union",
    "load",
    "not_built",
    "plugins",
    "specs",
    "target_types",
]

GROUP = "onthedot.targets"


class BuiltIn(NamedTuple):
    """`module:name` of a kind's two classes. Names, not imports: only a node loads what carries a target out."""

    spec: str  # in `onthedot.model.targets`
    kind: str  # in `onthedot.targets`; its classmethod `of` makes it


BUILT_IN = {
    "webhook": BuiltIn("webhook:WebhookTarget", "webhook.kind:Webhooks"),
    "function": BuiltIn("function:FunctionTarget", "function.kind:Functions"),
    "command": BuiltIn("command:CommandTarget", "command.kind:Commands"),
    "queue": BuiltIn("queue:QueueTarget", "queue.kind:Queues"),
    "script": BuiltIn("script:ScriptTarget", "script.kind:Scripts"),
    "container": BuiltIn("container:ContainerTarget", "container.kind:Containers"),
    "kubernetes": BuiltIn("kubernetes:KubernetesTarget", "kubernetes.kind:KubernetesJobs"),
    "lambda": BuiltIn("aws_lambda:LambdaTarget", "aws_lambda.kind:Lambdas"),
    "workflow": BuiltIn("workflow:WorkflowTarget", "workflow.kind:Workflows"),
    "checkin": BuiltIn("checkin:CheckinTarget", "checkin.kind:Checkins"),
}
PLANNED: tuple[str, ...] = ()
"""Further kinds of the contract: where one is neither built in nor installed, it is "not available", not unknown."""


def load(package: str, place: str) -> Any:
    """The object `module:name` of a package."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"{package}.{module}"), name)


@lru_cache(maxsize=1)
def built_in_specs() -> dict[str, type[TargetSpec]]:
    return {name: load("onthedot.model.targets", kind.spec) for name, kind in BUILT_IN.items()}


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
        raise TypeError(f"its spec must be a subclass of TargetSpec, not {spec!r}")
    tag = spec.__struct_config__.tag
    if not isinstance(tag, str) or not tag.isidentifier():
        raise ValueError(f"its tag must be a single word, not {tag!r}")
    if tag in taken:
        raise ValueError(f"a target type {tag!r} already exists")
    msgspec.json.Decoder(spec)  # its fields must be types that can be decoded
    if tag != name:
        raise ValueError(f"its entry point must be named {tag!r}, like its tag")
    if not callable(kind.kind):
        raise TypeError(f"its kind must be a function, not {kind.kind!r}")
    return tag


@lru_cache(maxsize=1)
def specs() -> dict[str, type[TargetSpec]]:
    """All kinds, by type."""
    more = (kind.spec for kind in plugins().kinds.values())
    return built_in_specs() | {spec.__struct_config__.tag: spec for spec in more}


def find_spec(target_type: Any) -> type[TargetSpec] | None:
    """Looks for plug-ins only if it must: a client that lists webhooks need not."""
    if not isinstance(target_type, str):
        return None
    return built_in_specs().get(target_type) or specs().get(target_type)


@lru_cache(maxsize=1)
def known_union() -> Any:
    """All kinds as one type, as msgspec wants it."""
    return Union[tuple(specs().values())]  # noqa: UP007


def not_built() -> tuple[str, ...]:
    return tuple(kind for kind in PLANNED if kind not in specs())


def target_types() -> tuple[str, ...]:
    """Every type that a target may name, available or not."""
    return tuple(dict.fromkeys((*BUILT_IN, *PLANNED, *specs())))
