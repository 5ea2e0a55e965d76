"""What is done: one struct per kind of target, told apart by `type`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onthedot.model.targets.aws_lambda import LambdaTarget
from onthedot.model.targets.command import CommandTarget
from onthedot.model.targets.container import ContainerTarget
from onthedot.model.targets.function import FunctionTarget
from onthedot.model.targets.kubernetes import KubernetesTarget
from onthedot.model.targets.opaque import OpaqueTarget
from onthedot.model.targets.queue import QueueTarget
from onthedot.model.targets.registry import known_union
from onthedot.model.targets.script import ScriptTarget
from onthedot.model.targets.spec import Flag, Target, TargetSpec, TargetSummary
from onthedot.model.targets.webhook import WebhookTarget
from onthedot.model.targets.workflow import WorkflowTarget

__all__ = [
    "CommandTarget",
    "ContainerTarget",
    "Flag",
    "FunctionTarget",
    "Known",
    "KubernetesTarget",
    "LambdaTarget",
    "OpaqueTarget",
    "QueueTarget",
    "ScriptTarget",
    "Target",
    "TargetSpec",
    "TargetSummary",
    "WebhookTarget",
    "WorkflowTarget",
]

if TYPE_CHECKING:
    Known = Target
else:

    def __getattr__(name: str) -> Any:
        """`Known`: the kinds that can be decoded here. msgspec reads the annotation `targets.Known` when it first makes
        a decoder, so plug-ins are loaded then; loaded when this is imported, they would import us in turn."""
        if name == "Known":
            return known_union()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
