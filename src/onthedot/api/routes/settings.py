"""The settings in force."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from onthedot.api.auth import may
from onthedot.api.context import principal_of, service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.model.setting import SettingView

__all__ = ["routes"]


class SettingList(msgspec.Struct, frozen=True):
    items: list[SettingView]


@operation("GET", "/v1/settings", "read", group="Cluster", answers={200: SettingList})
async def settings(request: Request) -> HttpResponse:
    """Read the settings in force.

    Of the node that answers, with where each value comes from. Secrets are left out; the URLs of the store and the
    object store are shown to admins only.
    """
    admin = may(principal_of(request), "admin")
    return responses.json(SettingList(service_of(request).settings_in_force(tenant_of(request), admin=admin)))


routes = [settings]
