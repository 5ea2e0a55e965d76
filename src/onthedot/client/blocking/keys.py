"""API keys."""

from __future__ import annotations

from onthedot.client.blocking.area import BlockingArea
from onthedot.model.key import ApiKey, ApiKeyCreated, ApiKeySpec

__all__ = ["BlockingKeys"]


class BlockingKeys(BlockingArea):
    def create_key(self, spec: ApiKeySpec, *, idempotency_key: str | None = None) -> ApiKeyCreated:
        return self._run(self._async.create_key(spec, idempotency_key=idempotency_key))

    def list_keys(self, tenant: str | None = None) -> list[ApiKey]:
        return self._run(self._async.list_keys(tenant))

    def revoke_key(self, key_id: int, tenant: str | None = None) -> None:
        self._run(self._async.revoke_key(key_id, tenant))
