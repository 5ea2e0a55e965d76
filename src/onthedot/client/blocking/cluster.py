"""The installation: nodes, destinations, groups, statistics, settings, health."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from onthedot.client.blocking.area import BlockingArea
from onthedot.model.destination import DestinationDetail, DestinationView
from onthedot.model.group import GroupView
from onthedot.model.node import NodeView
from onthedot.model.proof import Proof
from onthedot.model.series import StatsSeries, Step
from onthedot.model.setting import SettingView

__all__ = ["BlockingCluster"]


class BlockingCluster(BlockingArea):
    def list_nodes(self) -> list[NodeView]:
        return self._run(self._async.list_nodes())

    def node_names(self, ids: Iterable[str]) -> dict[str, str]:
        return self._run(self._async.node_names(ids))

    def drain_node(self, node_id: str, *, idempotency_key: str | None = None) -> NodeView:
        return self._run(self._async.drain_node(node_id, idempotency_key=idempotency_key))

    def pause_all(self, *, note: str | None = None, idempotency_key: str | None = None) -> dict[str, Any]:
        return self._run(self._async.pause_all(note=note, idempotency_key=idempotency_key))

    def resume_all(self, *, idempotency_key: str | None = None) -> dict[str, Any]:
        return self._run(self._async.resume_all(idempotency_key=idempotency_key))

    def list_destinations(self) -> list[DestinationView]:
        return self._run(self._async.list_destinations())

    def get_destination(self, destination: str) -> DestinationDetail:
        return self._run(self._async.get_destination(destination))

    def list_groups(self) -> list[GroupView]:
        return self._run(self._async.list_groups())

    def stats(self) -> dict[str, Any]:
        return self._run(self._async.stats())

    def stats_series(self, step: Step = "minute", *, since: str | None = None, until: str | None = None) -> StatsSeries:
        return self._run(self._async.stats_series(step, since=since, until=until))

    def settings(self) -> list[SettingView]:
        return self._run(self._async.settings())

    def proof(self) -> Proof:
        return self._run(self._async.proof())

    def health(self) -> dict[str, Any]:
        return self._run(self._async.health())

    def ready(self) -> dict[str, Any]:
        """Readiness of the node. Raises StoreUnavailable while it is not ready."""
        return self._run(self._async.ready())
