"""Channels and alert rules: `[channels.NAME] url | command` and `[alerts.NAME] on = [...], channels = [...]`.

Only the operator says where alerts go, so EGRESS_ALLOW does not apply. A URL may hold a secret: it is shown nowhere.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec

from onthedot.errors import SettingsError
from onthedot.model.alerts import ACCEPTED_QUIET, RAISED_BY, AlertRule, read_quiet
from onthedot.model.decoding import dec_hook
from onthedot.model.duration import ACCEPTED_DURATIONS, Duration
from onthedot.settings.wrong_value import WrongValue, wrong_field

__all__ = ["AlertSetting", "ChannelSetting", "parse_alerts", "parse_channels"]

_CHANNELS = (
    'tables [channels.NAME] with url = "https://…" or an apprise URL such as "slack://…" (or url_file, url_env), or '
    'with command = ["program", "argument", …]; or the same as JSON: {"NAME": {…}}'
)
_ALERTS = (
    f"tables [alerts.NAME] with on = [some of {', '.join(RAISED_BY)}] and channels = [names of channels], and "
    "optionally match = {tag, owner, target}, quiet, repeat, late, too_long and in_a_row; or the same as JSON"
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s]+")


class ChannelSetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table. A URL in a file or variable is read when the node starts."""

    url: str | None = None
    url_file: str | None = None
    url_env: str | None = None
    command: tuple[str, ...] = ()

    def address(self) -> str:
        """Raises SettingsError if it is not where it should be."""
        if self.url_file is not None:
            try:
                found = Path(self.url_file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise SettingsError(f"the url_file of a channel can't be read: {error}") from None
        elif self.url_env is not None:
            found = os.environ.get(self.url_env, "")
        else:
            found = self.url or ""
        if _URL.fullmatch(found) is None:
            raise SettingsError(f"the URL of a channel (from {self.url_file or self.url_env or 'url'}) is not valid")
        return found

    def __repr__(self) -> str:
        return f"ChannelSetting({self.command[0] if self.command else (self.url or '').partition('://')[0] or 'url'})"


class AlertMatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs a rule is for: those with all of these. Without any: all jobs."""

    tag: str | None = None
    owner: str | None = None
    target: str | None = None


class AlertSetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table. `late`, `too_long` and `in_a_row`: what these conditions mean; left out 30 s, twice the job's own p95,
    and 3."""

    on: tuple[str, ...]
    channels: tuple[str, ...] = ()
    match: AlertMatch = AlertMatch()
    quiet: str | None = None
    repeat: Duration | None = None
    late: Duration | None = None
    too_long: Duration | None = None
    in_a_row: int | None = None

    def rule(self, name: str) -> AlertRule:
        given = {"late": self.late, "in_a_row": self.in_a_row, "too_long": self.too_long, "repeat": self.repeat}
        return AlertRule(
            name=name,
            on=frozenset(self.on),
            channels=self.channels,
            tag=self.match.tag,
            owner=self.match.owner,
            target=self.match.target,
            usual=self.too_long is None,
            quiet=self.quiet,
            **{field: int(value) for field, value in given.items() if value is not None},
        )


def parse_channels(value: Any) -> dict[str, ChannelSetting]:
    found: dict[str, ChannelSetting] = _read(value, dict[str, ChannelSetting], _CHANNELS, "channels")
    for name, setting in found.items():
        _check_name(name, _CHANNELS)
        ways = [setting.url, setting.url_file, setting.url_env, setting.command or None]
        if sum(way is not None for way in ways) != 1:
            raise WrongValue(_CHANNELS, f"channels.{name} must have one of url, url_file, url_env and command")
        if setting.url is not None and _URL.fullmatch(setting.url) is None:
            raise WrongValue(_CHANNELS, f"the url of channels.{name} is not valid")
        if setting.command and not setting.command[0]:
            raise WrongValue(_CHANNELS, f"the command of channels.{name} is missing the program")
    return found


def parse_alerts(value: Any) -> dict[str, AlertSetting]:
    found: dict[str, AlertSetting] = _read(value, dict[str, AlertSetting], _ALERTS, "alerts")
    for name, setting in found.items():
        _check_name(name, _ALERTS)
        unknown = [condition for condition in setting.on if condition not in RAISED_BY]
        if unknown or not setting.on:
            wrong = f"{unknown[0][:50]!r} in on is unknown" if unknown else "on is empty"
            raise WrongValue(_ALERTS, f"alerts.{name}: {wrong}")
        if setting.quiet is not None and read_quiet(setting.quiet) is None:
            raise WrongValue(_ALERTS, f"alerts.{name}.quiet must be {ACCEPTED_QUIET}")
        if setting.in_a_row is not None and not 1 <= setting.in_a_row <= 1000:
            raise WrongValue(_ALERTS, f"alerts.{name}.in_a_row must be a number from 1 to 1000")
        for field in ("repeat", "late", "too_long"):
            if (duration := getattr(setting, field)) is not None and duration <= 0:
                raise WrongValue(_ALERTS, f"alerts.{name}.{field} must be {ACCEPTED_DURATIONS}, more than zero")
    return found


def _read(value: Any, shape: Any, accepted: str, path: str) -> Any:
    """As JSON in any case: the same from file, environment and in every worker process. The value is not repeated in
    the error: it may hold a secret."""
    try:
        text = value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str)
        return msgspec.json.decode(text or "{}", type=shape, dec_hook=dec_hook)
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise WrongValue(accepted, wrong_field(error, value, shape, path)) from None


def _check_name(name: str, accepted: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise WrongValue(accepted, f"{name[:100]!r} is not a valid name")
