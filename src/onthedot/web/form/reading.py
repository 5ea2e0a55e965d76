"""From what was typed to the JSON of a job, and back.

The JSON that the form began with is its base: fields that the form does not show are kept as they are in it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import msgspec

from onthedot.errors import FieldProblem, Invalid
from onthedot.model.decoding import convert
from onthedot.model.job import JobSpec
from onthedot.model.schedule import Schedule
from onthedot.web.form.fields import KINDS_OF_SCHEDULE, SCHEDULE, all_inputs, target_inputs
from onthedot.web.form.inputs import FieldMistake, FormInput, text_of, value_of

__all__ = ["SCHEDULE_KIND", "TARGET_KIND", "job_of", "loose_of", "pretty", "schedule_of", "texts_of"]

SCHEDULE_KIND, TARGET_KIND = "schedule-kind", "target-kind"
_TIMES = frozenset(f"schedule.{kind}" for kind in KINDS_OF_SCHEDULE)


def texts_of(loose: Mapping[str, Any]) -> dict[str, str]:
    """What the inputs hold for this job."""
    texts = {entry.name: text_of(entry, _get(loose, entry.path)) for entry in all_inputs().values()}
    schedule, target = loose.get("schedule") or {}, loose.get("target") or {}
    texts[SCHEDULE_KIND] = next((kind for kind in KINDS_OF_SCHEDULE if schedule.get(kind) is not None), "cron")
    kind = str(target.get("type") or "")
    texts[TARGET_KIND] = kind if kind in target_inputs() else next(iter(target_inputs()))
    for entry in target_inputs().get(kind, ()):
        texts[entry.name] = text_of(entry, _get(loose, entry.path))
    return texts


def loose_of(typed: Mapping[str, str], base: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of the job. Raises Invalid with every text that its input can't take."""
    made: dict[str, Any] = copy.deepcopy(dict(base))
    problems: list[FieldProblem] = []
    kind = typed.get(TARGET_KIND, "")
    old = made.get("target") or {}
    made["target"] = {**(old if old.get("type") == kind else {}), "type": kind}
    chosen = f"schedule.{typed.get(SCHEDULE_KIND, '')}"
    for entry in (*all_inputs().values(), *target_inputs().get(kind, ())):
        text = "" if entry.path in _TIMES and entry.path != chosen else typed.get(entry.name, "")
        try:
            _put(made, entry, value_of(entry, text))
        except FieldMistake as mistake:
            problems.append(mistake.problem)
    if problems:
        raise Invalid(problems)
    return made


def job_of(loose: Mapping[str, Any]) -> JobSpec:
    """The job, decoded as strictly as by the API. Raises Invalid with every wrong field."""
    untimed: tuple[FieldProblem, ...] = ()
    try:
        _timed(loose)
    except Invalid as invalid:
        untimed = tuple(invalid.problems)
    try:
        spec = convert(loose, JobSpec)
    except Invalid as invalid:  # a schedule that is empty is not also called missing
        raise Invalid(
            [*untimed, *(each for each in invalid.problems if not untimed or each.path != "schedule")]
        ) from None
    if untimed:
        raise Invalid(untimed)
    return spec


def schedule_of(loose: Mapping[str, Any]) -> Schedule:
    """Its schedule alone."""
    return convert(_timed(loose), Schedule, path="schedule")


def _timed(loose: Mapping[str, Any]) -> Mapping[str, Any]:
    schedule: Mapping[str, Any] = loose.get("schedule") or {}
    if not any(schedule.get(kind) is not None for kind in ("rrule", *KINDS_OF_SCHEDULE)):
        wanted = "; ".join(f"{entry.path.removeprefix('schedule.')}: {entry.label.lower()}" for entry in SCHEDULE[:4])
        raise Invalid.one("schedule", "has no time: fill in the schedule", accepted=wanted)
    return schedule


def _get(loose: Mapping[str, Any], path: str) -> Any:
    value: Any = loose
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _put(made: dict[str, Any], entry: FormInput, value: Any) -> None:
    """A field that is left empty is left out, so that it has its default; so is an object that nothing is in."""
    *above, last = entry.path.split(".")
    if value is None or (value is False and _get(made, entry.path) in (None, False)):
        _drop(made, above, last)
        return
    place = made
    for name in above:
        inner = place.get(name)
        place[name] = place = dict(inner) if isinstance(inner, dict) else {}
    place[last] = value


def _drop(made: dict[str, Any], above: list[str], last: str) -> None:
    places = [made]
    for name in above:
        inner = places[-1].get(name)
        if not isinstance(inner, dict):
            return
        places[-1][name] = inner = dict(inner)
        places.append(inner)
    places[-1].pop(last, None)
    for name, outer, inner in zip(reversed(above), reversed(places[:-1]), reversed(places[1:]), strict=True):
        if not inner:
            outer.pop(name, None)


def pretty(loose: Mapping[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(loose), indent=2).decode()
