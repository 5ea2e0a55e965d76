"""Loads settings once, in this order of precedence: flags, environment, `onthedot.toml`, defaults.

An unknown setting is an error that suggests the nearest known one, because a typo that is ignored costs hours.
All invalid values are reported at once, each with what was given and what is accepted.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onthedot.errors import SettingsError
from onthedot.settings.secrets import FILE_NAMES, POSTGRES_NAMES, add_store, read_files
from onthedot.settings.service_links import without_service_links
from onthedot.settings.structs import Settings
from onthedot.settings.values import PARSERS
from onthedot.settings.wrong_value import WrongValue, quoted

__all__ = ["load_settings"]

PREFIX = "ONTHEDOT_"
BARE_NAMES = ("JOBS_FILE_PATH", "SUPPORTED_EXTENSIONS", "GRANULARITY", "LOG_LEVEL", "LOGS_BASE_DIRECTORY")
BARE_PARTS = (*POSTGRES_NAMES, *(f"{name}_FILE" for name in POSTGRES_NAMES))  # as the image of PostgreSQL calls them
PARTS = (*POSTGRES_NAMES, *FILE_NAMES)  # settings that become others: STORE, ADMIN_KEY
CLIENT_NAMES = ("URL", "KEY", "CA")  # variables of the client commands
RUN_NAMES = (
    "RUN_ID",
    "JOB_ID",
    "JOB_KEY",
    "SCHEDULED_FOR",
    "ATTEMPT",
    "PARAMS",
)  # variables that a command target receives
PRIVATE_NAMES = ("ADMIN_KEY", "BROKERS", "CHANNELS", "COMMANDS", "TARGETS", "WORKFLOWS")  # may have passwords in them
FILE_NAME = "onthedot.toml"


def load_settings(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | str | None = None,
) -> Settings:
    """Merge the three sources into one Settings. Raises SettingsError with all problems.

    `flags` that are None count as not given. `file` None: `onthedot.toml` in the working directory, if it exists.
    """
    problems: list[str] = []
    found: dict[str, tuple[str, Any]] = {}  # name → (origin, value); later sources win
    found.update(_from_file(file, problems))
    found.update(_from_environment(os.environ if environ is None else environ, problems))
    found.update(_from_flags(flags or {}, problems))
    read_files(found, problems)
    add_store(found, problems)
    values: dict[str, Any] = {}
    for name, (origin, value) in found.items():
        try:
            values[name.lower()] = PARSERS[name](value)
        except WrongValue as wrong:
            private = name in PRIVATE_NAMES or (name == "STORE" and "@" in str(value))
            shown = "the value" if private else quoted(value)
            problems.append(f"{name} ({origin}): {wrong.told(shown)}")
    problems += _unknown_channels(values)
    if problems:
        raise SettingsError("\n".join(problems))
    origins = {name.lower(): origin for name, (origin, _) in found.items() if name.lower() in values}
    return Settings(**values, given=frozenset(values), origins=origins)


def _unknown_channels(values: Mapping[str, Any]) -> list[str]:
    known = values.get("channels", {})
    return [
        f"ALERTS: alerts.{name} names the unknown channel {channel!r}. Known: {', '.join(known) or 'none'}"
        for name, rule in values.get("alerts", {}).items()
        for channel in rule.channels
        if channel not in known
    ]


def _from_file(file: Path | str | None, problems: list[str]) -> dict[str, tuple[str, Any]]:
    path = Path(file if file is not None else FILE_NAME)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if file is not None:
            problems.append(f"{path}: settings file not found")
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
    environ = without_service_links(environ)
    found: dict[str, tuple[str, Any]] = {}
    for name in (*BARE_NAMES, *BARE_PARTS):
        if environ.get(name):
            found[name] = (f"${name}", environ[name])
    for variable, value in environ.items():
        name = variable.removeprefix(PREFIX)
        if not variable.startswith(PREFIX) or name in (*CLIENT_NAMES, *RUN_NAMES):
            continue
        if name not in PARSERS and name not in PARTS:
            problems.append(f"${variable}: unknown setting{_nearest(name, PREFIX)}")
        elif value:  # empty means unset, as in shells and compose files
            found[name] = (f"${variable}", value)
    return found


def _from_flags(flags: Mapping[str, Any], problems: list[str]) -> dict[str, tuple[str, Any]]:
    return _known({name: value for name, value in flags.items() if value is not None}, "flag", problems)


def _known(loose: Mapping[str, Any], origin: str, problems: list[str]) -> dict[str, tuple[str, Any]]:
    found: dict[str, tuple[str, Any]] = {}
    for written, value in loose.items():
        name = written.upper().replace("-", "_")
        if name in PARSERS or name in PARTS:
            found[name] = (origin, value)
        else:
            problems.append(f"{written} ({origin}): unknown setting{_nearest(name, '')}")
    return found


def _nearest(name: str, prefix: str) -> str:
    known = [*PARSERS, *PARTS, *(CLIENT_NAMES if prefix else ())]
    close = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.5)
    return f". Did you mean {prefix}{close[0]}?" if close else f". Known: {', '.join(sorted(PARSERS))}"
