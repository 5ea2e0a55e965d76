"""Everything that can be known to be wrong with a job before it is stored, all of it at once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

import msgspec

from onthedot.errors import FieldProblem, Invalid, NotAvailable
from onthedot.model.checks import check_spec
from onthedot.model.job import JobSpec
from onthedot.model.targets import Target
from onthedot.timing import check_schedule

__all__ = ["TargetRules", "check_job", "check_new", "gather", "refuse_callbacks", "refuse_channels"]


class TargetRules(Protocol):
    """The part of the targets that creating needs: what may be called at all, and what would fail here."""

    def check(self, target: Target, tenant: int) -> None: ...

    def problem(self, target: Target, tenant: int) -> str | None: ...

    def waiting_capabilities(self) -> list[str]: ...

    def destination(self, target: Target) -> str | None: ...


def check_job(
    spec: JobSpec,
    targets: TargetRules,
    *,
    tenant: int,
    now: int,
    before: JobSpec | None = None,
    timed: bool = True,
    calls_back: bool = True,
    channels: Collection[str] | None = None,
) -> None:
    """Invalid with every problem. `before` is the spec it replaces: a past `at` that did not change is no mistake.
    `calls_back`: receivers of calls can reach us. `channels`: those that alerts may name; None: not checked."""
    changed = before is None or before.schedule != spec.schedule
    try:  # nearly all jobs are in order: one check after the other, until the first objects
        check_spec(spec)
        check_schedule(spec.schedule, now=now, changed=changed, timed=timed)
        targets.check(spec.target, tenant)
        if not calls_back:
            refuse_callbacks(spec)
        if spec.alerts is not msgspec.UNSET:
            refuse_channels(spec, channels)
    except Invalid:
        pass
    else:
        return
    gather(
        lambda: check_spec(spec),
        lambda: check_schedule(spec.schedule, now=now, changed=changed, timed=timed),
        lambda: targets.check(spec.target, tenant),
        lambda: None if calls_back else refuse_callbacks(spec),
        lambda: refuse_channels(spec, channels),
    )


def refuse_channels(spec: JobSpec, channels: Collection[str] | None) -> None:
    """Channels that are in the settings of no node would never be told."""
    if spec.alerts is msgspec.UNSET or channels is None:
        return
    known = ", ".join(sorted(channels)) or "none: the settings define no channel ([channels.NAME])"
    problems = [
        FieldProblem(
            path=f"alerts.channels[{place}]",
            message="unknown channel",
            given=name,
            accepted=f"one of {known}" if channels else known,
        )
        for place, name in enumerate(spec.alerts.channels)
        if name not in channels
    ]
    if problems:
        raise Invalid(problems)


def refuse_callbacks(spec: JobSpec) -> None:
    if spec.policy.completion == "callback":
        raise Invalid.one(
            "policy.completion",
            "receivers can't call back: PUBLIC_URL is not set, and this server does not listen on loopback",
            given="callback",
            accepted="answer; or callback, once PUBLIC_URL is set to the URL under which receivers reach this API",
        )


def check_new(
    spec: JobSpec,
    targets: TargetRules,
    *,
    tenant: int,
    now: int,
    before: JobSpec | None = None,
    calls_back: bool = True,
    channels: Collection[str] | None = None,
) -> None:
    """All but whether its time has passed: that is judged by the store, where it is written. If something else is wrong
    too, it is told with the rest."""
    try:
        check_job(
            spec, targets, tenant=tenant, now=now, before=before, timed=False, calls_back=calls_back, channels=channels
        )
    except Invalid:
        check_job(spec, targets, tenant=tenant, now=now, before=before, calls_back=calls_back, channels=channels)
        raise


def gather(*checks: Callable[[], None], path: str = "") -> None:
    """Run all the checks and raise one Invalid with the problems of all of them: one per field, the first found."""
    problems: dict[str, FieldProblem] = {}
    for check in checks:
        try:
            check()
        except Invalid as invalid:
            for problem in invalid.problems:
                problems.setdefault(problem.path, problem)
    if problems:
        found = [_below(path, problem) for problem in problems.values()]
        every_one_not_available = all(problem.message.startswith("not available") for problem in found)
        raise NotAvailable(found) if every_one_not_available else Invalid(found)


def _below(path: str, problem: FieldProblem) -> FieldProblem:
    return msgspec.structs.replace(problem, path=f"{path}.{problem.path}") if path else problem
