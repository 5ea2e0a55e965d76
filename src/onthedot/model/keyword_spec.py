"""A job from keyword arguments of Python: `every="10s"`, `timeout="5s"` and `tags=["x"]` side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onthedot.errors import Invalid
from onthedot.model.decoding import convert
from onthedot.model.job import JobSpec
from onthedot.model.policy import Policy
from onthedot.model.python_values import from_python

__all__ = ["patch_from_keywords", "spec_from_keywords"]

_SCHEDULE = ("cron", "every", "at", "in", "tz", "start", "end", "count")
_POLICY = Policy.__struct_fields__


def spec_from_keywords(
    target: Mapping[str, Any], key: str | None, params: Mapping[str, Any] | None, given: Mapping[str, Any]
) -> JobSpec:
    """With the same validation as over HTTP. `in_` stands for `in`, which is a Python keyword."""
    loose = {"schedule": {}, "policy": {}, **_sorted(given), "target": target, "params": _params(params)}
    if key is not None:
        loose["key"] = key
    return convert(loose, JobSpec)


def patch_from_keywords(params: Mapping[str, Any] | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The same as a merge patch: what is not given stays."""
    return _sorted(given) if params is None else {**_sorted(given), "params": _params(params)}


def _params(params: Mapping[str, Any] | None) -> dict[str, Any]:
    if params is not None and not isinstance(params, Mapping):
        raise Invalid.one("params", "must be a mapping of names to values", given=params, accepted='{"name": value, …}')
    return dict(params or {})


def _sorted(given: Mapping[str, Any]) -> dict[str, Any]:
    """Each word in its place in a job."""
    zoned = given.get("tz") is not None
    loose: dict[str, Any] = {}
    for name, value in ((name.rstrip("_"), value) for name, value in given.items()):
        if value is None:
            continue
        place = "schedule" if name in _SCHEDULE else "policy" if name in _POLICY else None
        inside = loose if place is None else loose.setdefault(place, {})
        inside[name] = from_python(_path_of(name), value, zoned=zoned)
    return loose


def _path_of(name: str) -> str:
    """The path of a keyword argument in the job, for error messages."""
    return f"schedule.{name}" if name in _SCHEDULE else f"policy.{name}" if name in _POLICY else name
