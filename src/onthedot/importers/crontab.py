"""Crontabs of Vixie cron and its descendants (Debian, cronie): of a user, or of the system with a user in each line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from cronsim import CronSim, CronSimError

from onthedot.errors import Invalid
from onthedot.importers.clock_changes import NextFiring, fit_cron
from onthedot.importers.cron_sets import CronFields, NotExpressible, compact
from onthedot.importers.findings import ImportedJobs
from onthedot.timing.cron_text import parse_cron
from onthedot.timing.zones import is_zone, zone

__all__ = ["import_crontab"]

SHELL = "/bin/sh"
_VARIABLE = re.compile(r"""\s*(["']?)([A-Za-z_][A-Za-z0-9_]*)\1\s*=\s*(.*?)\s*\Z""")
_MACRO = re.compile(r"\s*(@[A-Za-z_]+)\s+(.*)\Z")
_FIELDS = re.compile(r"\s*" + r"(\S+)\s+" * 5 + r"(.*)\Z")
_RANDOM = re.compile(r"(\d{1,2})~(\d{1,2})|(?<!\S)~(?!\S)")
_USER = re.compile(r"(\S+)\s*(.*)\Z")
_ABOUT_MAIL = ("MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING")
_OF_CRON = (*_ABOUT_MAIL, "CRON_TZ", "RANDOM_DELAY")
_BEFORE_PROGRAM = {"sudo", "nice", "ionice", "env", "exec", "nohup", "time", "command", "chronic", "!"}
_INTERPRETERS = re.compile(r"(python|ruby|perl|php|node|bash|sh|dash|zsh|java)[0-9.]*")


def import_crontab(text: str, found: ImportedJobs, *, tz: str, system: bool = False) -> None:
    """Add the jobs of a crontab to `found`. `tz`: the zone of the machine, for lines before a CRON_TZ."""
    variables: dict[str, str] = {}
    told_of: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        item = f"line {number}"
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if (match := _VARIABLE.match(line)) is not None:
            variables[match[2]] = _unquoted(match[3])
            _remark_on_variable(found, item, match[2], variables[match[2]], told_of)
            continue
        _add_line(found, item, line, variables, tz, system)
    if found.commands:
        found.need(
            "commands of this file, which a node registers when it is started with `onthedot serve --jobs FILE`; "
            "`onthedot jobs apply` never sends them"
        )
        found.lose("all commands", "user", "they run as the user of the node")
        if without := [key for key, command in found.commands.items() if "PATH" not in command.get("env", {})]:
            which = "all commands" if len(without) == len(found.commands) else ", ".join(without)
            found.lose(which, "PATH", "they run with that of the node; cron ran them with PATH=/usr/bin:/bin")


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _remark_on_variable(found: ImportedJobs, item: str, name: str, value: str, told_of: set[str]) -> None:
    if name == "MAILTO" and value:
        reason = f"output is not mailed to {value}: it is in the log of each run (`onthedot runs logs`)"
        found.lose(item, "MAILTO", reason)
    elif name in _ABOUT_MAIL and value and name not in told_of:
        found.lose(item, name, "output is not mailed")
    elif name == "TZ":
        reason = "it is the time zone of the commands only, as in cron; CRON_TZ is the zone of schedules"
        found.lose(item, "TZ as the zone of schedules", reason)
    told_of.add(name)


def _add_line(found: ImportedJobs, item: str, line: str, variables: dict[str, str], tz: str, system: bool) -> None:
    split = _split(line)
    if split is None:
        found.lose(item, line.strip()[:200], "not a line of a crontab: expected five fields or a macro, and a command")
        return
    expression, rest = split
    expression = expression.removeprefix("-")  # in cronie: this line is not told to syslog
    user = None
    if system and (match := _USER.match(rest)) is not None:
        user, rest = match[1], match[2]
    if not rest:
        found.lose(item, line.strip()[:200], "there is no command" + (" after the user" if system else ""))
        return
    command, stdin = _command_and_input(rest)
    if expression.lower() == "@reboot":
        found.lose(
            item, f"@reboot {command}"[:200], "jobs belong to the cluster, not to one machine: use its init system"
        )
        return
    zone_name = variables.get("CRON_TZ") or tz
    if not is_zone(zone_name):
        found.lose(item, line.strip()[:200], f"CRON_TZ {zone_name!r} is not an IANA time zone")
        return
    key = found.free_key(_program(command) or item)
    try:
        fitted = fit_cron(_texts(expression), zone_name, _expected(expression, zone_name), now=found.now)
    except NotExpressible as error:
        found.lose(item, line.strip()[:200], str(error))
        return
    policy: dict[str, Any] = {"retry": {"attempts": 1}, "catch_up": "skip"}
    if (delay := variables.get("RANDOM_DELAY", "")).isdecimal() and int(delay):
        policy["jitter"] = f"{int(delay)}m"
    added = found.add(
        item,
        {
            "key": key,
            "name": command,
            "schedule": {"cron": fitted.cron, "tz": zone_name},
            "target": {"type": "command", "command": key},
            "policy": policy,
        },
    )
    if not added:
        return
    found.commands[key] = _command(command, stdin, variables)
    for difference in fitted.differences:
        found.lose(item, "the day on which clocks change", difference, key=key)
    if "~" in expression:
        found.lose(item, f"{expression}: random times", "H is a time that is fixed for the job", key=key)
    if user is not None:
        found.lose(item, f"user {user}", "the command runs as the user of the node", key=key)


def _split(line: str) -> tuple[str, str] | None:
    """The expression and what follows it."""
    if (match := _MACRO.match(line)) is not None:
        return match[1], match[2].strip()
    if (match := _FIELDS.match(line)) is not None:
        return " ".join(match.groups()[:5]), match[6].strip()
    return None


def _command_and_input(text: str) -> tuple[str, str | None]:
    r"""The first `%` ends the command, the others are line ends of its input; `\%` is a percent sign."""
    command, *lines = [part.replace("\\%", "%") for part in re.split(r"(?<!\\)%", text)]
    if not lines:
        return command, None
    given = "\n".join(lines)
    return command.rstrip(), given if given.endswith("\n") else given + "\n"


def _command(command: str, stdin: str | None, variables: dict[str, str]) -> dict[str, Any]:
    env = {name: value for name, value in variables.items() if name not in _OF_CRON}
    made: dict[str, Any] = {"argv": [variables.get("SHELL") or SHELL, "-c", command]}
    if env:
        made["env"] = env
    made["cwd"] = variables.get("HOME") or "~"
    if stdin is not None:
        made["stdin"] = stdin
    return made


def _texts(expression: str) -> Iterator[str]:
    """As it is written, and as sets: a step that leads out of its field is not accepted in new jobs."""
    if "~" in expression:
        yield _RANDOM.sub(lambda match: f"H({match[1]}-{match[2]})" if match[1] else "H", expression)
        return
    yield expression
    parsed = _parsed(expression)
    if expression.startswith("@"):
        return
    days, _, weekdays = parsed.parts[3:]
    yield from CronFields(
        minutes=frozenset(parsed.minutes),
        hours=frozenset(parsed.hours),
        days=_without_long_step(days, 1, 31),
        months=compact(parsed.months, 1, 12),
        weekdays=_without_long_step(weekdays, 0, 7),
    ).texts()


def _without_long_step(field: str, low: int, high: int) -> str:
    """`*/40` as a day of the month is the first one: the longest step that is accepted leaves the same."""

    def shorter(match: re.Match[str]) -> str:
        return f"/{min(int(match[1]), high - low + 1)}"

    return re.sub(r"/(\d+)", shorter, field)


def _expected(expression: str, tz: str) -> NextFiring | None:
    """Cron's own times: cronsim does what Debian's cron does, also when clocks change."""
    if "~" in expression:
        return None
    fields = " ".join(_parsed(expression).parts[1:])

    def following(after: int) -> int | None:
        try:
            at = next(CronSim(fields, datetime.fromtimestamp(after // 1000, UTC).astimezone(zone(tz))))
        except (StopIteration, CronSimError):
            return None
        return int(at.timestamp()) * 1000

    return following


def _parsed(expression: str) -> CronSim:
    try:
        return parse_cron(expression)
    except Invalid as error:
        raise NotExpressible(str(error)) from None


def _program(command: str) -> str:
    """A name for the job: the program, or the script that an interpreter runs."""
    if (match := re.match(r"\s*cd\s+[^;&]*(?:&&|;)\s*(.*)", command)) is not None:
        command = match[1]
    words = [word.strip("\"'()") for word in command.split()]
    for word in words:
        if not word or word.startswith("-") or re.match(r"[A-Za-z_]\w*=", word) or word in _BEFORE_PROGRAM:
            continue
        program = PurePosixPath(word).name
        if _INTERPRETERS.fullmatch(program) and word is not words[-1]:
            continue
        return re.sub(r"\.(sh|py|pl|rb|php|js)\Z", "", program)
    return ""
