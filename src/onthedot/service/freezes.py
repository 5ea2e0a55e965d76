"""Pausing and resuming the whole installation."""

from __future__ import annotations

from onthedot.errors import Forbidden
from onthedot.model.freeze import Freeze
from onthedot.service.base import ServiceBase
from onthedot.service.keys import DEFAULT_TENANT
from onthedot.service.repeats import IdempotencyKey, idempotency
from onthedot.telemetry import emit

__all__ = ["FreezeVerbs"]

KNOWN_FOR = 1.0
"""Seconds in which pages do not ask again."""


class FreezeVerbs(ServiceBase):
    _freeze_known: tuple[float, Freeze | None] | None = None

    async def freeze(self, tenant: int, note: str | None, idempotency_key: IdempotencyKey | None = None) -> Freeze:
        _only_default(tenant)
        repeat = idempotency("freeze", idempotency_key, body=note)
        found = await self.store.freeze(tenant, note, idempotency=repeat)
        self._freeze_known = None
        emit("installation.frozen", note=found.note, by=found.by)
        await self.hint_orders()
        return found

    async def unfreeze(self, tenant: int, idempotency_key: IdempotencyKey | None = None) -> bool:
        _only_default(tenant)
        was = await self.store.unfreeze(tenant, idempotency=idempotency("unfreeze", idempotency_key))
        self._freeze_known = None
        if was:
            emit("installation.unfrozen")
            await self.hint_now()
        return was

    async def current_freeze(self) -> Freeze | None:
        """As it was a second ago at most."""
        now = self.clock.monotonic()
        if self._freeze_known is None or now - self._freeze_known[0] > KNOWN_FOR:
            self._freeze_known = now, await self.store.current_freeze()
        return self._freeze_known[1]


def _only_default(tenant: int) -> None:
    if tenant != DEFAULT_TENANT:
        raise Forbidden("only admins of the default tenant can pause the installation: it runs the jobs of all tenants")
