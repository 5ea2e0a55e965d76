"""Chains: the jobs before and after a job."""

from __future__ import annotations

from onthedot.model.chains import ChainNeighbours
from onthedot.service.base import ServiceBase

__all__ = ["ChainVerbs"]


class ChainVerbs(ServiceBase):
    async def chain_of(self, tenant: int, job_id: int) -> ChainNeighbours:
        """Which jobs the end of a run starts, and by the end of which it is started."""
        return await self.store.chain_of(tenant, job_id)
