"""Jobs of a Kubernetes cluster: an image that the operator allows, or a pod template that the operator registered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

import msgspec

from onthedot.errors import FieldProblem
from onthedot.model.duration import ACCEPTED_DURATIONS, DAY, HOUR, Duration
from onthedot.model.field_note import FieldNote
from onthedot.model.image import ACCEPTED_IMAGES, ImageName
from onthedot.model.quantity import ACCEPTED_QUANTITIES, read_quantity
from onthedot.model.struct import Strict
from onthedot.model.targets.spec import Flag, TargetSpec, TargetSummary

__all__ = ["KubernetesTarget", "PodResources"]

MOST_ARGS, LONGEST_ARG, MOST_ENV = 100, 4096, 100
LONGEST_KEEP = 7 * DAY
LONGEST_PARAMS = 100_000
"""Bytes of JSON: Linux allows no more than 128 KB for one variable."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}", re.ASCII)
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)
_RESOURCE = re.compile(
    r"cpu|memory|ephemeral-storage|[a-z0-9][-a-z0-9.]{0,252}/[A-Za-z0-9][-A-Za-z0-9_.]{0,62}", re.ASCII
)
_OF_IMAGES = ("command", "args", "env", "resources", "service_account", "namespace")

Amounts = dict[str, str | float]


class PodResources(Strict, frozen=True, kw_only=True, omit_defaults=True):
    """As the resources of a container: `{"limits": {"memory": "256Mi"}}`."""

    limits: Amounts = msgspec.field(default_factory=dict)
    requests: Amounts = msgspec.field(default_factory=dict)


