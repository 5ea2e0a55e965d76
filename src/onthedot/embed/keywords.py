"""Keyword arguments of `job` and `add`: what all jobs of a scheduler have in common, and positional arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from onthedot.errors import FieldProblem, Invalid
from onthedot.model.job import JobSpec
from onthedot.model.policy import Policy
from onthedot.model.python_values import from_python

__all__ = ["DEFAULTS", "SharedKeywords", "params_of"]

_OF_ONE_JOB = frozenset({"key", "name", "schedule", "target", "policy", "params", "run_now", "paused"})
DEFAULTS = tuple(sorted({*Policy.__struct_fields__, *JobSpec.__struct_fields__} - _OF_ONE_JOB))
"""What `defaults` may name: the policy, and fields of a job that several may share."""


class SharedKeywords:
    """The zone and the defaults of a scheduler, for each job that does not say otherwise."""

    def __init__(self, tz: str | tzinfo | None, defaults: Mapping[str, Any] | None) -> None:
        unknown = [name for name in defaults or {} if name not in DEFAULTS]
        if unknown:
            accepted = ", ".join(DEFAULTS)
            raise Invalid(
                [FieldProblem(path=f"defaults.{name}", message="unknown", accepted=accepted) for name in unknown]
            )
        self.defaults = dict(defaults or {})
        self.tz: str | None = None if tz is None else from_python("tz", tz)

    def given(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """With what was left out."""
        words = {**self.defaults, **said}
        if self.tz is not None and words.get("tz") is None:
            words["tz"] = self.tz
        return words


def params_of(
    function: Callable[..., Any] | None, args: Sequence[Any] | None, params: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Arguments by name, as they are stored: positional ones get the names that the function gives them."""
    if not args:
        return params
    accepted = "params={…} by name"
    if function is None:
        raise Invalid.one("args", "only for functions", given=list(args), accepted=accepted)
    if isinstance(args, (str, bytes)):
        raise Invalid.one("args", "must be a list or tuple", given=args, accepted="[value, …]")
    try:
        bound = inspect.signature(function).bind_partial(*args, **(params or {}))
    except (TypeError, ValueError) as error:
        raise Invalid.one("args", f"do not match the function: {error}", given=list(args), accepted=accepted) from None
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        elif kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            problem = f"are stored by name, and {name!r} can't be given by name"
            raise Invalid.one("args", problem, given=list(args), accepted=accepted)
        else:
            named[name] = value
    return named
