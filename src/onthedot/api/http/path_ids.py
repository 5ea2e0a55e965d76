"""Ids in paths. What can't be an id is 404, like any other id that does not exist."""

from __future__ import annotations

import re

from starlette.requests import Request

from onthedot.api.http.query_params import Param
from onthedot.errors import Invalid, NotFound
from onthedot.model.job import KEY_PATTERN

__all__ = [
    "RUN_ID_PATTERN",
    "destination_of",
    "job_id_of",
    "job_key_of",
    "job_of_run",
    "operation_id_of",
    "run_id_of",
    "run_named",
    "whole_id",
]

RUN_ID_PATTERN = r"[0-9]{1,19}-[0-9]{1,15}(?:-[mbrc][0-9]{1,19})?"
_LARGEST = 2**63 - 1


def whole_id(request: Request, name: str, what: str) -> int:
    given: str = request.path_params[name]
    number = int(given) if re.fullmatch(r"[1-9][0-9]{0,18}", given, re.ASCII) else 0
    if not 1 <= number <= _LARGEST:
        raise NotFound(f"{what} {given[:100]!r} not found")
    return number


def job_id_of(request: Request) -> int:
    return whole_id(request, "job_id", "job")


def destination_of(request: Request) -> str:
    """A broker's name, or scheme, host and port. Servers read `%2F%2F` as slashes, and of those our routes keep one."""
    found: dict[str, str] = request.path_params
    if "host" in found:
        return f"{found['scheme'].removesuffix(':')}://{found['host']}"
    return found["destination"]


def operation_id_of(request: Request) -> int:
    return whole_id(request, "operation_id", "operation")


def run_id_of(request: Request) -> str:
    given: str = request.path_params["run_id"]
    if not re.fullmatch(RUN_ID_PATTERN, given, re.ASCII):
        raise NotFound(f"run {given[:100]!r} not found")
    return given


def run_named(name: str, description: str) -> Param:
    """A parameter that is the ID of a run."""
    return Param(
        name=name,
        read=lambda value: value if re.fullmatch(RUN_ID_PATTERN, value, re.ASCII) else None,
        accepted="the ID of a run, such as 7-1774656000000",
        schema={"type": "string", "pattern": f"^{RUN_ID_PATTERN}$"},
        description=description,
    )


def job_of_run(run_id: str) -> int:
    """The job whose run it is."""
    return int(run_id.partition("-")[0])


def job_key_of(request: Request) -> str:
    given: str = request.path_params["key"]
    if not re.fullmatch(KEY_PATTERN, given):
        raise Invalid.one("key", "invalid job key", given=given[:200], accepted=KEY_PATTERN)
    return given
