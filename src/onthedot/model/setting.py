"""A setting as the API shows it."""

from __future__ import annotations

import msgspec

__all__ = ["SettingView"]


class SettingView(msgspec.Struct, frozen=True, kw_only=True):
    """`value`: as text, without secrets; null: only admins see it. `source`: default, flag, the environment variable,
    or the settings file."""

    name: str
    value: str | None
    source: str
    is_default: bool
