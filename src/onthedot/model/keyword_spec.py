"""A job from keyword arguments of Python: `every="10s"`, `timeout="5s"` and `tags=["x"]` side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onthedot.errors import Invalid
from onthedot.model.decoding import convert
from onthedot.model.job import JobSpec
from onthedot.model.policy import Policy
from onthedot.model.python_values import from_python

__all__ = ["spec_from_keywords"]

_SCHEDULE = ("cron", "every", "at", "in", "tz", "start", "end", "count")
_POLICY = Policy.__struct_fields__


def spec_from_keywords(
    target: Mapping[str, Any], key: str | None, params: Mapping[str, Any] | None, given: Mapping[str, Any]
) -> JobSpec:
    """With the same validation as over HTTP. `in_` stands for `in`, which is a Python keyword."""
    if params is not None and not isinstance(params, Mapping):
        raise Invalid.one("params", "must be a mapping of names to values", given=params, accepted='{"name": value, …}')
    zoned = given.get("tz") is not None
    words = {
        name: from_python(_path_of(name), value, zoned=zoned)
        for name, value in ((name.rstrip("_"), value) for name, value in given.items())
        if value is not None
    }
    loose = {name: value for name, value in words.items() if name not in (*_SCHEDULE, *_POLICY)}
    loose["schedule"] = {name: words[name] for name in _SCHEDULE if name in words}
    loose["policy"] = {name: words[name] for name in _POLICY if name in words}
    loose["target"] = target
    loose["params"] = dict(params or {})
    if key is not None:
        loose["key"] = key
    return convert(loose, JobSpec)


def _path_of(name: str) -> str:
    """The path of a keyword argument in the job, for error messages."""
    return f"schedule.{name}" if name in _SCHEDULE else f"policy.{name}" if name in _POLICY else name
