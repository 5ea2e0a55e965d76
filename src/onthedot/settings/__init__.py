"""Settings from file, environment and flags, as one frozen object."""

from __future__ import annotations

from onthedot.settings.alerts import AlertSetting, ChannelSetting
from onthedot.settings.aws import AwsSetting
from onthedot.settings.brokers import BrokerAddress, BrokerSetting, WrongBroker
from onthedot.settings.intakes import INTAKE_OPERATIONS, IntakeSetting
from onthedot.settings.sources import load_settings
from onthedot.settings.structs import (
    EXTENSIONS,
    CertificateSetting,
    CommandSetting,
    ContainerSetting,
    KubernetesSetting,
    KubernetesTemplate,
    RegistrySetting,
    ScriptSetting,
    Settings,
    address,
)
from onthedot.settings.tables import read_commands
from onthedot.settings.workflows import WorkflowSetting

__all__ = [
    "EXTENSIONS",
    "INTAKE_OPERATIONS",
    "AlertSetting",
    "AwsSetting",
    "BrokerAddress",
    "BrokerSetting",
    "CertificateSetting",
    "ChannelSetting",
    "CommandSetting",
    "ContainerSetting",
    "IntakeSetting",
    "KubernetesSetting",
    "KubernetesTemplate",
    "RegistrySetting",
    "ScriptSetting",
    "Settings",
    "WorkflowSetting",
    "WrongBroker",
    "address",
    "load_settings",
    "read_commands",
]
