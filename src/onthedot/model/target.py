"""What is done: one struct per kind, told apart by `type`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from onthedot.model.struct import Strict

__all__ = [
    "MASK",
    "NOT_BUILT",
    "TARGET_TYPES",
    "CommandTarget",
    "FunctionTarget",
    "Target",
    "WebhookTarget",
    "requires",
    "target_type",
]

MASK = "••••••"
"""What a secret reads back as. Sent back in an update it means: keep the secret there is."""

NOT_BUILT = ("script", "container", "kubernetes", "queue", "lambda", "workflow")
TARGET_TYPES = ("webhook", "function", "command", *NOT_BUILT)


class WebhookTarget(Strict, frozen=True, kw_only=True, tag_field="type", tag="webhook", omit_defaults=True):
    url: Annotated[str, msgspec.Meta(max_length=8192)]
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] = "POST"
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    body: Any = None
    secret: str | None = None  # Standard Webhooks signing secret, "whsec_…"


class FunctionTarget(Strict, frozen=True, kw_only=True, tag_field="type", tag="function", omit_defaults=True):
    function: Annotated[str, msgspec.Meta(max_length=500)]  # "package.module:function"

    @property
    def module(self) -> str:
        return self.function.partition(":")[0]


class CommandTarget(Strict, frozen=True, kw_only=True, tag_field="type", tag="command", omit_defaults=True):
    command: Annotated[str, msgspec.Meta(max_length=200)]  # the name the operator registered it under


Target = WebhookTarget | FunctionTarget | CommandTarget


_TYPES: dict[type, str] = {
    kind: str(kind.__struct_config__.tag) for kind in (WebhookTarget, FunctionTarget, CommandTarget)
}


def target_type(target: Target) -> str:
    return _TYPES[type(target)]


def requires(target: Target) -> str:
    """What a node must offer to run this: any node sends webhooks, but not every node has every function."""
    match target:
        case WebhookTarget():
            return "webhook"
        case FunctionTarget():
            return f"function:{target.module}"
        case CommandTarget():
            return f"command:{target.command}"
