"""Commands that the operator defined under a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar

import msgspec

from onthedot.errors import FieldProblem
from onthedot.model.field_note import FieldNote
from onthedot.model.targets.spec import Flag, TargetSpec, TargetSummary

__all__ = ["CommandTarget"]


class CommandTarget(TargetSpec, frozen=True, kw_only=True, tag="command"):
    notes: ClassVar[Mapping[str, FieldNote]] = {
        "command": FieldNote("The name of a command in the settings.", {"command": "disk-space"})
    }
    flags: ClassVar[tuple[Flag, ...]] = (Flag("command", "Registered command to run, by name"),)

    command: Annotated[str, msgspec.Meta(max_length=200)]  # the name the operator registered it under

    def capability(self) -> str:
        return f"command:{self.command}"

    def problems(self) -> Iterator[FieldProblem]:
        if not self.command.strip():
            yield FieldProblem(path="target.command", message="is empty", accepted="the name of a registered command")

    def summary(self) -> TargetSummary:
        return TargetSummary("command", self.command, f"$ {self.command}")

    @classmethod
    def how_to_offer(cls, name: str) -> str:
        return f"define [commands.{name}] in a node's onthedot.toml"
