"""What no single field can say of itself: zero durations that make no sense, tags that are there twice.

Whether a schedule can fire is `timing`'s to say, whether a target may be called is the targets'; this is about shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from onthedot.errors import FieldProblem, Invalid
from onthedot.model.duration import ACCEPTED_DURATIONS
from onthedot.model.job import JobSpec
from onthedot.model.policy import Policy

__all__ = ["check_spec"]


def check_spec(spec: JobSpec) -> None:
    """Raises Invalid with every problem."""
    problems = [*_policy(spec.policy), *(_tags(spec.tags) if spec.tags else ()), *spec.target.problems()]
    if spec.policy.completion == "callback" and not spec.target.calls_back:
        problems.append(
            FieldProblem(
                path="policy.completion",
                message=f"a {spec.target.type} gives its result when it ends, not by a callback",
                given="callback",
                accepted="answer",
            )
        )
    if problems:
        raise Invalid(problems)


@lru_cache(maxsize=256)
def _policy(policy: Policy) -> tuple[FieldProblem, ...]:
    """Cached: few jobs have a policy of their own."""
    return tuple(_zero_durations(policy))


def _zero_durations(policy: Policy) -> Iterator[FieldProblem]:
    positive = {
        "timeout": policy.timeout,
        "retry.backoff": policy.retry.backoff,
        "retry.max": policy.retry.max,
        "retry.max_age": policy.retry.max_age,
        "expires_in": policy.expires_in,
        "completion_timeout": policy.completion_timeout,
    }
    for name, duration in positive.items():
        if duration is not None and duration <= 0:
            yield FieldProblem(
                path=f"policy.{name}",
                message="must be more than zero",
                given=str(duration),
                accepted=ACCEPTED_DURATIONS,
            )


def _tags(tags: list[str]) -> Iterator[FieldProblem]:
    for index, tag in enumerate(tags):
        if tag in tags[:index]:
            yield FieldProblem(path=f"tags[{index}]", message="duplicate tag", given=tag, accepted="each tag once")
