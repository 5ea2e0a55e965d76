"""The exporter against a collector in a process of its own: what arrives, and that nobody waits when it is away."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from onthedot.telemetry import trace_ids
from onthedot.telemetry.otlp import exporter as module
from onthedot.telemetry.otlp.config import OtlpConfig
from onthedot.telemetry.otlp.exporter import OtlpExporter, OtlpLogHandler
from onthedot.telemetry.tracing import AttemptTrace, CreatedTrace
from tests.services.otlp_receiver import Collector, collector
from tests.services.ports import free_port

RUN = "7-1794784800000"
DUE = 1_794_784_800_000


@pytest.fixture(scope="module")
def one_collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with collector(tmp_path_factory.mktemp("collector")) as found:
        yield found


@pytest.fixture
def receiver(one_collector: Collector) -> Collector:
    one_collector.forget()
    return one_collector


def config(url: str, **more: Any) -> OtlpConfig:
    return OtlpConfig(traces=f"{url}/v1/traces", logs=f"{url}/v1/logs", **more)


def attempt(**changed: Any) -> AttemptTrace:
    fields: dict[str, Any] = {
        "run_id": RUN,
        "job_id": 7,
        "key": "nightly",
        "tenant": 1,
        "target": "webhook",
        "trigger": "scheduled",
        "attempt": 1,
        "is_first": True,
        "due_at": DUE,
        "claimed_at": DUE - 1500,
        "started_at": DUE + 2,
        "finished_at": DUE + 52,
        "outcome": "ok",
        "error": None,
        "status": "DONE",
        "status_code": 200,
        "log": None,
    }
    return AttemptTrace(**{**fields, **changed})


def test_a_run_is_one_trace_from_its_creation_to_its_end(receiver):
    counted: Counter[tuple[str, str]] = Counter()
    exporter = OtlpExporter(
        config(receiver.url, gzip=True, headers={"x-key": "k"}, resource={"deployment.environment": "test"}),
        {"host.name": "here"},
        count=lambda signal, result, n: counted.update({(signal, result): n}),
    )
    exporter.job_created(CreatedTrace(run_id=RUN, job_id=7, key="nightly", tenant=1, at_ns=(DUE - 9000) * 10**6))
    failed = {"outcome": "error", "error": "503", "status_code": 503, "status": None, "log": "one\ntwo\n"}
    exporter.attempt_ended(attempt(**failed))
    exporter.attempt_ended(attempt(attempt=2, is_first=False, started_at=DUE + 1000, finished_at=DUE + 1100))
    assert exporter.close(10.0)

    spans = receiver.spans()
    assert {span["traceId"] for span in spans} == {_base64(trace_ids.trace_id(RUN))}
    assert [span["name"] for span in spans] == ["create job", "claim", "call webhook", "call webhook", "run nightly"]
    root = spans[-1]
    assert root["spanId"] == _base64(trace_ids.run_span(RUN))
    assert "parentSpanId" not in root
    assert {span["parentSpanId"] for span in spans[:-1]} == {root["spanId"]}
    assert len({span["spanId"] for span in spans}) == 5
    first, second = spans[2:4]
    for number, call in ((1, first), (2, second)):  # what went out with the webhook
        assert call["spanId"] == _base64(trace_ids.traceparent(RUN, number).split("-")[2])
    assert first["status"] == {"code": "STATUS_CODE_ERROR", "message": "503"}
    assert first["attributes"]["http.response.status_code"] == "503"
    assert (int(second["startTimeUnixNano"]), int(second["endTimeUnixNano"])) == (
        (DUE + 1000) * 10**6,
        (DUE + 1100) * 10**6,
    )
    assert root["attributes"]["onthedot.status"] == "DONE"

    records = receiver.records()
    assert [record["body"] for record in records] == ["one", "two"]
    assert {(record["traceId"], record["spanId"]) for record in records} == {(first["traceId"], first["spanId"])}
    assert records[0]["attributes"]["onthedot.run.id"] == RUN
    request = receiver.requests()[0]
    assert request["headers"]["x-key"] == "k"
    resource = {
        each["key"]: each["value"]["stringValue"] for each in request["resourceSpans"][0]["resource"]["attributes"]
    }
    assert resource == {"service.name": "onthedot", "host.name": "here", "deployment.environment": "test"}
    assert counted == {("traces", "exported"): 5, ("logs", "exported"): 2}


def test_a_long_log_is_sent_whole_in_a_limited_number_of_records(receiver):
    exporter = OtlpExporter(config(receiver.url), {})
    lines = [f"line {number}" for number in range(10_001)]
    exporter.attempt_ended(attempt(log="\n".join(lines)))
    assert exporter.close(10.0)
    records = receiver.records()
    assert len(records) <= 200
    assert "\n".join(record["body"] for record in records).splitlines() == lines


def test_the_log_of_the_node_goes_there_too(receiver):
    exporter = OtlpExporter(config(receiver.url), {})
    logger = logging.getLogger("onthedot.otlp_test")
    logger.addHandler(OtlpLogHandler(exporter))
    logger.warning("plain %s", "text")
    logger.error({"event": "store.unavailable", "error": "away", "_record": 1, "level": "error", "n": 3})
    assert exporter.close(10.0)
    plain, event = receiver.records()
    assert (plain["body"], plain["severityText"]) == ("plain text", "WARNING")
    assert (event["body"], event["severityNumber"]) == ("store.unavailable", "SEVERITY_NUMBER_ERROR")
    assert event["attributes"] == {"logger": "onthedot.otlp_test", "error": "away", "n": "3"}


def test_a_collector_that_is_busy_gets_it_later(receiver):
    told: list[str | None] = []
    exporter = OtlpExporter(config(f"{receiver.url}/busy"), {}, reached=told.append)
    exporter.attempt_ended(attempt())
    assert exporter.close(10.0)
    assert len(receiver.spans()) == 3
    assert told == ["the collector answered 503", None]


def test_what_a_collector_refuses_is_counted_and_not_repeated(receiver):
    counted: Counter[tuple[str, str]] = Counter()
    exporter = OtlpExporter(
        config(f"{receiver.url}/wrong"), {}, count=lambda signal, result, n: counted.update({(signal, result): n})
    )
    exporter.attempt_ended(attempt())
    assert exporter.close(10.0)
    assert counted == {("traces", "dropped"): 3}


@pytest.mark.parametrize("how", ["away", "hangs"])
def test_the_end_does_not_wait_for_a_collector(receiver, how):
    url = f"http://127.0.0.1:{free_port()}" if how == "away" else f"{receiver.url}/hangs"
    exporter = OtlpExporter(config(url), {})
    for _ in range(1000):
        exporter.attempt_ended(attempt())
    began = time.monotonic()
    assert not exporter.close(0.5)
    assert time.monotonic() - began < 2.0


def test_the_queue_is_bounded_and_drops_what_is_too_much(monkeypatch):
    monkeypatch.setattr(module, "MOST_QUEUED", 100)
    monkeypatch.setattr(module, "MOST_LOG_BYTES", 50_000)
    counted: Counter[tuple[str, str]] = Counter()
    exporter = OtlpExporter(
        config(f"http://127.0.0.1:{free_port()}"),
        {},
        count=lambda signal, result, n: counted.update({(signal, result): n}),
    )
    for _ in range(1000):
        exporter.attempt_ended(attempt())
    exporter.attempt_ended(attempt(log="x" * 60_000))
    assert counted["queue", "dropped"] >= 1001 - 100 - module.BATCH
    assert len(exporter._queue) <= 100
    exporter.close(0.2)


def _base64(text: str) -> str:
    import base64

    return base64.b64encode(bytes.fromhex(text)).decode()
