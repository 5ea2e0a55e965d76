"""API keys, for admins. A key is shown once and stored as a hash."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from onthedot.api.auth import bearer_of, session_of
from onthedot.api.context import address_of, principal_of, service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import read_json
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.path_ids import whole_id
from onthedot.api.http.query_params import read_query, text
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.errors import Forbidden
from onthedot.model.key import ApiKey, ApiKeyCreated, ApiKeySpec
from onthedot.service import DEFAULT_TENANT, Repeat
from onthedot.telemetry import emit

__all__ = ["end_key", "make_key", "routes"]


TENANT = (
    text(
        "tenant",
        "The tenant of the keys; only admins of the default tenant may name another tenant than their own",
        longest=200,
    ),
)


class KeyList(msgspec.Struct, frozen=True):
    items: list[ApiKey]


@operation(
    "POST",
    "/v1/keys",
    "admin",
    group="Keys",
    body=ApiKeySpec,
    answers={201: ApiKeyCreated},
    problems=(409,),
    idempotent=True,
    example={"name": "ci", "scope": "write", "expires": "90d"},
)
async def create_key(request: Request) -> HttpResponse:
    """Create an API key.

    The key is shown only in this response, and in that to a repeat under the same Idempotency-Key by the same API key
    or session. After the first key (`first` is true) every request needs a key, on all nodes within two seconds.
    """
    created = await make_key(request, await read_json(request, ApiKeySpec), await idempotency_key(request))
    return responses.json(created, 201, {"location": f"/v1/keys/{created.info.id}"})


async def make_key(request: Request, asked: ApiKeySpec, repeat: Repeat | None = None) -> ApiKeyCreated:
    """For the API and the page: of a tenant that who asks may name, and told to the operator's log."""
    spec = await _own_tenant(request, asked)
    session = session_of(request)
    credential = bearer_of(request.headers.get("authorization")) or (None if session is None else session.token)
    created = await service_of(request).create_key(spec, tenant_of(request), repeat, credential)
    _tell("key.created", request, key_id=created.info.id, name=spec.name, scope=spec.scope, of=spec.tenant)
    return created


async def end_key(request: Request, tenant: int, key_id: int) -> None:
    await service_of(request).revoke_key(tenant, key_id)
    _tell("key.revoked", request, key_id=key_id)


async def _own_tenant(request: Request, spec: ApiKeySpec) -> ApiKeySpec:
    """Admins of the default tenant create keys for any tenant, all others only for their own."""
    if tenant_of(request) == DEFAULT_TENANT:
        return spec
    own = await _own_name(request)
    if spec.tenant not in (own, "default"):  # "default" is what leaving it out means
        raise Forbidden(f"a key of the tenant {own!r} can create keys only for that tenant")
    return msgspec.structs.replace(spec, tenant=own)


async def _own_name(request: Request) -> str:
    keys = await service_of(request).list_keys(tenant_of(request))
    return next(key.tenant for key in keys if key.id == principal_of(request).key_id)


async def _whose(request: Request) -> int:
    """The tenant whose keys are meant."""
    name = read_query(request.scope["query_string"], TENANT)["tenant"]
    if name is None:
        return tenant_of(request)
    if tenant_of(request) != DEFAULT_TENANT and name != await _own_name(request):
        raise Forbidden("this key can't access the keys of another tenant")
    return await service_of(request).tenant_named(name)


@operation("GET", "/v1/keys", "admin", group="Keys", query=TENANT, answers={200: KeyList}, problems=(404,))
async def list_keys(request: Request) -> HttpResponse:
    """List API keys.

    Shows only the first characters of each key.
    """
    return responses.json(KeyList(await service_of(request).list_keys(await _whose(request))))


@operation("DELETE", "/v1/keys/{key_id}", "admin", group="Keys", query=TENANT, answers={204: None})
async def revoke_key(request: Request) -> HttpResponse:
    """Revoke an API key.

    Other nodes may accept the key for up to two more seconds.
    """
    key_id = whole_id(request, "key_id", "key")
    await end_key(request, await _whose(request), key_id)
    return responses.no_content()


def _tell(event: str, request: Request, **fields: object) -> None:
    """For the operator's log; without `tenant`, so that no listener's stream has it."""
    emit(event, **fields, by_key=principal_of(request).key_id, address=address_of(request))


routes = [create_key, list_keys, revoke_key]
