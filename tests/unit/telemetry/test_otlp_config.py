"""Where traces and logs go is said by OpenTelemetry's own variables."""

from __future__ import annotations

import sys

import pytest

from onthedot.errors import SettingsError
from onthedot.telemetry import Telemetry
from onthedot.telemetry.otlp import exporting
from onthedot.telemetry.otlp.config import OtlpConfig, WrongOtlpVariable, read_config

BASE = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}


def test_nothing_is_sent_unless_somebody_says_where_to():
    assert read_config({}) is None
    assert read_config({"OTEL_SERVICE_NAME": "jobs", "OTEL_EXPORTER_OTLP_HEADERS": "a=b"}) is None
    assert read_config({**BASE, "OTEL_SDK_DISABLED": "true"}) is None
    assert read_config({**BASE, "OTEL_TRACES_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}) is None


def test_one_endpoint_for_both_or_one_for_each():
    assert read_config({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/base/"}) == OtlpConfig(
        traces="http://c:4318/base/v1/traces", logs="http://c:4318/base/v1/logs"
    )
    only = {"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "https://logs.example/in"}
    assert read_config(only) == OtlpConfig(logs="https://logs.example/in")
    both = read_config({**BASE, **only, "OTEL_TRACES_EXPORTER": "none"})
    assert both is not None
    assert (both.traces, both.logs) == (None, "https://logs.example/in")


def test_the_rest_of_what_is_said():
    found = read_config(
        {
            **BASE,
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20x, tenant=7",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "2500",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
            "OTEL_RESOURCE_ATTRIBUTES": "service.name=jobs,deployment.environment=prod",
        }
    )
    assert found is not None
    assert found.headers == {"authorization": "Bearer x", "tenant": "7"}
    assert (found.timeout, found.gzip, found.service) == (2.5, True, "jobs")
    assert found.resource == {"deployment.environment": "prod"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:port"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "secret"),
    ],
)
def test_what_is_not_supported_is_an_error_that_names_the_variable(name, value):
    with pytest.raises(WrongOtlpVariable, match=rf"{name} .*Accepted: ") as wrong:
        read_config({**BASE, name: value})
    assert "secret" not in str(wrong.value)


async def test_a_node_does_not_start_with_such_a_variable_and_costs_nothing_without_any():
    wire = Telemetry()
    with pytest.raises(SettingsError, match="Accepted: http/protobuf"):
        async with exporting(
            wire, {**BASE, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, node="n", host="h", count=lambda *_: None
        ):
            pass
    async with exporting(wire, {}, node="n", host="h", count=lambda *_: None):
        assert wire.tracers == ()


async def test_without_the_extra_a_warning_says_what_to_install(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "onthedot.telemetry.otlp.exporter", None)
    wire = Telemetry()
    async with exporting(wire, BASE, node="n", host="h", count=lambda *_: None):
        assert wire.tracers == ()
    assert "pip install 'onthedot[otel]'" in caplog.text
