"""Topics whose messages create and change jobs: `[intake.NAME] broker, topic, dead_letter`.

Only the operator says what is read, for which tenant, and what its messages may do.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from onthedot.settings.wrong_value import WrongValue, wrong_field

__all__ = ["INTAKE_OPERATIONS", "IntakeSetting", "parse_intakes"]

INTAKE_OPERATIONS = ("create", "put", "patch", "pause", "resume", "run", "delete")
ACCEPTED = (
    'tables [intake.NAME] with broker = "NAME of [brokers.NAME]", topic = "…", dead_letter = "…", and optionally '
    f'tenant = "…", allow = [some of {", ".join(INTAKE_OPERATIONS)}] and group = "…"; or the same as JSON: '
    '{"NAME": {"broker": …}}'
)


class IntakeSetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table `[intake.NAME]`."""

    broker: str
    topic: str
    dead_letter: str
    tenant: str | None = None  # by name; None: the default tenant
    allow: tuple[str, ...] = INTAKE_OPERATIONS
    group: str | None = None  # what the nodes share the messages by; None: onthedot-NAME

    def group_of(self, name: str) -> str:
        return self.group or f"onthedot-{name.replace('.', '-')}"


def parse_intakes(value: Any) -> dict[str, IntakeSetting]:
    try:
        text = value if isinstance(value, str) else msgspec.json.encode(value)
        tables = msgspec.json.decode(text, type=dict[str, dict[str, Any]])
    except (msgspec.MsgspecError, TypeError, ValueError):
        raise WrongValue(ACCEPTED) from None
    found = {}
    for name, table in tables.items():
        try:
            setting = found[name] = msgspec.convert(table, IntakeSetting)
        except msgspec.ValidationError as error:
            raise WrongValue(ACCEPTED, wrong_field(error, table, IntakeSetting, f"intake.{name}")) from None
        if (problem := _problem(name, setting)) is not None:
            raise WrongValue(ACCEPTED, f"intake.{name}: {problem}")
    return found


def _problem(name: str, setting: IntakeSetting) -> str | None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name):
        return "not a valid name"
    if not setting.topic or not setting.dead_letter:
        return "topic and dead_letter must not be empty"
    if setting.topic == setting.dead_letter:
        return "topic and dead_letter must differ: refused messages would be read again"
    if unknown := [word for word in setting.allow if word not in INTAKE_OPERATIONS]:
        return f"allow: unknown {', '.join(map(repr, unknown))}"
    if not setting.allow:
        return "allow must not be empty"
    if setting.group is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", setting.group):
        return "group must have 1 to 100 letters, digits, _ and -"
    return None
