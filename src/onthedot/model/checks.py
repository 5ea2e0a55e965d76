"""What no single field can say of itself: zero durations that make no sense, tags that are there twice.

Whether a schedule can fire is `timing`'s to say, whether a target may be called is the targets'; this is about shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from msgspec import UNSET

from onthedot.errors import FieldProblem, Invalid
from onthedot.model.alerts import ACCEPTED_QUIET, JobAlerts, read_quiet
from onthedot.model.chains import chain_problems
from onthedot.model.duration import ACCEPTED_DURATIONS, Duration
from onthedot.model.job import JobSpec
from onthedot.model.policy import BY_FORMULA, Policy, Retry

__all__ = ["check_spec"]


def check_spec(spec: JobSpec) -> None:
    """Raises Invalid with every problem."""
    problems = [*_policy(spec.policy), *(_tags(spec.tags) if spec.tags else ()), *spec.target.problems()]
    if spec.policy.completion == "callback" and not spec.target.calls_back:
        problems.append(
            FieldProblem(
                path="policy.completion",
                message=f"a {spec.target.type} target reports its result when it ends, not by a callback",
                given="callback",
                accepted="answer",
            )
        )
    problems += spec.target.problems_with(spec.params, callback=spec.policy.completion == "callback")
    if spec.chained:
        problems += chain_problems(spec)
    if spec.policy.retry.until == "next_slot" and spec.schedule.one_off:
        problems.append(_no_next_slot())
    if spec.alerts is not UNSET:
        problems += _alerts(spec.alerts)
    if spec.objective is not UNSET and spec.objective.late <= 0:
        problems.append(_not_zero("objective.late", spec.objective.late))
    if problems:
        raise Invalid(problems)


@lru_cache(maxsize=256)
def _policy(policy: Policy) -> tuple[FieldProblem, ...]:
    """Cached: few jobs have a policy of their own."""
    return (*_zero_durations(policy), *_beside_a_plan(policy.retry), *_two_limits(policy))


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
        if duration is not None and duration is not UNSET and duration <= 0:
            yield _not_zero(f"policy.{name}", duration)


def _not_zero(path: str, given: Duration) -> FieldProblem:
    return FieldProblem(path=path, message="must be more than zero", given=str(given), accepted=ACCEPTED_DURATIONS)


def _alerts(alerts: JobAlerts) -> Iterator[FieldProblem]:
    for name in ("late", "too_long", "repeat"):
        duration = getattr(alerts, name)
        if duration is not None and duration <= 0:
            yield _not_zero(f"alerts.{name}", duration)
    if alerts.quiet is not None and read_quiet(alerts.quiet) is None:
        yield FieldProblem(
            path="alerts.quiet", message="not a valid time span", given=alerts.quiet, accepted=ACCEPTED_QUIET
        )
    for place, channel in enumerate(alerts.channels):
        if channel in alerts.channels[:place]:
            yield FieldProblem(
                path=f"alerts.channels[{place}]",
                message="duplicate channel",
                given=channel,
                accepted="each channel once",
            )


def _beside_a_plan(retry: Retry) -> Iterator[FieldProblem]:
    if retry.plan is UNSET:
        return
    for name in BY_FORMULA:
        if (given := getattr(retry, name)) is not UNSET:
            yield FieldProblem(
                path=f"policy.retry.{name}",
                message=f"can't be combined with the plan {retry.plan!r}, which sets the times of retries",
                given=str(given),
                accepted=f"plan, or {', '.join(BY_FORMULA)}; max_age and until can be used with both",
            )


def _two_limits(policy: Policy) -> Iterator[FieldProblem]:
    if policy.max_running is UNSET:
        return
    if policy.concurrency is not UNSET:
        yield FieldProblem(
            path="policy.max_running",
            message="can't be combined with a concurrency group",
            given=str(policy.max_running),
            accepted="either concurrency, for several jobs, or max_running, for this job alone",
        )
    if policy.overlap != "allow" and policy.max_running > 1:
        yield FieldProblem(
            path="policy.max_running",
            message=f"with overlap {policy.overlap!r} a job has one run at a time",
            given=str(policy.max_running),
            accepted="1, or overlap allow",
        )


def _no_next_slot() -> FieldProblem:
    return FieldProblem(
        path="policy.retry.until",
        message="a job that fires once has no next slot",
        given="next_slot",
        accepted="max_age, which limits the age of a run",
    )


def _tags(tags: list[str]) -> Iterator[FieldProblem]:
    for index, tag in enumerate(tags):
        if tag in tags[:index]:
            yield FieldProblem(path=f"tags[{index}]", message="duplicate tag", given=tag, accepted="each tag once")
