"""Workflow engines that jobs can name: `[workflows.NAME] url = "https://airflow.example.com", token = "…"`.

Only the operator says where an engine is and how to log in.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from onthedot.errors import SettingsError
from onthedot.settings.wrong_value import WrongValue, wrong_field

__all__ = ["WorkflowSetting", "parse_workflows"]

_ACCEPTED = (
    'tables [workflows.NAME] with url = "https://…", and optionally token, token_file or token_env; or user with '
    'password, password_file or password_env; type = "airflow" or "argo", namespace (Argo) and ca; or the same as JSON'
)
_NAME = re.compile(r"(?!stepfunctions$)[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_URL = re.compile(r"https?://[^\s?#@]+", re.ASCII)
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)


class WorkflowSetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table. Secrets in files are read with each login: one that was changed is found."""

    url: str
    type: Literal["airflow", "argo"] | None = None  # None: the engine is asked what it is
    token: str | None = None
    token_file: str | None = None
    token_env: str | None = None
    user: str | None = None
    password: str | None = None
    password_file: str | None = None
    password_env: str | None = None
    namespace: str = "default"
    ca: str | None = None

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def secret(self, name: Literal["token", "password"]) -> str | None:
        """Raises SettingsError if it is not where it should be."""
        file, variable = getattr(self, f"{name}_file"), getattr(self, f"{name}_env")
        if file is not None:
            try:
                return Path(file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise SettingsError(f"its {name}_file can't be read: {error}") from None
        if variable is not None:
            if not os.environ.get(variable):
                raise SettingsError(f"its {name}_env {variable} is not set")
            return os.environ[variable]
        found: str | None = getattr(self, name)
        return found

    def __repr__(self) -> str:
        return f"WorkflowSetting({self.type or 'unknown type'} {self.url})"


def parse_workflows(value: Any) -> dict[str, WorkflowSetting]:
    try:
        text = value if isinstance(value, str) else msgspec.json.encode(value)
        found = msgspec.json.decode(text, type=dict[str, WorkflowSetting])
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise WrongValue(_ACCEPTED, wrong_field(error, value, dict[str, WorkflowSetting], "workflows")) from None
    for name, setting in found.items():
        if _NAME.fullmatch(name) is None:
            raise WrongValue(_ACCEPTED, f"{name[:100]!r} is not a valid name")
        if _URL.fullmatch(setting.url) is None:
            raise WrongValue(_ACCEPTED, f"the url of workflows.{name} is not valid")
        if _NAMESPACE.fullmatch(setting.namespace) is None:
            raise WrongValue(_ACCEPTED, f"the namespace of workflows.{name} is not valid")
    return {name: msgspec.structs.replace(setting, url=setting.url.rstrip("/")) for name, setting in found.items()}
