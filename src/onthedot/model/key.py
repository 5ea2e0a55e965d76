"""API keys: shown once, stored hashed, scoped, belonging to a tenant."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from onthedot.model.duration import Duration
from onthedot.model.struct import Strict

__all__ = ["SCOPES", "SETTING_KEY", "ApiKey", "ApiKeyCreated", "ApiKeySpec", "Scope"]

Scope = Literal["read", "write", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "write", "admin")  # each includes those before it

SETTING_KEY = "ADMIN_KEY"
"""The name of the key that comes from the settings. No other may have it: it would be revoked with the next one."""


class ApiKeySpec(Strict, frozen=True, kw_only=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    scope: Scope = "read"
    expires: Duration | None = None
    tenant: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] = "default"


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    name: str
    scope: Scope
    tenant: str
    prefix: str  # the first characters, so that a person can tell keys apart
    created_at: str
    expires_at: str | None
    revoked_at: str | None


class ApiKeyCreated(msgspec.Struct, frozen=True, kw_only=True):
    id: int = 0  # with which it is revoked: that of `info`, which alone says it on a server of the release before
    key: str  # shown this once
    info: ApiKey
    first: bool = False  # the installation was open until now: from now on every request needs a key, on all nodes

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "id", self.info.id)
