"""Labels: what a job asks of a node besides what its target needs, such as `gpu` or `eu`.

A run requires its target's capability and its job's labels as one text, which claims compare for equality:
`function:reports+eu,gpu`. The labels are sorted. `+` is in no name of a function, command or broker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec

__all__ = [
    "ACCEPTED_LABELS",
    "LABEL_PATTERN",
    "MOST_OF_JOB",
    "MOST_OF_NODE",
    "Label",
    "NodeOffer",
    "Requirement",
    "missing_labels",
    "read_requires",
    "type_of",
    "with_labels",
]

LABEL_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,62}\Z"
ACCEPTED_LABELS = "1 to 63 lower-case letters, digits, dots, underscores and hyphens, the first one a letter or digit"
MOST_OF_JOB = 8
MOST_OF_NODE = 32
Label = Annotated[str, msgspec.Meta(pattern=LABEL_PATTERN, description=ACCEPTED_LABELS)]

_PLUS = "+"
_SET = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}(,[a-z0-9][a-z0-9._-]{0,62})*")


class Requirement(msgspec.Struct, frozen=True):
    """What a run requires of a node."""

    capability: str
    labels: tuple[str, ...] = ()


class NodeOffer(msgspec.Struct, frozen=True):
    """What a live node has."""

    capabilities: frozenset[str]
    labels: frozenset[str] = frozenset()


def with_labels(capability: str, labels: Sequence[str]) -> str:
    """What a run requires of a node: nothing but the capability, if its job asks for no labels."""
    return f"{capability}{_PLUS}{','.join(sorted(set(labels)))}" if labels else capability


def read_requires(requires: str) -> Requirement:
    """The same, apart; of a run that waits for its destination, too."""
    text = requires.partition("@")[0]
    capability, _, labels = text.rpartition(_PLUS)
    if not capability or _SET.fullmatch(labels) is None:
        return Requirement(text)
    return Requirement(capability, tuple(labels.split(",")))


def type_of(requires: str) -> str:
    """The type of its target: "function" of "function:reports+gpu", "webhook" of "webhook@https://…"."""
    return requires.partition(":")[0].partition("@")[0].partition(_PLUS)[0]


def missing_labels(needed: Requirement, nodes: Iterable[NodeOffer]) -> tuple[str, ...] | None:
    """Which labels the node lacks that comes closest of those that can run it; None: there is one that lacks nothing.
    All of them, if none can run it."""
    wanted = set(needed.labels)
    able = [node.labels for node in nodes if needed.capability in node.capabilities]
    lacking = min((sorted(wanted - labels) for labels in able), key=lambda found: (len(found), found), default=None)
    if lacking is None:
        return needed.labels
    return tuple(lacking) or None
