"""Functions of AWS Lambda."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from onthedot.errors import FieldProblem
from onthedot.model.body_template import CALLBACK, body_problems
from onthedot.model.field_note import FieldNote
from onthedot.model.targets.spec import Flag, TargetSpec, TargetSummary

__all__ = ["LambdaTarget"]

_FUNCTION = re.compile(
    r"(arn:aws[a-z-]*:lambda:[a-z0-9-]{5,30}:)?([0-9]{12}:)?(function:)?[A-Za-z0-9_-]{1,140}(:(\$LATEST|[A-Za-z0-9_-]{1,128}))?",
    re.ASCII,
)
ACCEPTED_FUNCTION = (
    "the name or the ARN of a Lambda function, optionally with a version or an alias: report, report:live"
)


class LambdaTarget(TargetSpec, frozen=True, kw_only=True, tag="lambda"):
    calls_back: ClassVar[bool] = True
    notes: ClassVar[Mapping[str, FieldNote]] = {
        "function": FieldNote("Name or ARN of the function.", {"function": "nightly-report"}),
        "invocation": FieldNote(
            "`request` waits for the answer, which is the result; `event` is done once AWS has accepted it.",
            {"invocation": "event"},
        ),
        "payload": FieldNote("JSON. Without a payload, the params are sent.", {"payload": {"day": 1}}),
    }
    flags: ClassVar[tuple[Flag, ...]] = (
        Flag("function", "Lambda: name or ARN of the function", ("--lambda",)),
        Flag("invocation", "Lambda: request (its answer is the result) or event [default: request]"),
        Flag("payload", "Lambda: event for the function, JSON or text [default: the params]"),
    )
    plain_fields: ClassVar[tuple[str, ...]] = ("function",)

    function: Annotated[str, msgspec.Meta(max_length=300)]
    invocation: Literal["event", "request"] = "request"
    payload: Any = None  # None: the params

    def problems(self) -> Iterator[FieldProblem]:
        if _FUNCTION.fullmatch(self.function) is None:
            given = self.function[:200]
            yield FieldProblem(path="target.function", message="not valid", given=given, accepted=ACCEPTED_FUNCTION)

    def problems_with(self, params: Mapping[str, Any], *, callback: bool = False) -> Iterator[FieldProblem]:
        yield from body_problems(self.payload, params, callback=callback, path="target.payload")
        if callback and self.payload is not None and not isinstance(self.payload, dict):
            accepted = f'an object, which gets the callback URL as "onthedot": {{"{CALLBACK}": …}}, or no payload'
            yield FieldProblem(path="target.payload", message="no room for the callback URL", accepted=accepted)

    def summary(self) -> TargetSummary:
        return TargetSummary("lambda", self.function, f"lambda {self.function}")

    @classmethod
    def how_to_offer(cls, name: str) -> str:
        return "set region of [aws] in a node's onthedot.toml, and install the client (docs/lambda.md)"
