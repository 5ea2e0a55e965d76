"""Store access for commands that need no server: keys, migrate, doctor."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from onthedot.settings import Settings
    from onthedot.store import Store

__all__ = ["settings_for", "url_of_holder", "with_store"]

T = TypeVar("T")


def settings_for(store: str | None, file: str | None = None) -> Settings:
    from onthedot.settings import load_settings

    return load_settings({"store": store}, file=file)


def with_store(settings: Settings, body: Callable[[Store], Awaitable[T]], *, migrated: bool = True) -> T:
    from onthedot.store import open_store

    async def run() -> T:
        store = await open_store(settings.store, migrated=migrated, lookahead=settings.lookahead)
        try:
            return await body(store)
        finally:
            await store.close()

    return asyncio.run(run())


def url_of_holder(settings: Settings) -> str:
    """The URL of the server that has the SQLite file open."""
    from onthedot.cli.options import server_url
    from onthedot.settings import address
    from onthedot.store.sqlite.holder import binding_of_holder

    binding = binding_of_holder(settings.store)
    if binding is None:
        return server_url(None, settings.port)
    host, _, port = binding.rpartition(":")
    return f"{settings.scheme}://{address(host, port)}"
