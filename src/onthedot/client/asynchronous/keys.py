"""API keys."""

from __future__ import annotations

from onthedot.client.answers import ResultPage
from onthedot.client.asynchronous.area import NOTHING, AsyncArea, given
from onthedot.client.headers import once_header
from onthedot.model.key import ApiKey, ApiKeyCreated, ApiKeySpec

__all__ = ["AsyncKeys"]


class AsyncKeys(AsyncArea):
    async def create_key(self, spec: ApiKeySpec, *, idempotency_key: str | None = None) -> ApiKeyCreated:
        """Create an API key. Only this response contains the key itself, and that to a repeat with the same
        `idempotency_key` by the same API key; the first key of a server can't be asked for again."""
        headers = {} if idempotency_key is None else once_header(idempotency_key)
        return await self._http.call("POST", "/v1/keys", ApiKeyCreated, body=spec, headers=headers)

    async def list_keys(self, tenant: str | None = None) -> list[ApiKey]:
        """List API keys of your tenant; admins of the tenant `default` can name another."""
        return (await self._http.call("GET", "/v1/keys", ResultPage[ApiKey], query=given(tenant=tenant))).items

    async def revoke_key(self, key_id: int, tenant: str | None = None) -> None:
        """Revoke an API key."""
        await self._http.call("DELETE", f"/v1/keys/{key_id}", NOTHING, query=given(tenant=tenant))
