"""Where traces and logs go, as OpenTelemetry's own environment variables say."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import msgspec

__all__ = ["OtlpConfig", "WrongOtlpVariable", "read_config"]

SIGNALS = ("traces", "logs")


class WrongOtlpVariable(Exception):
    """A variable says what is not supported; the message says which and what is accepted."""


class OtlpConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A signal without an endpoint is not sent."""

    traces: str | None = None
    logs: str | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    timeout: float = 10.0
    certificate: str | None = None  # a file in PEM
    gzip: bool = False
    service: str = "onthedot"
    resource: dict[str, str] = msgspec.field(default_factory=dict)


def read_config(environ: Mapping[str, str]) -> OtlpConfig | None:
    """None: nothing is to be sent. Raises WrongOtlpVariable."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    endpoints = {signal: _endpoint(environ, signal) for signal in SIGNALS}
    if not any(endpoints.values()):
        return None
    protocol = environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http/protobuf"
    if protocol != "http/protobuf":
        raise WrongOtlpVariable(f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol[:50]!r}. Accepted: http/protobuf")
    compression = environ.get("OTEL_EXPORTER_OTLP_COMPRESSION") or "none"
    if compression not in ("gzip", "none"):
        raise WrongOtlpVariable(f"OTEL_EXPORTER_OTLP_COMPRESSION is {compression[:50]!r}. Accepted: gzip, none")
    resource = _pairs(environ, "OTEL_RESOURCE_ATTRIBUTES")
    return OtlpConfig(
        **endpoints,
        headers=_pairs(environ, "OTEL_EXPORTER_OTLP_HEADERS"),
        timeout=_milliseconds(environ, "OTEL_EXPORTER_OTLP_TIMEOUT", 10_000) / 1000,
        certificate=environ.get("OTEL_EXPORTER_OTLP_CERTIFICATE") or None,
        gzip=compression == "gzip",
        service=environ.get("OTEL_SERVICE_NAME") or resource.pop("service.name", "onthedot"),
        resource=resource,
    )


def _endpoint(environ: Mapping[str, str], signal: str) -> str | None:
    """The general one gets the path of the signal; that of a signal is taken as it is."""
    if environ.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp") == "none":
        return None
    name = f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT"
    url = environ.get(name)
    if not url:
        name = "OTEL_EXPORTER_OTLP_ENDPOINT"
        base = environ.get(name)
        url = f"{base.rstrip('/')}/v1/{signal}" if base else None
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise WrongOtlpVariable(
            f"{name} is not valid. Accepted: an http:// or https:// URL such as http://collector:4318"
        )
    return url


def _pairs(environ: Mapping[str, str], name: str) -> dict[str, str]:
    """`a=1,b=2`, percent-encoded."""
    found = {}
    for pair in (environ.get(name) or "").split(","):
        key, equals, value = pair.partition("=")
        if not pair.strip():
            continue
        if not equals or not key.strip():
            raise WrongOtlpVariable(f"{name} is not valid. Accepted: name=value, separated by commas")
        found[key.strip()] = unquote(value.strip())
    return found


def _milliseconds(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name) or str(default)
    if not text.isdecimal() or not 0 < int(text) <= 600_000:
        raise WrongOtlpVariable(f"{name} is {text[:50]!r}. Accepted: milliseconds from 1 to 600000")
    return int(text)
