"""Values of the run in a body: `{"$": "run_id"}` stands for the id of the run that is sent. Pure.

The object with the one key `$` is replaced as a whole, so that what takes its place keeps its type: numbers stay
numbers, and no text has to be quoted or escaped. Names are checked when a job is made: what reaches a send was known
then, unless a run brings params of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from onthedot.errors import FieldProblem
from onthedot.model.unstorable import MOST_PROBLEMS, child

__all__ = ["ACCEPTED_NAMES", "CALLBACK", "MissingParam", "body_problems", "encode_body", "fill", "is_template"]

CALLBACK = "callback"
NAMES = ("run_id", "scheduled_for", "attempt")
ACCEPTED_NAMES = ", ".join((*NAMES, "params.NAME"))
_PARAMS = "params."
_TRIGGER = "params.trigger"
TRIGGER_FIELDS = ("job_key", "job_id", "run_id", "status", "result", "error")
"""What a run that a chain has started has in its params (see `chains`). In any other run they are null."""
_KEY = b'"$":'
encode_body = msgspec.json.Encoder().encode
"""Without spaces, so that `is_template` can look for the key in what comes out."""


class MissingParam(ValueError):
    """A run whose params lack what its job's body names."""


def is_template(encoded: bytes) -> bool:
    """Whether there may be something to fill in, seen from the JSON alone: no body is walked without need."""
    return _KEY in encoded


def body_problems(
    body: Any, params: Mapping[str, Any], *, callback: bool = False, path: str = "target.body"
) -> Iterator[FieldProblem]:
    """What can't be filled in. `callback`: there is one. `path`: of the body in the job."""
    if isinstance(body, (dict, list)) and is_template(encode_body(body)):
        found = (_problem(where, value, params, callback) for where, value in _templates(body, path))
        yield from islice((problem for problem in found if problem is not None), MOST_PROBLEMS)


def fill(body: Any, values: Mapping[str, Any], params: Mapping[str, Any]) -> Any:
    """A new body, with what `values` and `params` say. MissingParam: a run's own params lack one. What is no name we
    know goes out as it is: no job can have been made with it, but for one that is older than templates are."""
    match body:
        case {"$": str(name)} if len(body) == 1:
            if name in values:
                return values[name]
            return _lookup(name, params) if name.startswith(_PARAMS) else body
        case dict():
            return {key: fill(value, values, params) for key, value in body.items()}
        case list():
            return [fill(value, values, params) for value in body]
        case _:
            return body


def _templates(body: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(body, dict):
        if "$" in body:
            yield path, body
            return
        for key, value in body.items():
            yield from _templates(value, child(path, key))
    elif isinstance(body, list):
        for index, value in enumerate(body):
            yield from _templates(value, f"{path}[{index}]")


def _problem(path: str, found: dict[str, Any], params: Mapping[str, Any], callback: bool) -> FieldProblem | None:
    name = found["$"]
    accepted = f"{ACCEPTED_NAMES}, {CALLBACK}" if callback else ACCEPTED_NAMES
    if len(found) > 1:
        message = '"$" must be the only key of its object'
        given = ", ".join(sorted(found))[:200]
        return FieldProblem(path=path, message=message, given=given, accepted='{"$": "run_id"}')
    if name == CALLBACK and not callback:
        message = 'not available: the policy of the job does not set "completion": "callback"'
        return FieldProblem(path=f"{path}.$", message=message, given=name, accepted=accepted)
    if not isinstance(name, str) or (name not in (*NAMES, CALLBACK) and not name.startswith(_PARAMS)):
        given = name[:200] if isinstance(name, str) else encode_body(name).decode(errors="replace")[:200]
        return FieldProblem(path=f"{path}.$", message="not a known value of a run", given=given, accepted=accepted)
    if name.startswith(_PARAMS) and not _of_trigger(name):
        try:
            _lookup(name, params)
        except MissingParam as missing:
            has = ", ".join(f"params.{key}" for key in list(params)[:20])
            accepted = f"a parameter of the job (null if every run sets its own); the job has {has or 'none'}"
            return FieldProblem(path=f"{path}.$", message=str(missing), given=name[:200], accepted=accepted)
    return None


def _of_trigger(name: str) -> bool:
    """`params.trigger`, a field of it, or a part of its result."""
    field = name.removeprefix(f"{_TRIGGER}.")
    return name == _TRIGGER or (field != name and (field in TRIGGER_FIELDS or field.startswith("result.")))


def _lookup(name: str, params: Mapping[str, Any]) -> Any:
    value: Any = params
    for part in name.removeprefix(_PARAMS).split("."):
        if not isinstance(value, Mapping) or part not in value:
            if _of_trigger(name):
                return None
            raise MissingParam(f"no parameter {name.removeprefix(_PARAMS)[:200]!r} in params")
        value = value[part]
    return value
