"""`onthedot keys`: manage API keys.

The commands work on the store directly, so that the first key can be created before the server starts, or through a
server: the one given by --url or ONTHEDOT_URL, the one that has the SQLite file open, or, if no store was given and the
file does not exist, the one at the default address.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from onthedot.cli.direct import settings_for, url_of_holder, with_store
from onthedot.cli.group import command_group
from onthedot.cli.options import ApiKey, AsJson, Server, StoreUrl, connected, server_url
from onthedot.cli.options import Settings as SettingsFile
from onthedot.cli.output import print_json, say, table, when

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from onthedot.client import Client
    from onthedot.model.key import ApiKey as ApiKeyView
    from onthedot.service import Service

    T = TypeVar("T")

__all__ = ["group"]

Tenant = Annotated[str, typer.Option(help="Tenant that the keys belong to")]

group = command_group("Manage API keys, directly in the store (--store) or through a server (--url).")


@group.command("create")
def create(
    name: Annotated[str, typer.Option(help="Name of the key, such as ci or anna")],
    scope: Annotated[
        Literal["read", "write", "admin"], typer.Option(help="Scope of the key: read, write or admin")
    ] = "read",
    tenant: Annotated[str, typer.Option(help="Tenant that the key belongs to")] = "default",
    expires: Annotated[str | None, typer.Option(help="Lifetime, such as 90d or 12h [default: unlimited]")] = None,
    as_json: AsJson = False,
    store: StoreUrl = None,
    settings: SettingsFile = None,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Create an API key. It is shown once and stored as a hash."""
    from onthedot.model.decoding import convert
    from onthedot.model.key import ApiKeySpec

    loose = {"name": name, "scope": scope, "tenant": tenant, "expires": expires}
    spec = convert({field: value for field, value in loose.items() if value is not None}, ApiKeySpec)
    made = _do(
        lambda service: service.create_key(spec), lambda client: client.create_key(spec), store, settings, server, key
    )
    if as_json:
        print_json(made)
        return
    say(made.key)
    until = f", expires {when(made.info.expires_at)}" if made.info.expires_at else ""
    told = f"Key {made.info.id} ({made.info.name}, {made.info.scope}{until}). It is not shown again."
    say(told, to=sys.stderr)
    typer.echo("To use it, set ONTHEDOT_KEY=… or send `Authorization: Bearer …`.", err=True)
    if made.first:
        typer.echo("This is the first key: open servers require a key within two seconds.", err=True)
        if scope != "admin":
            typer.echo(
                "There is no admin key yet. To create more keys on SQLite, stop the server first; the next key should"
                " have --scope admin.",
                err=True,
            )


@group.command("list")
def list_(
    tenant: Tenant = "default",
    as_json: AsJson = False,
    store: StoreUrl = None,
    settings: SettingsFile = None,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """List API keys, with only the first characters of each."""

    async def read(service: Service) -> list[ApiKeyView]:
        return await service.list_keys(await service.tenant_named(tenant))

    found = _do(
        read,
        lambda client: client.list_keys(_other(tenant)),
        store,
        settings,
        server,
        key,
    )
    if as_json:
        print_json(found)
        return
    table(
        ("id", "name", "scope", "tenant", "key", "created", "state"),
        (
            (
                key.id,
                key.name,
                key.scope,
                key.tenant,
                f"{key.prefix}…",
                when(key.created_at),
                _state(key.revoked_at, key.expires_at),
            )
            for key in found
        ),
        empty="No keys. Until you create one, everybody on this machine can use the server.",
        wide=("name",),
    )


def _state(revoked_at: str | None, expires_at: str | None) -> str:
    if revoked_at is not None:
        return f"revoked {when(revoked_at)}"
    if expires_at is None:
        return "valid"
    told = when(expires_at)
    return f"{'expired' if told.endswith(' ago') else 'expires'} {told}"


@group.command("revoke")
def revoke(
    key_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="ID of the key, as shown by `keys list`")],
    tenant: Tenant = "default",
    as_json: AsJson = False,
    store: StoreUrl = None,
    settings: SettingsFile = None,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Revoke an API key. It stops working within two seconds."""

    async def do(service: Service) -> None:
        await service.revoke_key(await service.tenant_named(tenant), key_id)

    _do(
        do,
        lambda client: client.revoke_key(key_id, _other(tenant)),
        store,
        settings,
        server,
        key,
    )
    print_json({"revoked": key_id}) if as_json else say(f"Key {key_id} is revoked.")


def _other(tenant: str) -> str | None:
    """A server takes a missing tenant to mean the caller's own."""
    return None if tenant == "default" else tenant


def _do(
    direct: Callable[[Service], Awaitable[T]],
    by_server: Callable[[Client], T],
    store: str | None,
    settings_file: str | None,
    server: str | None,
    key: str | None,
) -> T:
    from onthedot.clock import SystemClock
    from onthedot.errors import StoreInUse, Unreachable
    from onthedot.service import Service
    from onthedot.targets import build_targets

    def ask(url: str) -> T:
        with connected(url, key) as client:
            return by_server(client)

    if store is not None and server is not None:
        raise typer.BadParameter("--store and --url can't be combined")
    if store is None and (server or key or os.environ.get("ONTHEDOT_URL")):
        return ask(server_url(server))
    settings = settings_for(store, settings_file)
    if "store" not in settings.given and not Path(settings.store.removeprefix("sqlite:///")).exists():
        try:  # a key in a new file would protect nothing: the server may run in another directory
            return ask(server_url(None, settings.port))
        except Unreachable:
            pass
    try:
        return with_store(
            settings, lambda opened: direct(Service(opened, build_targets(settings), SystemClock(), settings))
        )
    except StoreInUse:
        return ask(url_of_holder(settings))
