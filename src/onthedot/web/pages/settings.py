"""The settings page: what is in force on this node, and the API keys of the tenant for admins."""

from __future__ import annotations

from starlette.requests import Request

from onthedot.api.auth import may
from onthedot.api.context import context_of, principal_of, service_of, tenant_of
from onthedot.api.http.path_ids import whole_id
from onthedot.api.http.query_params import text
from onthedot.api.http.responses import HttpResponse
from onthedot.api.routes.keys import end_key, make_key
from onthedot.errors import Forbidden, Invalid, NotFound
from onthedot.model.decoding import convert
from onthedot.model.key import SCOPES, ApiKey, ApiKeyCreated, ApiKeySpec
from onthedot.model.setting import SettingView
from onthedot.web.forms import Form, read_form
from onthedot.web.links import is_local
from onthedot.web.page import action, asked_of, done, page, show

__all__ = ["SETTING_GROUPS", "routes"]

BACK = (text("back", "The page to return to", longest=1500),)
SETTING_GROUPS = {
    "Store, network and roles": (
        *("STORE", "HOST", "PORT", "ROLES", "WORKERS", "LABELS", "PUBLIC_URL", "ROOT_PATH", "TRUSTED_PROXIES"),
    ),
    "Access": ("AUTH", "EGRESS_ALLOW", "CERTIFICATES"),
    "Execution": (
        *("CONCURRENCY", "DESTINATION_CONCURRENCY", "FUNCTION_PROCESSES", "TIMEOUT_SECONDS", "DEFAULT_TZ", "LOOKAHEAD"),
        *("POLL_INTERVAL", "NEXT_JOB_COUNT", "GRANULARITY", "LEASE", "GRACE", "RETENTION"),
    ),
    "Jobs file and logs": (
        *("JOBS_FILE_PATH", "JOBS_SOURCE", "SUPPORTED_EXTENSIONS", "LOG_LEVEL", "LOGS_BASE_DIRECTORY"),
    ),
}
"""In the order of docs/settings.md; what is in none of them (targets and where they go) comes last."""
OTHERS = "Targets"
SCOPE_WORDS = {"read": "Read: see everything but secrets", "write": "Write: change jobs", "admin": "Admin: keys, nodes"}


@page("/settings")
async def settings(request: Request) -> HttpResponse:
    """The settings page."""
    asked_of(request, ())
    return await _shown(request, Form())


@action("/settings/keys", access="admin")
async def create_key(request: Request) -> HttpResponse:
    """Create an API key. The answer is the page with the key on it: it is shown once and kept nowhere."""
    form = await read_form(request, "name", "scope", "expires")
    asked = {"name": form.text("name"), "scope": form.text("scope", "read"), "expires": form.given("expires")}
    try:
        spec = convert({name: value for name, value in asked.items() if value is not None}, ApiKeySpec)
        created = await make_key(request, spec)
    except Invalid as error:
        return await _shown(request, form.refuse(error), status=422)
    return await _shown(request, Form(), created=created)


@page("/settings/keys/{key_id}/revoke", query=BACK, access="admin")
async def ask_revoke(request: Request) -> HttpResponse:
    """The question before a key is revoked."""
    back = asked_of(request, BACK)["back"] or "/settings"
    return await show(
        request,
        "revoke_key.html",
        key=await _key_of(request),
        own=principal_of(request).key_id,
        action=request.scope["path"],
        go="Revoke",
        tone="danger",
        return_to=back if is_local(back) else "/settings",
    )


@action("/settings/keys/{key_id}/revoke", access="admin")
async def revoke_key(request: Request) -> HttpResponse:
    """Revoke an API key."""
    form = await read_form(request)
    key = await _key_of(request)
    await end_key(request, tenant_of(request), key.id)
    return done(
        request, f"Revoked the key {key.name}. Other nodes may accept it for two more seconds.", form.back("/settings")
    )


async def _key_of(request: Request) -> ApiKey:
    key_id = whole_id(request, "key_id", "key")
    found = await service_of(request).list_keys(tenant_of(request))
    key = next((key for key in found if key.id == key_id), None)
    if key is None:
        raise NotFound(f"key {key_id} not found")
    return key


async def _shown(
    request: Request, form: Form, *, status: int = 200, created: ApiKeyCreated | None = None
) -> HttpResponse:
    principal = principal_of(request)
    admin, service = may(principal, "admin"), service_of(request)
    keys = await service.list_keys(principal.tenant) if admin else []
    try:
        groups = grouped(service.settings_in_force(principal.tenant, admin=admin))
    except Forbidden as error:
        groups, reason = [], str(error)
    else:
        reason = ""
    return await show(
        request,
        "settings.html",
        status=status,
        groups=groups,
        reason=reason,
        version=context_of(request).version,
        keys=sorted(keys, key=lambda key: (key.revoked_at is not None, -key.id)),
        own=principal.key_id,
        form=form,
        scopes=[(scope, SCOPE_WORDS[scope]) for scope in SCOPES],
        created=created,
    )


def grouped(found: list[SettingView]) -> list[tuple[str, list[SettingView]]]:
    by_name = {each.name: each for each in found}
    groups = [
        (title, [by_name.pop(name) for name in names if name in by_name]) for title, names in SETTING_GROUPS.items()
    ]
    return [*groups, (OTHERS, list(by_name.values()))]


routes = [settings, create_key, ask_revoke, revoke_key]
