"""Flags > environment > `onthedot.toml` > defaults, read once into one frozen Settings.

A setting nobody knows is an error that names the nearest known one: a typo that is silently ignored costs a night.
Every wrong value is named with what was given and what is accepted, all of them at once.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from onthedot.errors import SettingsError
from onthedot.model.duration import ACCEPTED_DURATIONS, DAY, HOUR, MINUTE, SECOND, Duration

__all__ = ["CommandSetting", "Settings", "load_settings", "read_commands"]

PREFIX = "ONTHEDOT_"
BARE_NAMES = ("JOBS_FILE_PATH", "SUPPORTED_EXTENSIONS", "GRANULARITY", "LOG_LEVEL", "LOGS_BASE_DIRECTORY")
CLIENT_NAMES = ("URL", "KEY")  # the client commands' own variables
RUN_NAMES = ("RUN_ID", "JOB_ID", "JOB_KEY", "SCHEDULED_FOR", "ATTEMPT", "PARAMS")  # what a job's command is told
NOT_YET = ("OBJECT_STORE", "ALERTS")
ROLES = ("api", "executor")
AUTHS = ("auto", "keys")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
EXTENSIONS = ("json", "yaml", "yml", "toml")
GRANULARITIES = {"second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY}
FILE_NAME = "onthedot.toml"


class CommandSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A command that jobs may name: the operator decides what it is, a job only that it runs."""

    argv: tuple[str, ...]
    env: dict[str, str] = msgspec.field(default_factory=dict)
    cwd: str | None = None
    inherit_env: tuple[str, ...] = ()  # names of further variables it gets from the node's own environment


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an operator decides. Durations are `Duration` (ms); `given` are the names somebody set on purpose."""

    store: str = "sqlite:///onthedot.db"
    host: str = "127.0.0.1"
    port: int = 8000
    roles: tuple[str, ...] = ROLES
    workers: int = 1
    jobs_file_path: Path = Path("jobs.json")
    supported_extensions: tuple[str, ...] = EXTENSIONS
    granularity: Duration = Duration(SECOND)
    log_level: str = "INFO"
    logs_base_directory: Path = Path("logs")
    next_job_count: int = 1000
    lookahead: Duration = Duration(2 * SECOND)
    poll_interval: Duration = Duration(SECOND)
    lease: Duration = Duration(5 * SECOND)
    grace: Duration = Duration(10 * SECOND)
    concurrency: int = 1000
    function_processes: int = msgspec.field(default_factory=lambda: 2 * (os.cpu_count() or 1))
    timeout_seconds: float = 3.0
    retention: Duration = Duration(30 * DAY)
    auth: tuple[str, ...] = ("auto",)
    egress_allow: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    commands: dict[str, CommandSetting] = msgspec.field(default_factory=dict)
    given: frozenset[str] = frozenset()

    @property
    def loopback(self) -> bool:
        """Bound to this machine alone: open without a key, and webhooks may go to this machine."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def is_sqlite(self) -> bool:
        return self.store.startswith("sqlite:")


def load_settings(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | str | None = None,
) -> Settings:
    """One Settings of the three sources, or SettingsError with everything that is wrong.

    `flags` that are None were not given. `file` None: `onthedot.toml` in the working directory, if there is one.
    """
    problems: list[str] = []
    found: dict[str, tuple[str, Any]] = {}  # name → (where it came from, value); later sources win
    found.update(_from_file(file, problems))
    found.update(_from_environment(os.environ if environ is None else environ, problems))
    found.update(_from_flags(flags or {}, problems))
    values: dict[str, Any] = {}
    for name, (origin, value) in found.items():
        try:
            values[name.lower()] = _PARSERS[name](value)
        except _Wrong as wrong:
            problems.append(f"{name} ({origin}): {_quoted(value)} is wrong. Accepted: {wrong}")
        except _NotYet:
            problems.append(f"{name} ({origin}): not available yet in this version. Remove it")
    if problems:
        raise SettingsError("\n".join(problems))
    for name in NOT_YET:
        values.pop(name.lower(), None)
    return Settings(**values, given=frozenset(values))


def _from_file(file: Path | str | None, problems: list[str]) -> dict[str, tuple[str, Any]]:
    path = Path(file if file is not None else FILE_NAME)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if file is not None:
            problems.append(f"{path}: there is no such settings file")
        return {}
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path}: can't be read: {error}")
        return {}
    try:
        loose = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{path}: not valid TOML: {error}")
        return {}
    return _known(loose, str(path), problems)


