"""Parses each setting: comma-separated text in the environment, native types in the TOML file."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from onthedot.errors import SettingsError
from onthedot.model.duration import ACCEPTED_DURATIONS, DAY, HOUR, MINUTE, SECOND, Duration
from onthedot.model.size import read_size
from onthedot.settings.brokers import BROKER_ACCEPTED, BrokerSetting, WrongBroker, read_brokers
from onthedot.settings.structs import EXTENSIONS, ROLES, CertificateSetting, CommandSetting, ScriptSetting

__all__ = ["NOT_YET", "PARSERS", "NotYet", "WrongValue", "quoted", "read_commands"]

NOT_YET = ("ALERTS",)
AUTHS = ("auto", "keys")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
GRANULARITIES = {"second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY}


class WrongValue(Exception):
    """The value is not valid; the message says what is accepted."""


class NotYet(Exception):
    """The setting is known but not available in this version."""


def quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"


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


def _store(value: Any) -> str:
    accepted = "sqlite:///PATH, sqlite:///:memory: or postgresql://USER@HOST/DATABASE"
    if not isinstance(value, str) or not re.match(r"(sqlite:///.|postgres(ql)?://)", value):
        raise WrongValue(accepted)
    return value


_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?", re.ASCII)


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
            if not _is_host_port(word) and not _is_host(word):
                raise WrongValue(accepted) from None
    return words


def _is_host_port(word: str) -> bool:
    """ "127.0.0.1:8000", "[::1]:8000", "hooks.internal:8000"."""
    host, _, port = word.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65536:
        return False
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return _is_host(host)
    return True


def _is_host(word: str) -> bool:
    return _HOST.fullmatch(word) is not None and not word.rstrip(".").rpartition(".")[2].isdecimal()


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


def read_commands(value: Any) -> dict[str, CommandSetting]:
    """Read the `[commands.NAME]` tables of the settings file, or of a jobs file given on the command line."""
    try:
        return dict(_commands(value))
    except WrongValue as wrong:
        raise SettingsError(f"commands: {quoted(value)} is not valid. Accepted: {wrong}") from None


def _commands(value: Any) -> dict[str, CommandSetting]:
    accepted = 'tables [commands.NAME] with argv = ["program", "argument", …], and optionally env = {…} and cwd = "…"'
    if not isinstance(value, Mapping):
        raise WrongValue(accepted)
    commands = {}
    for name, table in value.items():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", str(name)):
            raise WrongValue(f"{accepted}; {name!r} is not a valid name")
        if isinstance(table, CommandSetting):
            commands[name] = table
            continue
        fits = isinstance(table, Mapping) and not set(table) - {"argv", "env", "cwd", "inherit_env"}
        try:
            command = msgspec.convert(dict(table) if fits else None, CommandSetting)
        except msgspec.ValidationError as error:
            raise WrongValue(f"{accepted}; commands.{name}: {error}") from None
        if not command.argv or not command.argv[0]:
            raise WrongValue(f"{accepted}; commands.{name}.argv is missing the program")
        commands[name] = command
    return commands


def _certificates(value: Any) -> dict[str, CertificateSetting]:
    accepted = (
        'tables [certificates.NAME] with cert = "FILE", key = "FILE", ca = "FILE" and hosts = ["hooks.example.com", '
        '"*.example.com"] (at least cert or ca), or the same as JSON: {"NAME": {…}}'
    )
    try:
        text = value if isinstance(value, str) else msgspec.json.encode(value)
        found = msgspec.json.decode(text, type=dict[str, CertificateSetting])
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise WrongValue(f"{accepted}; {error}") from None
    for name, setting in found.items():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", name):
            raise WrongValue(f"{accepted}; {name!r} is not a valid name")
        if not setting.cert and not setting.ca:
            raise WrongValue(f"{accepted}; certificates.{name} has neither cert nor ca")
        if setting.key and not setting.cert:
            raise WrongValue(f"{accepted}; certificates.{name} has a key but no cert")
        for host in setting.hosts:
            if host != "*" and not _is_host(host) and not _is_host_port(host) and not _is_address(host):
                raise WrongValue(f"{accepted}; certificates.{name}: {host!r} is not a valid host")
    return found


def _is_address(word: str) -> bool:
    try:
        ipaddress.ip_address(word.strip("[]"))
    except ValueError:
        return False
    return True


def _targets(value: Any) -> dict[str, dict[str, Any]]:
    accepted = 'tables [targets.NAME] with the settings of the plug-in NAME, or the same as JSON: {"NAME": {…}}'
    try:
        # As JSON in any case: a plug-in gets the same values from file and environment, and in every worker process.
        text = value if isinstance(value, str) else msgspec.json.encode(value)
        return msgspec.json.decode(text, type=dict[str, dict[str, Any]])
    except (msgspec.MsgspecError, TypeError, ValueError):
        raise WrongValue(accepted) from None


def _brokers(value: Any) -> dict[str, BrokerSetting]:
    try:
        return read_brokers(value)
    except WrongBroker as wrong:
        raise WrongValue(f"{BROKER_ACCEPTED}; {wrong}") from None


def _object_store(value: Any) -> str:
    accepted = "a directory, or s3://BUCKET/PREFIX, optionally with ?endpoint=URL&region=NAME"
    if not isinstance(value, (str, Path)) or not re.fullmatch(
        r"s3://[^/?\s]+[^\s]*|(?![a-z0-9]+://)[^\x00]+", str(value)
    ):
        raise WrongValue(accepted)
    return str(value)


def _scripts(value: Any) -> ScriptSetting:
    accepted = (
        'a table [scripts] with interpreters = {python = "/usr/bin/python3", …} (a program, or a list with its '
        'arguments), memory = "1G" and network = false, or the same as JSON'
    )
    if isinstance(value, ScriptSetting):
        return value
    try:
        table = msgspec.json.decode(value) if isinstance(value, str) else value
        table = dict(table)
        programs = {name: _program(given) for name, given in dict(table.pop("interpreters", {})).items()}
        memory, network = read_size(table.pop("memory", "1G")), table.pop("network", False)
    except (msgspec.MsgspecError, TypeError, ValueError, AttributeError) as error:
        raise WrongValue(f"{accepted}; {error}") from None
    if table or not isinstance(network, bool):
        raise WrongValue(f"{accepted}; {', '.join(table) or 'network'} is not valid")
    return ScriptSetting(interpreters=programs, memory=memory, network=network)


def _program(given: Any) -> tuple[str, ...]:
    argv = (given,) if isinstance(given, str) else tuple(given)
    if not argv or not all(isinstance(word, str) and word for word in argv) or not argv[0].startswith("/"):
        raise ValueError(f"{quoted(given)} is not an absolute path, or a list that begins with one")
    return argv


def _not_yet(value: Any) -> None:
    if value not in ("", [], {}, False):
        raise NotYet


PARSERS: dict[str, Parser] = {
    "STORE": _store,
    "HOST": _text("an address or host name to listen on, such as 127.0.0.1, ::1 or 0.0.0.0", r"[A-Za-z0-9.:_%-]+"),
    "PORT": _whole(0, 65535),
    "ROLES": _some_of(ROLES, "api, executor, or both separated by a comma"),
    "WORKERS": _whole(1, 256),
    "JOBS_FILE_PATH": _path,
    "JOBS_SOURCE": _text("a source name of 1 to 200 characters for the jobs of the file", r"[^\x00-\x1f\x7f]{1,200}"),
    "SUPPORTED_EXTENSIONS": _some_of(EXTENSIONS, f"one or more of {', '.join(EXTENSIONS)}"),
    "GRANULARITY": _granularity,
    "LOG_LEVEL": _log_level,
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
    "RETENTION": _duration(MINUTE),
    "AUTH": _auth,
    "EGRESS_ALLOW": _egress,
    "PUBLIC_URL": _public_url,
    "FUNCTIONS": _functions,
    "COMMANDS": _commands,
    "BROKERS": _brokers,
    "CERTIFICATES": _certificates,
    "OBJECT_STORE": _object_store,
    "SCRIPTS": _scripts,
    "TARGETS": _targets,
    **dict.fromkeys(NOT_YET, _not_yet),
}
