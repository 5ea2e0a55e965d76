"""Requests are counted in plain numbers, and read as prometheus_client's own counter and histogram would."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import generate_latest

from onthedot.telemetry.metrics import Metrics
from onthedot.telemetry.requests import RequestCounts

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
SEEN = [
    ("POST", "/v1/jobs", 201, 0.0004),
    ("POST", "/v1/jobs", 201, 0.001),  # on a bound: it belongs below it
    ("POST", "/v1/jobs", 409, 0.0011),
    ("GET", "unmatched", 404, 7.0),
]


def test_the_text_is_that_of_the_library() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    counts = RequestCounts()
    ours.register(counts)
    answers = Counter(
        "onthedot_http_requests",
        "Responses by method, route and status",
        ["method", "route", "status"],
        registry=theirs,
    )
    seconds = Histogram(
        "onthedot_http_request_seconds", "Time to respond", ["method", "route"], buckets=BUCKETS, registry=theirs
    )
    for method, route, status, took in SEEN:
        counts.count(method, route, status)
        counts.time(method, route, took)
        answers.labels(method, route, str(status)).inc()
        seconds.labels(method, route).observe(took)
    assert generate_latest(ours).decode() == generate_latest(theirs).decode()
    assert counts.answered("POST", "/v1/jobs", 201) == 2
    assert counts.answered("GET", "/v1/jobs", 200) == 0


def test_they_are_among_a_nodes_metrics() -> None:
    metrics = Metrics()
    metrics.requests.count("GET", "/healthz", 200)
    assert b'onthedot_http_requests_total{method="GET",route="/healthz",status="200"} 1.0' in metrics.text()