def _from_environment(environ: Mapping[str, str], problems: list[str]) -> dict[str, tuple[str, Any]]:
    found: dict[str, tuple[str, Any]] = {}
    for name in BARE_NAMES:
        if environ.get(name):
            found[name] = (f"${name}", environ[name])
    for variable, value in environ.items():
        name = variable.removeprefix(PREFIX)
        if not variable.startswith(PREFIX) or name in (*CLIENT_NAMES, *RUN_NAMES):
            continue
        if name not in _PARSERS or name == "COMMANDS":
            problems.append(f"${variable}: unknown setting{_nearest(name, PREFIX)}")
        elif value:  # set but empty means unset, as shells and compose files do it
            found[name] = (f"${variable}", value)
    return found


def _from_flags(flags: Mapping[str, Any], problems: list[str]) -> dict[str, tuple[str, Any]]:
    return _known({name: value for name, value in flags.items() if value is not None}, "flag", problems)


def _known(loose: Mapping[str, Any], origin: str, problems: list[str]) -> dict[str, tuple[str, Any]]:
    found: dict[str, tuple[str, Any]] = {}
    for written, value in loose.items():
        name = written.upper().replace("-", "_")
        if name in _PARSERS:
            found[name] = (origin, value)
        else:
            problems.append(f"{written} ({origin}): unknown setting{_nearest(name, '')}")
    return found


def _nearest(name: str, prefix: str) -> str:
    known = [*_PARSERS, *CLIENT_NAMES] if prefix else [*_PARSERS]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f". Did you mean {prefix}{close[0]}?" if close else f". Known: {', '.join(sorted(_PARSERS))}"


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"


class _Wrong(Exception):
    """The value does not do; the message is what would."""


class _NotYet(Exception):
    """The setting is known, but nothing uses it in this version."""


Parser = Callable[[Any], Any]


