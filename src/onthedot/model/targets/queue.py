"""Messages to a queue, topic, subject or stream of a message broker that the operator configured."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from onthedot.errors import FieldProblem
from onthedot.model.field_note import FieldNote
from onthedot.model.secret_text import MASK, is_secret_name
from onthedot.model.targets.spec import Flag, TargetSpec, TargetSummary

__all__ = ["QueueTarget"]

MAX_MESSAGE_HEADERS, MAX_VALUE, MAX_ALL_VALUES = 50, 4096, 32_768
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_OURS = re.compile(r"x-onthedot-.*|nats-.*|ce-(id|specversion|time|datacontenttype)", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"ce-[a-z0-9]{1,20}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class QueueTarget(TargetSpec, frozen=True, kw_only=True, tag="queue"):
    writes_log: ClassVar[bool] = False
    calls_back: ClassVar[bool] = True
    waits_for: ClassVar[str] = "broker"
    notes: ClassVar[Mapping[str, FieldNote]] = {
        "broker": FieldNote("The name of a broker in the settings.", {"broker": "orders"}),
        "topic": FieldNote("The topic, subject, stream or queue.", {"topic": "orders.created"}),
        "key": FieldNote("The message key. By default, the ID of the run.", {"key": "customer-42"}),
        "headers": FieldNote("Message headers.", {"headers": {"team": "billing"}}),
        "body": FieldNote("JSON, or text. Without a body, the params are sent.", {"body": {"kind": "nightly"}}),
        "format": FieldNote(
            "`json`; `cloudevents` for CloudEvents 1.0; `raw` for a text as it is; `celery` for a Celery task.",
            {"format": "cloudevents"},
        ),
        "task": FieldNote(
            "With the format `celery`: the name of the task.", {"format": "celery", "task": "reports.send"}
        ),
    }
    flags: ClassVar[tuple[Flag, ...]] = (
        Flag("broker", "Queue: name of a configured broker"),
        Flag("topic", "Queue: topic, subject, stream or queue to publish to"),
        Flag("key", "Queue: message key", ("--message-key",)),
        Flag("headers", "Queue: message header 'Name: value'; repeatable", ("-H", "--header")),
        Flag("body", "Queue: message body, JSON or text"),
        Flag("format", "Queue: json, cloudevents, raw or celery [default: json]"),
        Flag("task", "Queue: name of the Celery task"),
    )

    broker: Annotated[str, msgspec.Meta(max_length=100)]  # the name the operator configured it under
    topic: Annotated[str, msgspec.Meta(max_length=1000)]
    key: Annotated[str, msgspec.Meta(max_length=1000)] | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    body: Any = None  # None: the params
    format: Literal["json", "cloudevents", "raw", "celery"] = "json"
    task: Annotated[str, msgspec.Meta(max_length=500)] | None = None

    def capability(self) -> str:
        return f"queue:{self.broker}"

    def problems(self) -> Iterator[FieldProblem]:
        if not self.broker.strip():
            yield FieldProblem(path="target.broker", message="is empty", accepted="the name of a configured broker")
        if not self.topic or _CONTROL.search(self.topic):
            accepted = "the name of a topic, subject, stream or queue, without control characters"
            yield FieldProblem(path="target.topic", message="not valid", given=self.topic[:200], accepted=accepted)
        if self.key is not None and (not self.key or _CONTROL.search(self.key)):
            accepted = "a text without control characters"
            yield FieldProblem(path="target.key", message="not valid", given=self.key[:200], accepted=accepted)
        if len(self.headers) > MAX_MESSAGE_HEADERS:
            accepted = f"at most {MAX_MESSAGE_HEADERS}"
            yield FieldProblem(path="target.headers", message="too many headers", accepted=accepted)
        elif sum(map(len, self.headers.values())) > MAX_ALL_VALUES:
            accepted = f"at most {MAX_ALL_VALUES} characters in all values"
            yield FieldProblem(path="target.headers", message="too large", accepted=accepted)
        for name, value in self.headers.items():
            yield from self._header(name, value)
        yield from self._format()

    def _header(self, name: str, value: str) -> Iterator[FieldProblem]:
        path = f"target.headers.{name[:200]}"
        if _NAME.fullmatch(name) is None:
            accepted = "letters, digits, ., _ and -"
            yield FieldProblem(path=path, message="not a valid header name", given=name[:200], accepted=accepted)
        elif _OURS.fullmatch(name):
            yield FieldProblem(path=path, message="reserved: On the Dot sets this header", accepted="any other header")
        elif name.lower().startswith("ce-"):
            if self.format != "cloudevents" or _ATTRIBUTE.fullmatch(name) is None:
                accepted = "with format cloudevents: ce- and lower-case letters or digits"
                yield FieldProblem(path=path, message="not an attribute", given=name[:200], accepted=accepted)
        elif name.lower() == "content-type" and self.format in ("cloudevents", "celery"):
            yield FieldProblem(path=path, message=f"set by the format {self.format}", accepted="any other header")
        if len(value) > MAX_VALUE or _CONTROL.search(value) or not value.strip():
            accepted = f"one line of at most {MAX_VALUE} characters"
            given = MASK if is_secret_name(name) else value[:200]
            yield FieldProblem(path=path, message="not a valid header value", given=given, accepted=accepted)

    def _format(self) -> Iterator[FieldProblem]:
        if self.format == "raw" and not isinstance(self.body, str):
            accepted = "with format raw: a text, which is sent as it is"
            yield FieldProblem(path="target.body", message="not valid", accepted=accepted)
        if self.format == "celery":
            if not self.task or _CONTROL.search(self.task):
                accepted = "the name of a Celery task, such as reports.tasks.send"
                yield FieldProblem(path="target.task", message="required by the format celery", accepted=accepted)
            if self.body is not None and not isinstance(self.body, (list, dict)):
                accepted = "with format celery: a list of arguments, or an object of keyword arguments"
                yield FieldProblem(path="target.body", message="not valid", accepted=accepted)
        elif self.task is not None:
            yield FieldProblem(path="target.task", message="not used by this format", accepted='format "celery"')

    def summary(self) -> TargetSummary:
        return TargetSummary("queue", f"{self.broker}/{self.topic}", f"{self.broker}/{self.topic}")

    @classmethod
    def how_to_offer(cls, name: str) -> str:
        return f"define [brokers.{name}] in a node's onthedot.toml, and install its client (docs/queues.md)"
