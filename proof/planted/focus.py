"""Users who do most of all what a bug concerns: a policy that one job in ten has would take dozens of seeds to meet."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import msgspec

from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.policy import Retry
from onthedot.model.targets import CommandTarget
from proof.sim import run, workload
from proof.sim.outside import COMMAND
from proof.sim.workload import Workload

__all__ = ["Focus", "focused"]

SHARE = 0.8
MORE = 2
"""So many times more jobs than a seed has otherwise."""
_DURATIONS = ("timeout", "completion_timeout", "expires_in", "jitter", "backoff", "max", "max_age", "every")


class Focus(msgspec.Struct, frozen=True, kw_only=True):
    """What most jobs have, durations in ms; and what their users do to them, instead of everything."""

    policy: dict[str, Any] = {}
    retry: dict[str, Any] = {}
    schedule: dict[str, Any] = {}  # of recurring jobs
    mood: str | None = None
    outside: bool = False  # their work goes on without its node
    paused: bool | None = None
    chains: bool = False  # they are followed by others
    verbs: tuple[str, ...] = ()


@contextmanager
def focused(focus: Focus | None) -> Iterator[None]:
    with ExitStack() as stack:
        if focus is not None:
            for name in ("a_recurring", "a_one_off"):
                draw = _drawn(focus, getattr(workload, name), recurring=name == "a_recurring")
                stack.enter_context(patch.object(workload, name, draw))
            stack.enter_context(patch.object(run, "Workload", partial(_busy, focus.chains)))
            stack.enter_context(patch.object(workload, "SHARED", 1.0))
            if focus.verbs:
                stack.enter_context(patch.object(workload, "VERBS", focus.verbs))
        yield


def _busy(chains: bool, world: Any, rng: random.Random, *, recurring: int, one_offs: int) -> Workload:
    workload = Workload(world, rng, recurring=MORE * recurring, one_offs=MORE * one_offs)
    if chains:
        workload.chain()
    return workload


def _drawn(focus: Focus, draw: Callable[..., JobSpec], *, recurring: bool) -> Callable[..., JobSpec]:
    def drawn(rng: random.Random, *args: Any) -> JobSpec:
        spec = draw(rng, *args)
        return _changed(focus, spec, recurring) if rng.random() < SHARE else spec

    return drawn


def _changed(focus: Focus, spec: JobSpec, recurring: bool) -> JobSpec:
    replace = msgspec.structs.replace
    retry = _retry(focus, spec.policy.retry, recurring)
    spec = replace(spec, policy=replace(spec.policy, retry=retry, **_timed(focus.policy)))
    if focus.outside:
        spec = replace(spec, target=CommandTarget(command=COMMAND))
    if isinstance(spec.target, CommandTarget):  # nobody calls back for it: users are told that it can't be
        spec = replace(spec, policy=replace(spec.policy, completion="answer"))
    if focus.mood is not None:
        spec = replace(spec, params={**spec.params, "mood": focus.mood})
    if recurring and focus.schedule:
        given = _timed(focus.schedule)
        if "every" in given or "cron" in given:
            given = {"every": None, "cron": None, **given}
        spec = replace(spec, schedule=replace(spec.schedule, **given))
    return spec if focus.paused is None else replace(spec, paused=focus.paused)


def _retry(focus: Focus, drawn: Retry, recurring: bool) -> Retry:
    """A plan excludes numbers, and numbers a plan; what fires once has no next slot."""
    given = {name: value for name, value in _timed(focus.retry).items() if recurring or name != "until"}
    if "plan" in given:
        return Retry(**given)
    return msgspec.structs.replace(drawn, plan=None, **given) if given else drawn


def _timed(given: dict[str, Any]) -> dict[str, Any]:
    return {name: Duration(value) if name in _DURATIONS else value for name, value in given.items()}
