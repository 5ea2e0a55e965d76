"""Spans and log records as OTLP has them. Built in the exporter's thread, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs, SeverityNumber
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from onthedot.telemetry import trace_ids
from onthedot.telemetry.tracing import AttemptTrace, CreatedTrace
from onthedot.version import __version__

__all__ = ["LogLine", "logs_request", "trace_request"]

MOST_RECORDS = 200
"""Log records of one attempt: of a longer log several lines share one."""
_SEVERITIES = {
    "DEBUG": SeverityNumber.SEVERITY_NUMBER_DEBUG,
    "INFO": SeverityNumber.SEVERITY_NUMBER_INFO,
    "WARNING": SeverityNumber.SEVERITY_NUMBER_WARN,
    "ERROR": SeverityNumber.SEVERITY_NUMBER_ERROR,
    "CRITICAL": SeverityNumber.SEVERITY_NUMBER_FATAL,
}
_SCOPE = InstrumentationScope(name="onthedot", version=__version__)


class LogLine(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A line of the node's own log."""

    at_ns: int
    level: str
    body: str
    fields: dict[str, Any]


def trace_request(resource: Mapping[str, str], items: Iterable[AttemptTrace | CreatedTrace]) -> tuple[bytes, int]:
    """The body, and how many spans it has."""
    spans = [span for item in items for span in _spans(item)]
    scope = ScopeSpans(scope=_SCOPE, spans=spans)
    request = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(resource=_resource(resource), scope_spans=[scope])]
    )
    return request.SerializeToString(), len(spans)


def logs_request(resource: Mapping[str, str], items: Iterable[AttemptTrace | LogLine]) -> tuple[bytes, int]:
    """The body, and how many records it has."""
    records = [record for item in items for record in _records(item)]
    scope = ScopeLogs(scope=_SCOPE, log_records=records)
    request = ExportLogsServiceRequest(resource_logs=[ResourceLogs(resource=_resource(resource), scope_logs=[scope])])
    return request.SerializeToString(), len(records)


def _spans(item: AttemptTrace | CreatedTrace) -> Iterator[Span]:
    trace, root = bytes.fromhex(trace_ids.trace_id(item.run_id)), bytes.fromhex(trace_ids.run_span(item.run_id))
    named = {"onthedot.job.id": item.job_id, "onthedot.run.id": item.run_id, "onthedot.tenant": item.tenant}
    if item.key is not None:
        named["onthedot.job.key"] = item.key
    if isinstance(item, CreatedTrace):
        yield Span(
            trace_id=trace,
            span_id=bytes.fromhex(trace_ids.create_span(item.run_id)),
            parent_span_id=root,
            name="create job",
            kind=Span.SPAN_KIND_PRODUCER,
            start_time_unix_nano=item.at_ns,
            end_time_unix_nano=item.at_ns,
            attributes=_attributes(named),
        )
        return
    status = Status()
    if item.outcome != "ok":
        status = Status(code=Status.STATUS_CODE_ERROR, message=(item.error or item.outcome)[:1000])
    began = item.finished_at if item.started_at is None else item.started_at
    if item.is_first:
        yield Span(
            trace_id=trace,
            span_id=bytes.fromhex(trace_ids.claim_span(item.run_id)),
            parent_span_id=root,
            name="claim",
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=_ns(min(item.claimed_at, began)),
            end_time_unix_nano=_ns(began),
            attributes=_attributes(named),
        )
    if item.started_at is not None:
        told = {"onthedot.target": item.target, "onthedot.attempt": item.attempt, "onthedot.outcome": item.outcome}
        if item.status_code is not None:
            told["http.response.status_code"] = item.status_code
        yield Span(
            trace_id=trace,
            span_id=bytes.fromhex(trace_ids.attempt_span(item.run_id, item.attempt)),
            parent_span_id=root,
            name=f"call {item.target}",
            kind=Span.SPAN_KIND_CLIENT,
            start_time_unix_nano=_ns(item.started_at),
            end_time_unix_nano=_ns(item.finished_at),
            attributes=_attributes({**named, **told}),
            status=status,
        )
    if item.status is not None:
        told = {"onthedot.status": item.status, "onthedot.trigger": item.trigger, "onthedot.target": item.target}
        yield Span(
            trace_id=trace,
            span_id=root,
            name=f"run {item.key}" if item.key is not None else "run",
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=_ns(min(item.claimed_at, item.finished_at)),
            end_time_unix_nano=_ns(item.finished_at),
            attributes=_attributes({**named, **told}),
            status=Status() if item.status == "DONE" else status,
        )


def _records(item: AttemptTrace | LogLine) -> Iterator[LogRecord]:
    if isinstance(item, LogLine):
        yield LogRecord(
            time_unix_nano=item.at_ns,
            observed_time_unix_nano=item.at_ns,
            severity_number=_SEVERITIES.get(item.level, SeverityNumber.SEVERITY_NUMBER_INFO),
            severity_text=item.level,
            body=AnyValue(string_value=item.body),
            attributes=_attributes(item.fields),
        )
        return
    named: dict[str, Any] = {
        "onthedot.job.id": item.job_id,
        "onthedot.run.id": item.run_id,
        "onthedot.tenant": item.tenant,
        "onthedot.attempt": item.attempt,
    }
    if item.key is not None:
        named["onthedot.job.key"] = item.key
    attributes = _attributes(named)
    failed = item.outcome != "ok"
    for text in _portions(item.log or ""):
        yield LogRecord(
            time_unix_nano=_ns(item.finished_at),
            observed_time_unix_nano=_ns(item.finished_at),
            severity_number=_SEVERITIES["ERROR" if failed else "INFO"],
            severity_text="ERROR" if failed else "INFO",
            body=AnyValue(string_value=text),
            attributes=attributes,
            trace_id=bytes.fromhex(trace_ids.trace_id(item.run_id)),
            span_id=bytes.fromhex(trace_ids.attempt_span(item.run_id, item.attempt)),
        )


def _portions(log: str) -> Iterator[str]:
    """Its lines, in MOST_RECORDS portions at most."""
    lines = log.splitlines()
    size = -(-len(lines) // MOST_RECORDS) or 1
    for start in range(0, len(lines), size):
        yield "\n".join(lines[start : start + size])


def _resource(attributes: Mapping[str, str]) -> Resource:
    return Resource(attributes=_attributes(attributes))


def _attributes(values: Mapping[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=name, value=_value(value)) for name, value in values.items()]


def _value(value: Any) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int() if -(2**63) <= value < 2**63:
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case _:
            text = value if isinstance(value, str) else repr(value)
            return AnyValue(string_value=text[:4096].encode("utf-8", "replace").decode())


def _ns(ms: int) -> int:
    return max(0, ms) * 1_000_000
