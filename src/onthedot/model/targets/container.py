"""Containers: an image that the operator allows, run by a container engine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from onthedot.errors import FieldProblem
from onthedot.model.duration import DAY, Duration
from onthedot.model.field_note import FieldNote
from onthedot.model.image import ACCEPTED_IMAGES, ImageName
from onthedot.model.size import ACCEPTED_SIZES, format_size, read_size
from onthedot.model.targets.spec import Flag, TargetSpec, TargetSummary

__all__ = ["ContainerTarget"]

LEAST_MEMORY = 6 << 20  # an engine refuses less
MOST_ARGS, LONGEST_ARG, MOST_ENV = 100, 4096, 100
LONGEST_PARAMS = 100_000
"""Bytes of JSON: Linux allows no more than 128 KB for one variable."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}", re.ASCII)


class ContainerTarget(TargetSpec, frozen=True, kw_only=True, tag="container"):
    default_timeout: ClassVar[Duration | None] = Duration(DAY)
    notes: ClassVar[Mapping[str, FieldNote]] = {
        "image": FieldNote("An image that the operator allows.", {"image": "registry.example/report:1.4"}),
        "command": FieldNote("Program and arguments, instead of those of the image.", {"command": ["report", "--all"]}),
        "env": FieldNote("Environment variables.", {"env": {"MODE": "fast"}}),
        "memory": FieldNote("The memory limit. By default, as much as the operator allows.", {"memory": "512M"}),
        "cpus": FieldNote("The number of CPUs. By default, as many as the operator allows.", {"cpus": 0.5}),
        "network": FieldNote("Whether it may use the network, if the operator allows that.", {"network": True}),
        "pull": FieldNote("When the image is pulled.", {"pull": "always"}),
    }
    flags: ClassVar[tuple[Flag, ...]] = (
        Flag("image", "Container: image to run"),
        Flag("command", "Container: one word of its command; repeatable", ("--arg",)),
        Flag("env", "Container: environment variable NAME=value; repeatable", divider="="),
        Flag("memory", "Container: memory limit"),
        Flag("cpus", "Container: number of CPUs"),
        Flag("network", "Container: allow network access, true or false [default: false]"),
        Flag("pull", "Container: pull the image if missing, always or never [default: missing]"),
    )
    plain_fields: ClassVar[tuple[str, ...]] = ("image",)

    image: Annotated[str, msgspec.Meta(max_length=500)]
    command: Annotated[list[str], msgspec.Meta(max_length=MOST_ARGS)] = msgspec.field(default_factory=list)
    env: dict[str, str] = msgspec.field(default_factory=dict)
    memory: Annotated[str, msgspec.Meta(max_length=20)] | None = None  # None: as much as the operator allows
    cpus: Annotated[float, msgspec.Meta(ge=0.01, le=256)] | None = None
    network: bool = False
    pull: Literal["missing", "always", "never"] = "missing"

    @property
    def image_name(self) -> ImageName:
        return ImageName.parse(self.image)

    @property
    def memory_bytes(self) -> int | None:
        return None if self.memory is None else read_size(self.memory)

    def problems(self) -> Iterator[FieldProblem]:
        try:
            ImageName.parse(self.image)
        except ValueError:
            yield _problem("image", "not a valid name of an image", self.image[:200], ACCEPTED_IMAGES)
        try:
            if self.memory_bytes is not None and self.memory_bytes < LEAST_MEMORY:
                yield _problem("memory", "too small", self.memory, f"at least {format_size(LEAST_MEMORY)}")
        except ValueError:
            yield _problem("memory", "not a valid size", self.memory, ACCEPTED_SIZES)
        for place, word in enumerate(self.command):
            if len(word) > LONGEST_ARG or "\x00" in word:
                accepted = f"at most {LONGEST_ARG} characters, without NUL"
                yield _problem(f"command[{place}]", "not valid", None, accepted)
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

    def problems_with(self, params: Mapping[str, Any], *, callback: bool = False) -> Iterator[FieldProblem]:
        if len(msgspec.json.encode(params)) > LONGEST_PARAMS:
            accepted = f"with a container: at most {LONGEST_PARAMS} bytes of JSON, which is what a variable can hold"
            yield FieldProblem(path="params", message="too large", accepted=accepted)

    def summary(self) -> TargetSummary:
        what = " ".join((self.image, *self.command))[:200]
        return TargetSummary("container", what, f"container {what}")

    @classmethod
    def how_to_offer(cls, name: str) -> str:
        return "run `onthedot doctor` on a node with [containers] images: it says whether its container engine answers"


def _problem(field: str, message: str, given: str | None, accepted: str) -> FieldProblem:
    return FieldProblem(path=f"target.{field}", message=message, given=given, accepted=accepted)
