"""What is published for one run. A repeat of the run is the same message, but for the attempt: above all, it has the
same id."""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot.brokers.message import Message
from onthedot.model.instant import format_instant
from onthedot.model.targets import QueueTarget
from onthedot.targets.contract import Call

__all__ = ["compose"]

JSON, TEXT, CLOUD_EVENT = "application/json", "text/plain; charset=utf-8", "application/cloudevents+json"
_TYPE = "content-type"


def compose(call: Call, target: QueueTarget) -> Message:
    headers = {name: value for name, value in target.headers.items() if name.lower() != _TYPE and not _is_event(name)}
    headers |= {
        "x-onthedot-run-id": call.run_id,
        "x-onthedot-job": str(call.job_id),
        "x-onthedot-scheduled-for": format_instant(call.slot),
        "x-onthedot-attempt": str(call.attempt),
    }
    if call.callback is not None:
        headers["x-onthedot-callback"] = call.callback
    given = next((value for name, value in target.headers.items() if name.lower() == _TYPE), None)
    content = call.params if target.body is None else target.body
    task = None
    match target.format:
        case "json":
            kind, body = given or JSON, msgspec.json.encode(content)
        case "raw":
            kind, body = given or TEXT, str(content).encode()
        case "cloudevents":
            kind, body = CLOUD_EVENT, msgspec.json.encode(_cloud_event(call, target, content))
        case _:
            arguments, keywords = _celery_arguments(call, target)
            embedded = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
            kind, body = JSON, msgspec.json.encode([arguments, keywords, embedded])
            task = _celery_task(call, target, arguments, keywords)
    return Message(
        id=_id(call),
        topic=target.topic,
        key=target.key,
        headers=headers,
        content_type=kind,
        body=body,
        task=task,
    )


def _id(call: Call) -> str:
    """Whoever has seen it may drop the message. Where the end is told later, a try that failed there is made again, by
    another message: then it is the try that must not come twice."""
    return call.run_id if call.callback is None else f"{call.run_id}-{call.try_number}"


def _is_event(name: str) -> bool:
    return name.startswith("ce-")


def _cloud_event(call: Call, target: QueueTarget, data: Any) -> dict[str, Any]:
    """CloudEvents 1.0, structured. `time` is that of the slot, so that a repeat is equal."""
    event: dict[str, Any] = {
        "specversion": "1.0",
        "id": _id(call),
        "source": f"/onthedot/jobs/{call.job_id}",
        "type": "onthedot.run.due",
        "time": format_instant(call.slot),
        "datacontenttype": JSON,
    }
    if call.key is not None:
        event["subject"] = call.key
    if target.key is not None:
        event["partitionkey"] = target.key
    event |= {name.removeprefix("ce-"): value for name, value in target.headers.items() if _is_event(name)}
    return event | {"data": data}


def _celery_arguments(call: Call, target: QueueTarget) -> tuple[list[Any], dict[str, Any]]:
    """A list gives the arguments, and the params are the keyword arguments beside it; an object gives those alone."""
    if isinstance(target.body, list):
        return target.body, {name: value for name, value in call.params.items() if name != "trigger"}
    return [], call.params if target.body is None else target.body


def _celery_task(call: Call, target: QueueTarget, arguments: Any, keywords: Any) -> dict[str, Any]:
    """The headers of version 2 of Celery's message protocol."""
    return {
        "lang": "py",
        "task": target.task,
        "id": _id(call),
        "root_id": _id(call),
        "parent_id": None,
        "group": None,
        "shadow": None,
        "eta": None,
        "expires": None,
        "retries": 0,
        "timelimit": [None, None],
        "argsrepr": repr(arguments)[:1024],
        "kwargsrepr": repr(keywords)[:1024],
        "origin": "onthedot",
        "ignore_result": False,
    }
