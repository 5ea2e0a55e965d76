"""Concurrency groups: how many runs are running, how many may, and how many wait."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.model.group import GroupView

__all__ = ["routes"]


class GroupList(msgspec.Struct, frozen=True):
    items: list[GroupView]


@operation("GET", "/v1/groups", "read", group="Cluster", answers={200: GroupList})
async def list_groups(request: Request) -> HttpResponse:
    """List concurrency groups.

    Groups that jobs name in `policy.concurrency`, and jobs with `policy.max_running`: how many of their runs are
    running on all nodes, how many may, and how many wait. Sorted by name, at most 500. A group exists as long as a job
    names it that has a run, whenever that is due. If jobs name different limits, the smallest counts.
    """
    return responses.json(GroupList(await service_of(request).list_groups(tenant_of(request))))


routes = [list_groups]
