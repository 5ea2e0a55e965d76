"""Uploaded scripts."""

from __future__ import annotations

from typing import Any

from onthedot.client.answers import ResultPage
from onthedot.client.blocking.area import BlockingArea
from onthedot.model.script import ScriptDetail, ScriptView

__all__ = ["BlockingScripts"]


class BlockingScripts(BlockingArea):
    def upload_script(self, code: str, *, name: str | None = None, idempotency_key: str | None = None) -> ScriptView:
        return self._run(self._async.upload_script(code, name=name, idempotency_key=idempotency_key))

    def list_scripts(self, **filters: Any) -> ResultPage[ScriptView]:
        return self._run(self._async.list_scripts(**filters))

    def get_script(self, script_id: str) -> ScriptDetail:
        return self._run(self._async.get_script(script_id))

    def delete_script(self, script_id: str) -> None:
        self._run(self._async.delete_script(script_id))
