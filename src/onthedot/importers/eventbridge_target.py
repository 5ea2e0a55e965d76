"""Targets of Amazon EventBridge: Lambda, SQS and Step Functions, as themselves or through a universal target."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from onthedot.importers.cron_sets import NotExpressible

__all__ = ["TranslatedTarget", "translate_target"]

_ARN = re.compile(
    r"arn:(?P<partition>[a-z-]+):(?P<service>[a-z0-9-]+):(?P<region>[^:]*):(?P<account>[^:]*):(?P<rest>.+)"
)
_CONTEXT = {
    "<aws.scheduler.scheduled-time>": "scheduled_for",
    "<aws.scheduler.execution-id>": "run_id",
    "<aws.scheduler.attempt-number>": "attempt",
}
_CARRIED = {
    "Id",
    "Arn",
    "RoleArn",
    "Input",
    "RetryPolicy",
    "DeadLetterConfig",
    "SqsParameters",
    "EventBridgeParameters",
}


class TranslatedTarget(msgspec.Struct, frozen=True, kw_only=True):
    target: dict[str, Any]
    lost: list[tuple[str, str]]
    need: str


def translate_target(given: dict[str, Any], broker: str) -> TranslatedTarget:
    arn = str(given.get("Arn") or "")
    match = _ARN.fullmatch(arn)
    if match is None:
        raise NotExpressible(f"target {arn!r} is not an ARN")
    service, rest = match["service"], match["rest"]
    text = given.get("Input")
    lost = [(field, "not supported") for field in sorted(given.keys() - _CARRIED) if given[field]]
    if service == "scheduler" and rest.startswith("aws-sdk:"):
        return _universal(rest.removeprefix("aws-sdk:"), _json(text), broker, lost)
    content = _replaced(_json(text)) if isinstance(text, str) else None
    if text is None and service in ("lambda", "sqs"):
        lost.append(
            ("the default event", "without an Input, EventBridge sends an event of its own; here `params` are sent")
        )
    if service == "lambda" and rest.startswith("function:"):
        return _lambda(arn, content, lost)
    if service == "sqs":
        parameters = given.get("SqsParameters")
        group = parameters.get("MessageGroupId") if isinstance(parameters, dict) else None
        return _queue(rest, text, group, broker, lost)
    if service == "states" and rest.startswith("stateMachine:"):
        return _workflow(arn, content, lost)
    raise NotExpressible(f"target {arn}: only Lambda functions, SQS queues and Step Functions can be carried over")


def _universal(action: str, given: Any, broker: str, lost: list[tuple[str, str]]) -> TranslatedTarget:
    given = given if isinstance(given, dict) else {}
    if action == "lambda:invoke":
        payload = given.get("Payload")
        return _lambda(
            str(given.get("FunctionName")),
            _replaced(_json(payload)) if isinstance(payload, str) else _replaced(payload),
            lost,
            waits=given.get("InvocationType") != "Event",
        )
    if action == "sqs:sendMessage":
        name = str(given.get("QueueUrl")).rstrip("/").rpartition("/")[2]
        return _queue(name, given.get("MessageBody"), given.get("MessageGroupId"), broker, lost)
    if action == "sfn:startExecution":
        text = given.get("Input")
        return _workflow(
            str(given.get("StateMachineArn")), _replaced(_json(text)) if isinstance(text, str) else None, lost
        )
    raise NotExpressible(f"the API call {action}: only lambda:invoke, sqs:sendMessage and sfn:startExecution")


def _lambda(function: str, payload: Any, lost: list[tuple[str, str]], *, waits: bool = False) -> TranslatedTarget:
    target: dict[str, Any] = {"type": "lambda", "function": function}
    if not waits:
        target["invocation"] = "event"
    if payload is not None:
        target["payload"] = payload
    return TranslatedTarget(target=target, lost=lost, need="AWS: the table [aws] with a region in the settings")


def _queue(name: str, text: Any, group: Any, broker: str, lost: list[tuple[str, str]]) -> TranslatedTarget:
    target: dict[str, Any] = {"type": "queue", "broker": broker, "topic": name}
    if group:
        target["key"] = str(group)
    if isinstance(text, str):
        if "<aws.scheduler." in text:
            lost.append(("<aws.scheduler…> in the message", "it is sent as it is; the time is in the headers"))
        body = _json(text)
        if isinstance(body, (dict, list)) and json.dumps(body, separators=(",", ":")) == text:
            target["body"] = body
        else:
            target |= {"format": "raw", "body": text}
    need = f'a broker: the table [brokers.{broker}] with `url = "sqs://…"` in the settings'
    return TranslatedTarget(target=target, lost=lost, need=need)


def _workflow(arn: str, given: Any, lost: list[tuple[str, str]]) -> TranslatedTarget:
    target: dict[str, Any] = {"type": "workflow", "engine": "stepfunctions", "workflow": arn}
    if isinstance(given, dict):
        target["input"] = given
    elif given is not None:
        lost.append(("Input", "the input of a workflow is an object"))
    lost.append(("the end of the execution", "a run ends with the execution; EventBridge only starts it"))
    return TranslatedTarget(target=target, lost=lost, need="AWS: the table [aws] with a region in the settings")


def _json(text: Any) -> Any:
    """The content of a text that is JSON, else the text itself."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _replaced(value: Any) -> Any:
    """What EventBridge puts in the place of its keywords, in our words. Inside a longer text they stay."""
    if isinstance(value, dict):
        return {name: _replaced(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(inner) for inner in value]
    if isinstance(value, str) and value in _CONTEXT:
        return {"$": _CONTEXT[value]}
    return value
