"""Parses each setting: comma-separated text in the environment, native types in the TOML file."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from onthedot.model.duration import ACCEPTED_DURATIONS, DAY, HOUR, MINUTE, SECOND, Duration
from onthedot.model.labels import ACCEPTED_LABELS, LABEL_PATTERN, MOST_OF_NODE
from onthedot.settings.alerts import parse_alerts, parse_channels
from onthedot.settings.aws import parse_aws
from onthedot.settings.containers import parse_containers
from onthedot.settings.host_names import is_host, is_host_port
from onthedot.settings.intakes import parse_intakes
from onthedot.settings.kubernetes import parse_kubernetes
from onthedot.settings.structs import EXTENSIONS, ROLES
from onthedot.settings.tables import parse_brokers, parse_certificates, parse_commands, parse_scripts, parse_targets
from onthedot.settings.workflows import parse_workflows
from onthedot.settings.wrong_value import WrongValue

__all__ = ["PARSERS"]

AUTHS = ("auto", "keys")
FORMATS = ("console", "json")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
GRANULARITIES = {"second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY}


Parser = Callable[[Any], Any]


def _text(accepted: str, pattern: str = r"(?s).+") -> Parser:
    def parse(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise WrongValue(accepted)
        return value

    return parse


def _path(value: Any) -> Path:
    if not isinstance(value, (str, Path)) or not str(value) or "\x00" in str(value):
        raise WrongValue("a path")
    return Path(value)


def _whole(low: int, high: int) -> Parser:
    def parse(value: Any) -> int:
        if isinstance(value, str) and re.fullmatch(r"\d{1,12}", value.strip(), re.ASCII):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise WrongValue(f"a whole number from {low} to {high}")
        return value

    return parse


def _duration(low: int, high: int = 100 * 365 * DAY) -> Parser:
    accepted = f"{ACCEPTED_DURATIONS}; from {Duration(low)} to {Duration(high)}"

    def parse(value: Any) -> Duration:
        try:
            duration = Duration.parse(value)
        except ValueError:
            raise WrongValue(accepted) from None
        if not low <= duration <= high:
            raise WrongValue(accepted)
        return duration

    return parse


def _zone(value: Any) -> str:
    accepted = "an IANA time zone, such as Europe/Berlin or UTC"
    name = _text(accepted, r"[A-Za-z][A-Za-z0-9_+/-]*")(value)
    try:
        return str(ZoneInfo(name).key)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise WrongValue(accepted) from None


def _granularity(value: Any) -> Duration:
    if isinstance(value, str) and value.strip().lower().rstrip("s") in GRANULARITIES:
        return Duration(GRANULARITIES[value.strip().lower().rstrip("s")])
    try:
        return Duration(_duration(10, DAY)(value))
    except WrongValue as wrong:
        raise WrongValue(f"{', '.join(GRANULARITIES)}, or {wrong}") from None


def _listed(text: str) -> Any:
    """`a,b`, or a list in JSON: `["a", "b"]`."""
    if text.lstrip().startswith("["):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            pass  # an IPv6 address may be in brackets
    return text.split(",")


def _words(value: Any, accepted: str) -> tuple[str, ...]:
    """A list in the file; comma-separated text or a JSON list in the environment and in flags."""
    items = _listed(value) if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) for item in items):
        raise WrongValue(accepted)
    return tuple(dict.fromkeys(item.strip() for item in items if item.strip()))


def _some_of(choices: tuple[str, ...], accepted: str, *, lower: bool = True) -> Parser:
    def parse(value: Any) -> tuple[str, ...]:
        words = _words(value, accepted)
        chosen = tuple(word.lower().lstrip(".") for word in words) if lower else words
        if not chosen or any(word not in choices for word in chosen):
            raise WrongValue(accepted)
        return chosen

    return parse


def _auth(value: Any) -> tuple[str, ...]:
    if "oidc" in _words(value, ", ".join(AUTHS)):
        raise WrongValue(
            "auto (open on loopback until the first key is created) or keys; oidc is not available in this version"
        )
    return tuple(_some_of(AUTHS, "auto (open on loopback until the first key is created) or keys")(value))


def _log_level(value: Any) -> str:
    if not isinstance(value, str) or value.upper() not in LEVELS:
        raise WrongValue(", ".join(LEVELS))
    return value.upper()


def _log_format(value: Any) -> str:
    if not isinstance(value, str) or value.lower() not in FORMATS:
        raise WrongValue(f"{' or '.join(FORMATS)}; without it console on a terminal and json otherwise")
    return value.lower()


def _store(value: Any) -> str:
    accepted = "sqlite:///PATH, sqlite:///:memory: or postgresql://USER@HOST/DATABASE"
    if not isinstance(value, str) or not re.match(r"(sqlite:///.|postgres(ql)?://)", value):
        raise WrongValue(accepted)
    return value


def _egress(value: Any) -> tuple[str, ...]:
    accepted = (
        "networks (10.0.0.0/8), addresses (192.168.1.7, ::1) and host names (hooks.internal, *.corp.example), "
        "addresses and host names optionally with a port (127.0.0.1:8000)"
    )
    words = _words(value, accepted)
    for word in words:
        try:
            ipaddress.ip_network(word.strip("[]"), strict=False)
        except ValueError:
            if not is_host_port(word) and not is_host(word):
                raise WrongValue(accepted) from None
    return words


def _public_url(value: Any) -> str:
    accepted = "the http:// or https:// URL under which others reach the API, such as https://jobs.example.com"
    try:
        parts = urlsplit(value) if isinstance(value, str) else None
        fits = parts is not None and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        fits = False
    if not fits or not re.fullmatch(r"https?://[!-~]{1,1000}", value) or re.search(r'[?#@"<>\\]', value):
        raise WrongValue(accepted)
    return str(value).rstrip("/")


def _root_path(value: Any) -> str:
    path = str(value).rstrip("/") if isinstance(value, str) else None
    if path is None or not re.fullmatch(r"(/(?!\.\.?(/|$))[A-Za-z0-9._~-]{1,100}){0,10}", path):
        raise WrongValue("a path such as /scheduler, of letters, digits, dots, underscores, tildes and hyphens")
    return path


def _networks(value: Any) -> tuple[str, ...]:
    accepted = "addresses and networks separated by commas, such as 127.0.0.1,10.0.0.0/8"
    words = _words(value, accepted)
    for word in words:
        try:
            ipaddress.ip_network(word, strict=False)
        except ValueError:
            raise WrongValue(accepted) from None
    return words


def _labels(value: Any) -> tuple[str, ...]:
    accepted = f"at most {MOST_OF_NODE} labels separated by commas, such as gpu,eu; each of {ACCEPTED_LABELS}"
    words = _words(value, accepted)
    if len(words) > MOST_OF_NODE or not all(re.match(LABEL_PATTERN, word) for word in words):
        raise WrongValue(accepted)
    return words


def _functions(value: Any) -> tuple[str, ...]:
    accepted = (
        "Python modules whose functions jobs may call (reports.nightly), or single functions (reports.nightly:send)"
    )
    words = _words(value, accepted)
    for word in words:
        module, colon, name = word.partition(":")
        if not all(part.isidentifier() for part in module.split(".")) or (colon and not name.isidentifier()):
            raise WrongValue(accepted)
    return words


def _object_store(value: Any) -> str:
    accepted = "a directory, or s3://BUCKET/PREFIX, optionally with ?endpoint=URL&region=NAME"
    if not isinstance(value, (str, Path)) or not re.fullmatch(
        r"s3://[^/?\s]+[^\s]*|(?![a-z0-9]+://)[^\x00]+", str(value)
    ):
        raise WrongValue(accepted)
    return str(value)


PARSERS: dict[str, Parser] = {
    "STORE": _store,
    "HOST": _text("an address or host name to listen on, such as 127.0.0.1, ::1 or 0.0.0.0", r"[A-Za-z0-9.:_%-]+"),
    "PORT": _whole(0, 65535),
    "ROLES": _some_of(ROLES, "api, executor, or both separated by a comma"),
    "WORKERS": _whole(1, 256),
    "LABELS": _labels,
    "NODE_NAME": _text("a name of 1 to 200 characters for this node", r"[^\x00-\x1f\x7f\ud800-\udfff]{1,200}"),
    "METRICS_PORT": _whole(1, 65535),
    "JOBS_FILE_PATH": _path,
    "JOBS_SOURCE": _text(
        "a source name of 1 to 200 characters for the jobs of the file", r"[^\x00-\x1f\x7f\ud800-\udfff]{1,200}"
    ),
    "SUPPORTED_EXTENSIONS": _some_of(EXTENSIONS, f"one or more of {', '.join(EXTENSIONS)}"),
    "GRANULARITY": _granularity,
    "LOG_LEVEL": _log_level,
    "LOG_FORMAT": _log_format,
    "LOGS_BASE_DIRECTORY": _path,
    "NEXT_JOB_COUNT": _whole(1, 1_000_000),
    "LOOKAHEAD": _duration(0, MINUTE),
    "POLL_INTERVAL": _duration(10, HOUR),
    "LEASE": _duration(2 * SECOND, HOUR),
    "GRACE": _duration(0, DAY),
    "CONCURRENCY": _whole(1, 1_000_000),
    "DESTINATION_CONCURRENCY": _whole(1, 1_000_000),
    "FUNCTION_PROCESSES": _whole(1, 10_000),
    "TIMEOUT_SECONDS": lambda value: _duration(1, DAY)(value).seconds,
    "DEFAULT_TZ": _zone,
    "RETENTION": _duration(MINUTE),
    "AUTH": _auth,
    "ADMIN_KEY": _text(
        "16 to 200 letters, digits and punctuation marks without spaces; make one with `openssl rand -hex 32`",
        r"[!-~]{16,200}",
    ),
    "TLS_CERT": _path,
    "TLS_KEY": _path,
    "EGRESS_ALLOW": _egress,
    "PUBLIC_URL": _public_url,
    "WITNESS_PING_URL": _text("an http(s) URL", r"https?://\S{1,2000}"),
    "ROOT_PATH": _root_path,
    "TRUSTED_PROXIES": _networks,
    "FUNCTIONS": _functions,
    "COMMANDS": parse_commands,
    "BROKERS": parse_brokers,
    "INTAKE": parse_intakes,
    "CERTIFICATES": parse_certificates,
    "OBJECT_STORE": _object_store,
    "SCRIPTS": parse_scripts,
    "CONTAINERS": parse_containers,
    "KUBERNETES": parse_kubernetes,
    "AWS": parse_aws,
    "WORKFLOWS": parse_workflows,
    "TARGETS": parse_targets,
    "CHANNELS": parse_channels,
    "ALERTS": parse_alerts,
}
