"""Uploaded scripts."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from onthedot.client.answers import ResultPage
from onthedot.client.asynchronous.area import NOTHING, AsyncArea
from onthedot.client.headers import once_header
from onthedot.model.script import ScriptDetail, ScriptUpload, ScriptView

__all__ = ["AsyncScripts"]


class AsyncScripts(AsyncArea):
    async def upload_script(
        self, code: str, *, name: str | None = None, idempotency_key: str | None = None
    ) -> ScriptView:
        """Upload a script for jobs to use by its ID. The same code again changes nothing."""
        body, headers = ScriptUpload(code=code, name=name), once_header(idempotency_key)
        return await self._http.call("POST", "/v1/scripts", ScriptView, body=body, headers=headers)

    async def list_scripts(self, **filters: Any) -> ResultPage[ScriptView]:
        """Get one page of uploaded scripts. Filters: limit, cursor."""
        return await self._http.call("GET", "/v1/scripts", ResultPage[ScriptView], query=filters)

    async def get_script(self, script_id: str) -> ScriptDetail:
        """Get an uploaded script with its code and the jobs that use it."""
        return await self._http.call("GET", f"/v1/scripts/{quote(script_id, safe=':')}", ScriptDetail)

    async def delete_script(self, script_id: str) -> None:
        """Delete an uploaded script. Raises Conflict while a job uses it."""
        await self._http.call("DELETE", f"/v1/scripts/{quote(script_id, safe=':')}", NOTHING)
