"""Settings from file, environment and flags, as one frozen object."""

from __future__ import annotations

from onthedot.settings.sources import load_settings
from onthedot.settings.structs import EXTENSIONS, CommandSetting, Settings, address
from onthedot.settings.values import read_commands

__all__ = ["EXTENSIONS", "CommandSetting", "Settings", "address", "load_settings", "read_commands"]
