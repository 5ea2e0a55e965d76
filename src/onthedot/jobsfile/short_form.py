"""The short form of a job in a jobs file: a function, its interval and start date."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec

from onthedot.errors import Invalid
from onthedot.model.decoding import convert
from onthedot.model.duration import ACCEPTED_DURATIONS, Duration
from onthedot.model.job import ACCEPTED_KEYS, KEY_PATTERN, JobSpec
from onthedot.model.policy import Policy
from onthedot.model.schedule import Schedule
from onthedot.model.struct import Strict
from onthedot.model.targets import FunctionTarget

__all__ = ["WRITTEN_AS", "ShortJob", "from_short_form", "is_short_form"]

MODULE = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z"
WRITTEN_AS = {
    "key": "identifier",
    "schedule": "periodicity",
    "schedule.every": "periodicity",
    "schedule.cron": "periodicity",
    "schedule.start": "start_date",
    "schedule.end": "end_date",
    "target": "path",
    "target.function": "path",
    "policy.timeout": "timeout",
    "params": "arguments",
}
"""Maps fields of the full form to fields of the short form."""


class ShortJob(Strict, frozen=True, kw_only=True):
    identifier: Annotated[str, msgspec.Meta(pattern=KEY_PATTERN, description=ACCEPTED_KEYS)]
    path: Annotated[str, msgspec.Meta(pattern=MODULE, description="a Python module, such as jobs.functions")]
    function_name: Annotated[
        str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\Z", description="the name of a function in that module")
    ]
    periodicity: str | int | float
    timeout: Duration | None = None
    start_date: str | None = None
    end_date: str | None = None
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)


def is_short_form(item: Any) -> bool:
    return isinstance(item, dict) and bool({"identifier", "function_name", "periodicity"} & set(item))


def from_short_form(item: Any, path: str) -> JobSpec:
    short = convert(item, ShortJob, path=path)
    return JobSpec(
        key=short.identifier,
        schedule=_schedule(short, path),
        target=FunctionTarget(function=f"{short.path}:{short.function_name}"),
        policy=Policy(timeout=short.timeout),
        params=short.arguments,
    )


def _schedule(short: ShortJob, path: str) -> Schedule:
    """A duration counted from `start_date`, or a cron expression, which contains spaces or starts with @."""
    text = short.periodicity
    if isinstance(text, str) and re.search(r"^@|\S\s+\S", text.strip()):
        return Schedule(cron=text.strip(), start=short.start_date, end=short.end_date)
    try:
        every = Duration.parse(text)
    except ValueError as error:
        accepted = f'{ACCEPTED_DURATIONS}; or a cron expression such as "*/5 * * * *"'
        raise Invalid.one(f"{path}.periodicity".lstrip("."), str(error), given=text, accepted=accepted) from None
    return Schedule(every=every, start=short.start_date, end=short.end_date)
