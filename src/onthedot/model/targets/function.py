"""Python functions of modules that the operator registered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar

import msgspec

from onthedot.errors import FieldProblem
from onthedot.model.field_note import FieldNote
from onthedot.model.targets.spec import Flag, TargetSpec, TargetSummary

__all__ = ["FunctionTarget"]


class FunctionTarget(TargetSpec, frozen=True, kw_only=True, tag="function"):
    notes: ClassVar[Mapping[str, FieldNote]] = {
        "function": FieldNote(
            "A Python function that the operator registered, `package.module:name`.",
            {"function": "reports.tasks:nightly"},
        )
    }
    flags: ClassVar[tuple[Flag, ...]] = (Flag("function", "Python function to call, package.module:name"),)

    function: Annotated[str, msgspec.Meta(max_length=500)]  # "package.module:function"

    @property
    def module(self) -> str:
        return self.function.partition(":")[0]

    def capability(self) -> str:
        return f"function:{self.module}"

    def problems(self) -> Iterator[FieldProblem]:
        module, colon, function = self.function.partition(":")
        parts = [*module.split("."), *(function.split(".") if colon else ())]
        if not all(part.isidentifier() for part in parts):
            yield FieldProblem(
                path="target.function",
                message="not a valid function name",
                given=self.function[:200],
                accepted='"package.module:function", or the name under which an embedding program registered it',
            )

    def summary(self) -> TargetSummary:
        return TargetSummary("function", self.function, self.function)

    @classmethod
    def how_to_offer(cls, name: str) -> str:
        return f"start a node with FUNCTIONS={name}, or with a jobs file that uses it"
