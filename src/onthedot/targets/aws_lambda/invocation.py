"""What a function is called with. Pure.

The event is the job's payload, with values of the run filled in, or its params. A function that answers learns from the
client context which run it is. Lambda keeps that from one that is called for later, and a callback belongs into
the payload: then `onthedot` is added to an event that is an object.
"""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from onthedot.model.body_template import CALLBACK, encode_body, fill, is_template
from onthedot.model.instant import format_instant
from onthedot.model.targets import LambdaTarget
from onthedot.targets.contract import Call

__all__ = ["OURS", "invocation"]

OURS = "onthedot"
_KINDS = {"request": "RequestResponse", "event": "Event"}
LOG_TAIL = {"LogType": "Tail"}


def invocation(call: Call, target: LambdaTarget) -> dict[str, Any]:
    """MissingParam: the payload names what this run does not have."""
    about = _about(call)
    event = _event(call, target)
    if isinstance(event, dict) and (target.invocation == "event" or call.callback is not None):
        event = {**event, OURS: about}
    asked = {
        "FunctionName": target.function,
        "InvocationType": _KINDS[target.invocation],
        "Payload": encode_body(event),
    }
    if target.invocation == "request":
        context = msgspec.json.encode({"custom": {key: str(value) for key, value in about.items()}})
        asked |= {"ClientContext": base64.b64encode(context).decode(), **LOG_TAIL}
    return asked


def _event(call: Call, target: LambdaTarget) -> Any:
    if target.payload is None:
        return call.params
    if isinstance(target.payload, (dict, list)) and is_template(encode_body(target.payload)):
        values = {"run_id": call.run_id, "scheduled_for": format_instant(call.slot), "attempt": call.attempt}
        if call.callback is not None:
            values[CALLBACK] = call.callback
        return fill(target.payload, values, call.params)
    return target.payload


def _about(call: Call) -> dict[str, Any]:
    about: dict[str, Any] = {
        "run_id": call.run_id,
        "job_id": call.job_id,
        "scheduled_for": format_instant(call.slot),
        "attempt": call.attempt,
    }
    if call.key is not None:
        about["job_key"] = call.key
    if call.callback is not None:
        about[CALLBACK] = call.callback
    return about
