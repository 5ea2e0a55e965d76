"""Concurrency groups: how many runs of each are running, how many may, and how many wait."""

from __future__ import annotations

from onthedot.model.group import GroupView
from onthedot.service.base import ServiceBase

__all__ = ["GroupVerbs"]


class GroupVerbs(ServiceBase):
    async def list_groups(self, tenant: int) -> list[GroupView]:
        """Those of a tenant whose jobs have runs that are running, wait, or are still to come; at most 500."""
        return await self.store.list_groups(tenant)

    async def waiting_for_groups(self) -> tuple[int, float]:
        """How many runs of all tenants wait for their group, and for how many seconds the first of them has."""
        waiting, since = await self.store.count_waiting_for_groups()
        if since is None:
            return waiting, 0.0
        return waiting, max(0, await self.store.now() - since) / 1000
