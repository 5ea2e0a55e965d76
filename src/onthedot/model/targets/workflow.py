"""Workflows: an execution of AWS Step Functions, a run of an Airflow DAG, a workflow of Argo."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

import msgspec

from onthedot.errors import FieldProblem
from onthedot.model.body_template import body_problems
from onthedot.model.duration import DAY, Duration
from onthedot.model.field_note import FieldNote
from onthedot.model.targets.spec import Flag, TargetSpec, TargetSummary

__all__ = ["STEP_FUNCTIONS", "WorkflowTarget"]

STEP_FUNCTIONS = "stepfunctions"
_ENGINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x20\x7f]")


class WorkflowTarget(TargetSpec, frozen=True, kw_only=True, tag="workflow"):
    default_timeout: ClassVar[Duration | None] = Duration(DAY)
    notes: ClassVar[Mapping[str, FieldNote]] = {
        "engine": FieldNote(
            "The name of a workflow engine in the settings, or `stepfunctions`.", {"engine": "airflow"}
        ),
        "workflow": FieldNote("The DAG, workflow template or state machine to start.", {"workflow": "nightly_etl"}),
        "input": FieldNote("Its input. Without it, the params are sent.", {"input": {"day": 1}}),
    }
    flags: ClassVar[tuple[Flag, ...]] = (
        Flag("workflow", "Workflow: ARN of a state machine, ID of a DAG, or name of a workflow template"),
        Flag("engine", "Workflow: name of a configured engine, or stepfunctions"),
        Flag("input", "Workflow: input, a JSON object [default: the params]"),
    )
    plain_fields: ClassVar[tuple[str, ...]] = ("workflow",)

    engine: Annotated[str, msgspec.Meta(max_length=100)]  # the name that the operator configured it under
    workflow: Annotated[str, msgspec.Meta(max_length=500)]
    input: dict[str, Any] | None = None  # None: the params

    def capability(self) -> str:
        return f"{self.type}:{self.engine}"

    def problems(self) -> Iterator[FieldProblem]:
        if _ENGINE.fullmatch(self.engine) is None:
            accepted = f"the name of a configured engine, or {STEP_FUNCTIONS}"
            yield FieldProblem(path="target.engine", message="not valid", given=self.engine[:200], accepted=accepted)
        if not self.workflow or _CONTROL.search(self.workflow):
            accepted = "the ARN of a state machine, the ID of a DAG, or the name of a workflow template"
            yield FieldProblem(
                path="target.workflow", message="not valid", given=self.workflow[:200], accepted=accepted
            )

    def problems_with(self, params: Mapping[str, Any], *, callback: bool = False) -> Iterator[FieldProblem]:
        return body_problems(self.input, params, path="target.input")

    def summary(self) -> TargetSummary:
        what = f"{self.engine}/{self.workflow}"
        return TargetSummary("workflow", what, f"workflow {what}")

    @classmethod
    def how_to_offer(cls, name: str) -> str:
        table = "[aws] region" if name == STEP_FUNCTIONS else f"[workflows.{name}]"
        return f"set {table} in a node's onthedot.toml (docs/workflows.md)"