class KubernetesTarget(TargetSpec, frozen=True, kw_only=True, tag="kubernetes"):
    default_timeout: ClassVar[Duration | None] = Duration(DAY)
    notes: ClassVar[Mapping[str, FieldNote]] = {
        "template": FieldNote("The name of a pod template that the operator registered.", {"template": "report"}),
        "image": FieldNote(
            "An image that the operator allows, instead of a template.", {"image": "registry.example/report:1.4"}
        ),
        "command": FieldNote("Entry point of the container.", {"command": ["python"]}),
        "args": FieldNote("Arguments of the container.", {"args": ["report.py"]}),
        "env": FieldNote("Environment variables.", {"env": {"MODE": "fast"}}),
        "resources": FieldNote(
            "Limits and requests. By default, as much as the operator allows.",
            {"resources": {"limits": {"memory": "512Mi", "cpu": "500m"}}},
        ),
        "service_account": FieldNote("A service account that the operator allows.", {"service_account": "reports"}),
        "namespace": FieldNote("A namespace that the operator allows.", {"namespace": "batch"}),
        "keep_failed": FieldNote("How long a failed Job stays in the cluster.", {"keep_failed": "6h"}),
    }
    flags: ClassVar[tuple[Flag, ...]] = (
        Flag("image", "Kubernetes: image to run as a Job", ("--kubernetes-image",)),
        Flag("template", "Kubernetes: pod template of the operator", ("--kubernetes-template",), chooses=True),
        Flag("command", "Kubernetes: one word that replaces the entrypoint; repeatable", ("--entrypoint",)),
        Flag("args", "Kubernetes: one argument; repeatable", ("--arg",)),
        Flag("env", "Kubernetes: environment variable NAME=value; repeatable", divider="="),
        Flag("namespace", "Kubernetes: namespace"),
        Flag("service_account", "Kubernetes: service account"),
        Flag("keep_failed", "Kubernetes: how long a failed Job is kept [default: 1h]"),
    )
    plain_fields: ClassVar[tuple[str, ...]] = ("image",)

    template: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    image: Annotated[str, msgspec.Meta(max_length=500)] | None = None
    command: Annotated[list[str], msgspec.Meta(max_length=MOST_ARGS)] = msgspec.field(default_factory=list)
    args: Annotated[list[str], msgspec.Meta(max_length=MOST_ARGS)] = msgspec.field(default_factory=list)
    env: dict[str, str] = msgspec.field(default_factory=dict)
    resources: PodResources | None = None  # None: as much as the operator allows
    service_account: Annotated[str, msgspec.Meta(max_length=253)] | None = None
    namespace: Annotated[str, msgspec.Meta(max_length=63)] | None = None
    keep_failed: Duration = Duration(HOUR)

    @property
    def image_name(self) -> ImageName | None:
        return None if self.image is None else ImageName.parse(self.image)

    def problems(self) -> Iterator[FieldProblem]:
        if (self.image is None) == (self.template is None):
            accepted = "exactly one of image and template (the name of a template of the operator)"
            message = "required" if self.image is None else "can't be combined with target.template"
            yield _problem("image", message, self.image, accepted)
        if self.template is not None:
            for name in _OF_IMAGES:
                if getattr(self, name):
                    accepted = "only with image: a template says it itself"
                    yield _problem(name, "can't be combined with target.template", None, accepted)
        if self.image is not None:
            try:
                ImageName.parse(self.image)
            except ValueError:
                yield _problem("image", "not a valid name of an image", self.image[:200], ACCEPTED_IMAGES)
        if self.namespace is not None and not _LABEL.fullmatch(self.namespace):
            yield _problem("namespace", "not a valid name", self.namespace, "lower-case letters, digits and -")
        if self.service_account is not None and not _SUBDOMAIN.fullmatch(self.service_account):
            accepted = "lower-case letters, digits, - and ."
            yield _problem("service_account", "not a valid name", self.service_account, accepted)
        if self.keep_failed > LONGEST_KEEP:
            accepted = f"at most {Duration(LONGEST_KEEP)}; {ACCEPTED_DURATIONS}"
            yield _problem("keep_failed", "too long", str(self.keep_failed), accepted)
        yield from self._word_problems()
        yield from self._env_problems()
        yield from self._resource_problems()

    def _word_problems(self) -> Iterator[FieldProblem]:
        for field in ("command", "args"):
            for place, word in enumerate(getattr(self, field)):
                if len(word) > LONGEST_ARG or "\x00" in word:
                    accepted = f"at most {LONGEST_ARG} characters, without NUL"
                    yield _problem(f"{field}[{place}]", "not valid", None, accepted)

    def _env_problems(self) -> Iterator[FieldProblem]:
        if len(self.env) > MOST_ENV:
            yield _problem("env", "too many variables", None, f"at most {MOST_ENV}")
        for name, value in self.env.items():
            if not _VARIABLE.fullmatch(name):
                yield _problem(f"env.{name[:100]}", "not a valid name", name[:100], "letters, digits and _")
            elif name.startswith("ONTHEDOT_"):
                yield _problem(f"env.{name}", "reserved", None, "any name without the prefix ONTHEDOT_")
            if len(value) > LONGEST_ARG or "\x00" in value:
                accepted = f"at most {LONGEST_ARG} characters, without NUL"
                yield _problem(f"env.{name[:100]}", "not valid", None, accepted)

    def _resource_problems(self) -> Iterator[FieldProblem]:
        given = self.resources or PodResources()
        for field, amounts in (("limits", given.limits), ("requests", given.requests)):
            for name, amount in amounts.items():
                path = f"resources.{field}.{name[:100]}"
                if not _RESOURCE.fullmatch(name):
                    accepted = "cpu, memory, ephemeral-storage, or a name with a domain such as nvidia.com/gpu"
                    yield _problem(path, "not a resource", name[:100], accepted)
                    continue
                try:
                    read_quantity(amount)
                except ValueError:
                    yield _problem(path, "not a valid amount", str(amount)[:50], ACCEPTED_QUANTITIES)

    def problems_with(self, params: Mapping[str, Any], *, callback: bool = False) -> Iterator[FieldProblem]:
        if len(msgspec.json.encode(params)) > LONGEST_PARAMS:
            accepted = f"with kubernetes: at most {LONGEST_PARAMS} bytes of JSON, which is what a variable can hold"
            yield FieldProblem(path="params", message="too large", accepted=accepted)

    def summary(self) -> TargetSummary:
        what = f"template {self.template}" if self.image is None else " ".join((self.image, *self.command, *self.args))
        return TargetSummary("kubernetes", what[:200], f"kubernetes {what[:200]}")

    @classmethod
    def how_to_offer(cls, name: str) -> str:
        return "run `onthedot doctor` on a node with [kubernetes]: it says whether its cluster can be used"


def _problem(field: str, message: str, given: str | None, accepted: str) -> FieldProblem:
    return FieldProblem(path=f"target.{field}", message=message, given=given, accepted=accepted)
