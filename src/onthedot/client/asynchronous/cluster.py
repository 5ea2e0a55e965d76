"""The installation: nodes, destinations, groups, statistics, settings, health."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from onthedot.client.answers import ResultPage
from onthedot.client.asynchronous.area import AsyncArea
from onthedot.client.headers import once_header
from onthedot.model.destination import DestinationDetail, DestinationView
from onthedot.model.group import GroupView
from onthedot.model.node import NodeName, NodeView
from onthedot.model.proof import Proof
from onthedot.model.series import StatsSeries, Step
from onthedot.model.setting import SettingView

__all__ = ["AsyncCluster"]


class AsyncCluster(AsyncArea):
    async def list_nodes(self) -> list[NodeView]:
        """List running and recently lost nodes."""
        return (await self._http.call("GET", "/v1/nodes", ResultPage[NodeView])).items

    async def node_names(self, ids: Iterable[str]) -> dict[str, str]:
        """Get the names of nodes by ID, up to 100, also of nodes that have stopped. Unknown ones are left out."""
        if not (asked := ",".join(ids)):
            return {}
        query = {"ids": asked}
        found = await self._http.call("GET", "/v1/nodes/names", ResultPage[NodeName], query=query)
        return {node.id: node.name for node in found.items}

    async def drain_node(self, node_id: str, *, idempotency_key: str | None = None) -> NodeView:
        """Let a node finish what it runs and claim nothing more, until it is started again."""
        path, headers = f"/v1/nodes/{quote(node_id, safe='')}/drain", once_header(idempotency_key)
        return await self._http.call("POST", path, NodeView, headers=headers)

    async def pause_all(self, *, note: str | None = None, idempotency_key: str | None = None) -> dict[str, Any]:
        """Pause the whole installation: only runs that are requested explicitly start."""
        headers = once_header(idempotency_key)
        return await self._http.call("POST", "/v1/pause", dict[str, Any], body={"note": note}, headers=headers)

    async def resume_all(self, *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Resume the whole installation."""
        return await self._http.call("POST", "/v1/resume", dict[str, Any], headers=once_header(idempotency_key))

    async def list_destinations(self) -> list[DestinationView]:
        """List destinations: who is called, their circuit breakers, and how many runs wait for them."""
        return (await self._http.call("GET", "/v1/destinations", ResultPage[DestinationView])).items

    async def get_destination(self, destination: str) -> DestinationDetail:
        """Get one destination ("https://example.com", or a broker) with its jobs and their last failures."""
        path = f"/v1/destinations/{quote(destination, safe='')}"
        return await self._http.call("GET", path, DestinationDetail)

    async def list_groups(self) -> list[GroupView]:
        """List concurrency groups: how many runs are running, how many may, and how many wait."""
        return (await self._http.call("GET", "/v1/groups", ResultPage[GroupView])).items

    async def stats(self) -> dict[str, Any]:
        """Get totals of jobs, runs and dead letters."""
        return await self._http.call("GET", "/v1/stats", dict[str, Any])

    async def stats_series(
        self, step: Step = "minute", *, since: str | None = None, until: str | None = None
    ) -> StatsSeries:
        """Get statistics per minute, hour or day. `since`, `until`: RFC 3339."""
        query = {"step": step, "since": since, "until": until}
        return await self._http.call("GET", "/v1/stats/series", StatsSeries, query=query)

    async def settings(self) -> list[SettingView]:
        """List the settings in force on the node that answers, and where each comes from."""
        return (await self._http.call("GET", "/v1/settings", ResultPage[SettingView])).items

    async def proof(self) -> Proof:
        """Get the proof: slots of the last 24 hours that should have been decided, and those that were."""
        return await self._http.call("GET", "/v1/proof", Proof)

    async def health(self) -> dict[str, Any]:
        """Liveness of the node."""
        return await self._http.call("GET", "/healthz", dict[str, Any])

    async def ready(self) -> dict[str, Any]:
        """Readiness of the node. Raises StoreUnavailable while it is not ready."""
        return await self._http.call("GET", "/readyz", dict[str, Any])
