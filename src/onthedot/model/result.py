"""What a run gives back: JSON, of a bounded size. Pure.

On its way it is `detail["result"]` of an outcome, as a value or as JSON that is written already. A small one stays
there in the ledger; a large one, which only a job with `keep_result` keeps, has a column of its own, so that lists of
runs need not read it. Why one was not kept is `detail["result_note"]`. The answer of a webhook that is JSON and short
is stored once, as the answer: `detail["json"]` says that it is the result too.
"""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot.model.decoding import encode_json
from onthedot.model.run import Outcome

__all__ = ["RESULT_LIMIT", "SMALL_RESULT", "large_result", "not_json", "read_result", "settled"]

RESULT_LIMIT = 64 * 1024
SMALL_RESULT = 4 * 1024
"""Bytes of JSON. What is larger is kept only if the job says so."""
_SHOWN = 200

_UNENCODABLE = (TypeError, ValueError, OverflowError, RecursionError, NotImplementedError, msgspec.MsgspecError)


def not_json(value: Any) -> str:
    """The note for a value that is no JSON."""
    try:
        shown = repr(value)
    except Exception as error:
        shown = f"its repr() failed: {type(error).__name__}"
    shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
    return f"not kept: a value of type {type(value).__name__} is not JSON ({shown})"


def settled(outcome: Outcome, *, keep: bool) -> Outcome:
    """The outcome with its result as it is stored, as JSON; or with a note instead. `keep`: also a large one."""
    result = outcome.detail.get("result")
    if result is None:
        return outcome
    try:
        raw = encode_json(result)
    except _UNENCODABLE:
        return _with(outcome, result_note=not_json(result))
    if len(raw) > RESULT_LIMIT:
        return _with(outcome, result_note=f"not kept: {len(raw)} bytes exceed the limit of {RESULT_LIMIT}")
    if len(raw) > SMALL_RESULT and not keep:
        note = f'not kept: {len(raw)} bytes; more than {SMALL_RESULT} are kept only with "keep_result": true in the job'
        return _with(outcome, result_note=note)
    return _with(outcome, result=msgspec.Raw(raw))


def _with(outcome: Outcome, **said: Any) -> Outcome:
    detail = {name: value for name, value in outcome.detail.items() if name not in ("result", "result_note")}
    return msgspec.structs.replace(outcome, detail={**detail, **said})


def large_result(outcome: Outcome) -> tuple[Outcome, str | None]:
    """A settled outcome without its result, if that is a large one, and the result."""
    result = outcome.detail.get("result")
    if not isinstance(result, msgspec.Raw) or len(bytes(result)) <= SMALL_RESULT:
        return outcome, None
    return _with(outcome), bytes(result).decode()


def read_result(outcome: dict[str, Any], large: str | None = None) -> Any:
    """The result that the ledger has, taken out of the outcome; None: there is none."""
    small = outcome.pop("result", None)
    if outcome.pop("json", False):
        small = msgspec.json.decode(outcome["response"])
    return small if large is None else msgspec.json.decode(large)
