"""The code of scripts: what a job says itself, or what was uploaded, which is read from the object store and kept."""

from __future__ import annotations

from collections import OrderedDict

from onthedot.errors import ObjectStoreUnavailable
from onthedot.model.script import object_name, script_id
from onthedot.model.targets import ScriptTarget
from onthedot.objects import ObjectStore

__all__ = ["CodeCache"]

KEPT = 16 << 20
"""Bytes of uploaded scripts in memory."""


class CodeCache:
    """What a script is named by never changes, so it need not be read twice."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    async def code_of(self, tenant: int, target: ScriptTarget) -> bytes:
        """ObjectMissing, or ObjectStoreUnavailable, which it also is if something else is under its name."""
        if target.script is None:
            return (target.code or "").encode()
        name = object_name(tenant, target.script)
        if name in self._kept:
            self._kept.move_to_end(name)
            return self._kept[name]
        content = await self._objects.get(name)
        if script_id(content) != target.script:
            raise ObjectStoreUnavailable(f"the object {name} is damaged: its content does not match its hash")
        self._keep(name, content)
        return content

    def _keep(self, name: str, content: bytes) -> None:
        if name not in self._kept:
            self._size += len(content)
        self._kept[name] = content
        while self._size > KEPT and len(self._kept) > 1:
            self._size -= len(self._kept.popitem(last=False)[1])
