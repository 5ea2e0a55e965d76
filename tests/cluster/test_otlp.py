"""A node that exports traces and logs: what a collector gets of real jobs, and how it ends when that hangs."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.nodes import post
from tests.cluster.walking import ask
from tests.services.otlp_receiver import Collector, collector
from tests.services.waiting import until


@pytest.fixture
def traces(tmp_path: Path) -> Iterator[Collector]:
    with collector(tmp_path) as found:
        yield found


async def test_create_claim_and_call_are_one_trace_and_output_is_a_log(traces, cluster, receiver, tmp_path):
    (tmp_path / "onthedot.toml").write_text('[commands.hello]\nargv = ["/bin/sh", "-c", "echo hello; echo world"]\n')
    node = cluster.start(env={"OTEL_EXPORTER_OTLP_ENDPOINT": traces.url, "ONTHEDOT_NODE_NAME": "traced"})
    await node.ready()
    hook = await post(
        node, "/v1/jobs", {"key": "hook", "schedule": {"in": "1ms"}, "target": {"type": "webhook", "url": receiver.url}}
    )
    said = await post(node, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": {"type": "command", "command": "hello"}})
    await receiver.wait_for(1, timeout=20)
    (arrival,) = receiver.received
    _, trace, span, flags = arrival.headers["traceparent"].split("-")
    assert flags == "01"

    def of(job: int, name: str) -> list[dict[str, object]]:
        return [
            each
            for each in traces.spans()
            if each["attributes"]["onthedot.job.id"] == str(job) and each["name"] == name
        ]

    await until(lambda: bool(of(hook["id"], "run hook")) and bool(of(said["id"], "run")), "both runs are traced")
    names = ("create job", "claim", "call webhook", "run hook")
    created, claimed, call, run = (of(hook["id"], name)[0] for name in names)
    assert {each["traceId"] for each in (created, claimed, call, run)} == {_base64(trace)}
    assert call["spanId"] == _base64(span), "what the receiver does is a child of the call"
    assert call["parentSpanId"] == claimed["parentSpanId"] == created["parentSpanId"] == run["spanId"]
    ended = [int(str(each["endTimeUnixNano"])) for each in (claimed, call)]
    assert int(str(claimed["startTimeUnixNano"])) <= ended[0] == int(str(call["startTimeUnixNano"])) <= ended[1]

    await until(lambda: any(record["body"] == "world" for record in traces.records()), "the output is a log")
    hello, world = [each for each in traces.records() if each["attributes"].get("onthedot.job.id") == str(said["id"])]
    assert (hello["body"], world["body"]) == ("hello", "world")
    assert hello["spanId"] == of(said["id"], "call command")[0]["spanId"]
    assert "node.registered" in {record["body"] for record in traces.records()}, "the node's own log"
    _, metrics = await ask(node, "GET", "/metrics")
    assert 'onthedot_otel_items_total{result="exported",signal="traces"}' in metrics
    resource = traces.requests()[0]["resourceLogs" if "resourceLogs" in traces.requests()[0] else "resourceSpans"][0]
    told = {each["key"]: each["value"]["stringValue"] for each in resource["resource"]["attributes"]}
    assert (told["service.name"], told["service.instance.id"]) == ("onthedot", "traced")
    assert await node.stop() == 0


async def test_a_collector_that_hangs_delays_neither_runs_nor_the_end(traces, cluster, receiver):
    node = cluster.start(env={"OTEL_EXPORTER_OTLP_ENDPOINT": f"{traces.url}/hangs"})
    await node.ready()
    await post(node, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": {"type": "webhook", "url": receiver.url}})
    await receiver.wait_for(1, timeout=20)
    began = time.monotonic()
    assert await node.stop() == 0
    assert time.monotonic() - began < 10.0


def _base64(text: str) -> str:
    return base64.b64encode(bytes.fromhex(text)).decode()
