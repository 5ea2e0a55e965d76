"""Settings from file, environment and flags, as one frozen object."""

from __future__ import annotations

from onthedot.settings.brokers import BrokerAddress, BrokerSetting, WrongBroker
from onthedot.settings.intakes import INTAKE_OPERATIONS, IntakeSetting
from onthedot.settings.sources import load_settings
from onthedot.settings.structs import (
    EXTENSIONS,
    CertificateSetting,
    CommandSetting,
    ContainerSetting,
    ScriptSetting,
    Settings,
    address,
)
from onthedot.settings.tables import read_commands

__all__ = [
    "EXTENSIONS",
    "INTAKE_OPERATIONS",
    "BrokerAddress",
    "BrokerSetting",
    "CertificateSetting",
    "CommandSetting",
    "ContainerSetting",
    "IntakeSetting",
    "ScriptSetting",
    "Settings",
    "WrongBroker",
    "address",
    "load_settings",
    "read_commands",
]
