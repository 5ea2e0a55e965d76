"""Which settings are in force on this node, and where each comes from. No secret is among them: of tables that may hold
one only the names are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from onthedot.errors import Forbidden
from onthedot.model.setting import SettingView
from onthedot.service.base import ServiceBase
from onthedot.service.keys import DEFAULT_TENANT

__all__ = ["SettingVerbs", "setting_text"]

FOR_ADMINS = frozenset(("store", "object_store"))
HIDDEN = frozenset(("admin_key",))
_ABOUT = frozenset(("given", "origins"))


class SettingVerbs(ServiceBase):
    def settings_in_force(self, tenant: int, *, admin: bool) -> list[SettingView]:
        """Of the node that is asked; others may have been started with others."""
        if tenant != DEFAULT_TENANT:
            raise Forbidden("only keys of the default tenant can read the settings of the installation")
        settings = self.settings
        return [
            SettingView(
                name=name.upper(),
                value=_shown(name, getattr(settings, name)) if admin or name not in FOR_ADMINS else None,
                source=settings.origins.get(name, "flag" if name in settings.given else "default"),
                is_default=name not in settings.given,
            )
            for name in settings.__struct_fields__
            if name not in _ABOUT
        ]


def _shown(name: str, value: Any) -> str:
    return "••••••" if name in HIDDEN and value else setting_text(value)


def setting_text(value: Any) -> str:
    """As text. Of tables by name (commands, brokers, …) the names alone: what stands in them may be secret."""
    if value is None or value == "" or value == () or value == {}:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if (
        type(value) is int and value >= 1 << 20
    ):  # bytes: no other setting is as large, durations are a type of their own
        return f"{value / (1 << 20):,.0f} MiB"
    if isinstance(value, Mapping):
        return ", ".join(sorted(map(str, value)))
    if isinstance(value, tuple | list | frozenset):
        return ", ".join(map(setting_text, value))
    if isinstance(value, msgspec.Struct):
        named = ((name, getattr(value, name)) for name in value.__struct_fields__)
        told = [
            f"{name.replace('_', ' ')} {setting_text(each)}" for name, each in named if each not in (None, (), {}, "")
        ]
        return "; ".join(told) or "none"
    text = str(value) if isinstance(value, str | Path) or not isinstance(value, float) else f"{value:g}"
    return _without_password(text)


def _without_password(text: str) -> str:
    """Of an address: neither the password of its user nor one among its parameters."""
    text = re.sub(r"(://[^:/@]*):.*@", r"\1:••••••@", text)
    return re.sub(r"(?i)([?&][^=&]*(?:password|secret|token|key)[^=&]*=)[^&]*", r"\1••••••", text)
