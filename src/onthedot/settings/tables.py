"""Parses the settings that are tables: commands, certificates, brokers, scripts and plug-ins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from onthedot.errors import SettingsError
from onthedot.model.image import ImageName
from onthedot.model.size import read_size
from onthedot.settings.brokers import BROKER_ACCEPTED, BrokerSetting, WrongBroker, read_brokers
from onthedot.settings.host_names import is_address, is_host, is_host_port
from onthedot.settings.structs import CertificateSetting, CommandSetting, ScriptSetting
from onthedot.settings.wrong_value import WrongValue, quoted, unknown_field, wrong_field

__all__ = [
    "parse_brokers",
    "parse_certificates",
    "parse_commands",
    "parse_scripts",
    "parse_targets",
    "read_commands",
]


def read_commands(value: Any) -> dict[str, CommandSetting]:
    """Read the `[commands.NAME]` tables of the settings file, or of a jobs file given on the command line."""
    try:
        return dict(parse_commands(value))
    except WrongValue as wrong:
        raise SettingsError(f"commands: {wrong.told(quoted(value))}") from None


def parse_commands(value: Any) -> dict[str, CommandSetting]:
    accepted = (
        'tables [commands.NAME] with argv = ["program", "argument", …], and optionally env = {…}, cwd = "…", '
        'inherit_env = ["NAME", …] and stdin = "…", or the same as JSON: {"NAME": {"argv": […]}}'
    )
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.MsgspecError, UnicodeEncodeError) as error:
            raise WrongValue(accepted, f"{error}") from None
    if not isinstance(value, Mapping):
        raise WrongValue(accepted)
    commands = {}
    for name, table in value.items():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", str(name)):
            raise WrongValue(accepted, f"{name!r} is not a valid name")
        if isinstance(table, CommandSetting):
            commands[name] = table
            continue
        try:
            command = msgspec.convert(dict(table) if isinstance(table, Mapping) else table, CommandSetting)
        except msgspec.ValidationError as error:
            why = wrong_field(error, {name: table}, dict[str, CommandSetting], "commands")
            raise WrongValue(accepted, why) from None
        if not command.argv or not command.argv[0]:
            raise WrongValue(accepted, f"commands.{name}.argv is missing the program")
        commands[name] = command
    return commands


def parse_certificates(value: Any) -> dict[str, CertificateSetting]:
    accepted = (
        'tables [certificates.NAME] with cert = "FILE", key = "FILE", ca = "FILE" and hosts = ["hooks.example.com", '
        '"*.example.com"] (at least cert or ca), or the same as JSON: {"NAME": {…}}'
    )
    try:
        text = value if isinstance(value, str) else msgspec.json.encode(value)
        found = msgspec.json.decode(text, type=dict[str, CertificateSetting])
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        why = wrong_field(error, value, dict[str, CertificateSetting], "certificates")
        raise WrongValue(accepted, why) from None
    for name, setting in found.items():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", name):
            raise WrongValue(accepted, f"{name!r} is not a valid name")
        if not setting.cert and not setting.ca:
            raise WrongValue(accepted, f"certificates.{name} has neither cert nor ca")
        if setting.key and not setting.cert:
            raise WrongValue(accepted, f"certificates.{name} has a key but no cert")
        for host in setting.hosts:
            if host != "*" and not is_host(host) and not is_host_port(host) and not is_address(host):
                raise WrongValue(accepted, f"certificates.{name}: {host!r} is not a valid host")
    return found


def parse_targets(value: Any) -> dict[str, dict[str, Any]]:
    accepted = 'tables [targets.NAME] with the settings of the plug-in NAME, or the same as JSON: {"NAME": {…}}'
    try:
        # As JSON in any case: a plug-in gets the same values from file and environment, and in every worker process.
        text = value if isinstance(value, str) else msgspec.json.encode(value)
        return msgspec.json.decode(text, type=dict[str, dict[str, Any]])
    except (msgspec.MsgspecError, TypeError, ValueError):
        raise WrongValue(accepted) from None


def parse_brokers(value: Any) -> dict[str, BrokerSetting]:
    try:
        return read_brokers(value)
    except WrongBroker as wrong:
        raise WrongValue(BROKER_ACCEPTED, f"{wrong}") from None


_SCRIPTS = ("interpreters", "memory", "network", "image")


def parse_scripts(value: Any) -> ScriptSetting:
    accepted = (
        'a table [scripts] with interpreters = {python = "/usr/bin/python3", …} (a program, or a list with its '
        'arguments), memory = "1G", network = false and image = "python:3.13-slim", or the same as JSON'
    )
    if isinstance(value, ScriptSetting):
        return value
    try:
        table = msgspec.json.decode(value) if isinstance(value, str) else value
        table = msgspec.convert(table, dict[str, Any])  # not dict(): that takes a list of pairs, too
        named = msgspec.convert(table.pop("interpreters", {}), dict[str, Any])
        programs = {name: _program(given) for name, given in named.items()}
        memory, network = read_size(table.pop("memory", "1G")), table.pop("network", False)
        image = table.pop("image", None)
        if image is not None:
            ImageName.parse(image)
    except (msgspec.MsgspecError, TypeError, ValueError, AttributeError) as error:
        raise WrongValue(accepted, f"{error}") from None
    if table:
        raise WrongValue(accepted, unknown_field(next(iter(table)), _SCRIPTS, "scripts"))
    if not isinstance(network, bool):
        raise WrongValue(accepted, "scripts.network must be true or false")
    return ScriptSetting(interpreters=programs, memory=memory, network=network, image=image)


def _program(given: Any) -> tuple[str, ...]:
    argv = (given,) if isinstance(given, str) else tuple(given)
    if not argv or not all(isinstance(word, str) and word for word in argv) or not argv[0].startswith("/"):
        raise ValueError(f"{quoted(given)} is not an absolute path, or a list that begins with one")
    return argv