def _text(accepted: str, pattern: str = r"(?s).+") -> Parser:
    def parse(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise _Wrong(accepted)
        return value

    return parse


def _path(value: Any) -> Path:
    if not isinstance(value, (str, Path)) or not str(value) or "\x00" in str(value):
        raise _Wrong("a path")
    return Path(value)


def _whole(low: int, high: int) -> Parser:
    def parse(value: Any) -> int:
        if isinstance(value, str) and re.fullmatch(r"\d{1,12}", value.strip(), re.ASCII):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise _Wrong(f"a whole number from {low} to {high}")
        return value

    return parse


def _duration(low: int, high: int = 100 * 365 * DAY) -> Parser:
    accepted = f"{ACCEPTED_DURATIONS}; from {Duration(low)} to {Duration(high)}"

    def parse(value: Any) -> Duration:
        try:
            duration = Duration.parse(value)
        except ValueError:
            raise _Wrong(accepted) from None
        if not low <= duration <= high:
            raise _Wrong(accepted)
        return duration

    return parse


def _granularity(value: Any) -> Duration:
    if isinstance(value, str) and value.strip().lower().rstrip("s") in GRANULARITIES:
        return Duration(GRANULARITIES[value.strip().lower().rstrip("s")])
    try:
        return Duration(_duration(10, DAY)(value))
    except _Wrong as wrong:
        raise _Wrong(f"{', '.join(GRANULARITIES)}, or {wrong}") from None


def _words(value: Any, accepted: str) -> tuple[str, ...]:
    """A list in the file, text with commas in the environment and in flags."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) for item in items):
        raise _Wrong(accepted)
    return tuple(dict.fromkeys(item.strip() for item in items if item.strip()))


def _some_of(choices: tuple[str, ...], accepted: str, *, lower: bool = True) -> Parser:
    def parse(value: Any) -> tuple[str, ...]:
        words = _words(value, accepted)
        chosen = tuple(word.lower().lstrip(".") for word in words) if lower else words
        if not chosen or any(word not in choices for word in chosen):
            raise _Wrong(accepted)
        return chosen

    return parse


def _auth(value: Any) -> tuple[str, ...]:
    if "oidc" in _words(value, ", ".join(AUTHS)):
        raise _Wrong("auto (open on loopback until the first key is made) or keys; oidc is not available yet")
    return tuple(_some_of(AUTHS, "auto (open on loopback until the first key is made) or keys")(value))


def _log_level(value: Any) -> str:
    if not isinstance(value, str) or value.upper() not in LEVELS:
        raise _Wrong(", ".join(LEVELS))
    return value.upper()


def _store(value: Any) -> str:
    accepted = "sqlite:///PATH, sqlite:///:memory: or postgresql://USER@HOST/DATABASE"
    if not isinstance(value, str) or not re.match(r"(sqlite:///.|postgres(ql)?://)", value):
        raise _Wrong(accepted)
    return value


_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?", re.ASCII)


def _egress(value: Any) -> tuple[str, ...]:
    accepted = "networks (10.0.0.0/8), addresses (192.168.1.7, ::1) and host names (hooks.internal, *.corp.example)"
    words = _words(value, accepted)
    for word in words:
        try:
            ipaddress.ip_network(word.strip("[]"), strict=False)
        except ValueError:
            if not _HOST.fullmatch(word) or word.rstrip(".").rpartition(".")[2].isdecimal():
                raise _Wrong(accepted) from None
    return words


def _functions(value: Any) -> tuple[str, ...]:
    accepted = "names of Python modules whose functions jobs may call, such as reports.nightly"
    words = _words(value, accepted)
    if not all(all(part.isidentifier() for part in word.split(".")) for word in words):
        raise _Wrong(accepted)
    return words


def read_commands(value: Any) -> dict[str, CommandSetting]:
    """`[commands.NAME]` tables of the settings file, or of a jobs file given on the command line."""
    try:
        return dict(_commands(value))
    except _Wrong as wrong:
        raise SettingsError(f"commands: {_quoted(value)} is wrong. Accepted: {wrong}") from None


def _commands(value: Any) -> dict[str, CommandSetting]:
    accepted = 'tables [commands.NAME] with argv = ["program", "argument", …], and optionally env = {…} and cwd = "…"'
    if not isinstance(value, Mapping):
        raise _Wrong(accepted)
    commands = {}
    for name, table in value.items():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", str(name)):
            raise _Wrong(f"{accepted}; {name!r} is no name")
        if isinstance(table, CommandSetting):
            commands[name] = table
            continue
        fits = isinstance(table, Mapping) and not set(table) - {"argv", "env", "cwd", "inherit_env"}
        try:
            command = msgspec.convert(dict(table) if fits else None, CommandSetting)
        except msgspec.ValidationError as error:
            raise _Wrong(f"{accepted}; commands.{name}: {error}") from None
        if not command.argv or not command.argv[0]:
            raise _Wrong(f"{accepted}; commands.{name}.argv names no program")
        commands[name] = command
    return commands


def _not_yet(value: Any) -> None:
    if value not in ("", [], {}, False):
        raise _NotYet


_PARSERS: dict[str, Parser] = {
    "STORE": _store,
    "HOST": _text("an address or host name to listen on, such as 127.0.0.1, ::1 or 0.0.0.0", r"[A-Za-z0-9.:_%-]+"),
    "PORT": _whole(0, 65535),
    "ROLES": _some_of(ROLES, "api, executor, or both with a comma"),
    "WORKERS": _whole(1, 256),
    "JOBS_FILE_PATH": _path,
    "SUPPORTED_EXTENSIONS": _some_of(EXTENSIONS, f"some of {', '.join(EXTENSIONS)}"),
    "GRANULARITY": _granularity,
    "LOG_LEVEL": _log_level,
    "LOGS_BASE_DIRECTORY": _path,
    "NEXT_JOB_COUNT": _whole(1, 1_000_000),
    "LOOKAHEAD": _duration(0, MINUTE),
    "POLL_INTERVAL": _duration(10, HOUR),
    "LEASE": _duration(2 * SECOND, HOUR),
    "GRACE": _duration(0, DAY),
    "CONCURRENCY": _whole(1, 1_000_000),
    "FUNCTION_PROCESSES": _whole(1, 10_000),
    "TIMEOUT_SECONDS": lambda value: _duration(1, DAY)(value).seconds,
    "RETENTION": _duration(MINUTE),
    "AUTH": _auth,
    "EGRESS_ALLOW": _egress,
    "FUNCTIONS": _functions,
    "COMMANDS": _commands,
    **dict.fromkeys(NOT_YET, _not_yet),
}
