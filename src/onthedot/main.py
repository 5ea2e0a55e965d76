"""The composition root: from settings to a running node, each part given what it needs and nothing else.

The nesting of `async with` is the order of starting, and backwards the order of stopping: what is used last ends last.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onthedot.clock import Clock, SystemClock
from onthedot.errors import Invalid, SettingsError
from onthedot.jobsfile import JobsFile
from onthedot.service import DEFAULT_TENANT, Service
from onthedot.settings import Settings
from onthedot.store import Store, SyncReport, open_store
from onthedot.targets import EgressRule, Targets, build_targets
from onthedot.telemetry import telemetry
from onthedot.telemetry.metrics import Metrics
from onthedot.version import __version__

if TYPE_CHECKING:
    from litestar.handlers import HTTPRouteHandler

    from onthedot.api.app import App
    from onthedot.engine import Node

__all__ = ["Running", "assembled", "load_jobs"]


@dataclass(frozen=True)
class Running:
    """A node and its parts. `app` None: it serves no API; `node` None: it executes nothing."""

    service: Service
    app: App | None
    node: Node | None
    synced: SyncReport | None


@asynccontextmanager
async def assembled(
    settings: Settings,
    *,
    jobs: JobsFile | None = None,
    routes: Sequence[HTTPRouteHandler] = (),
    clock: Clock | None = None,
    rng: random.Random | None = None,
) -> AsyncIterator[Running]:
    """Everything that the settings ask for, running. `routes` are the pages."""
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        store = await open_store(settings.store, clock)
        stack.push_async_callback(store.close)
        await _refuse_open_door(settings, store)
        targets = _targets(settings, jobs, clock)
        service = Service(store, targets, clock, settings)
        stack.push_async_callback(service.close)
        synced = None if jobs is None else await load_jobs(service, jobs)
        metrics = Metrics()
        stack.callback(metrics.listen(telemetry))
        node: Node | None = None
        if "executor" in settings.roles:
            from onthedot.engine import Node

            await stack.enter_async_context(targets)
            node = Node(store=store, targets=targets, clock=clock, rng=rng or random.SystemRandom(), settings=settings)
            await stack.enter_async_context(node)
        app: App | None = None
        if "api" in settings.roles:
            from onthedot.api.app import create_app

            app = create_app(service, clock=clock, metrics=metrics, ready=_why_not_ready(node), extra_routes=routes)
        yield Running(service=service, app=app, node=node, synced=synced)


async def load_jobs(service: Service, jobs: JobsFile) -> SyncReport:
    """Make the file's jobs what the file says: what is no longer in it is removed, other jobs are not touched."""
    try:
        return await service.sync(DEFAULT_TENANT, jobs.source, jobs.specs, prune=True)
    except Invalid as invalid:
        raise jobs.located(invalid) from None


def _targets(settings: Settings, jobs: JobsFile | None, clock: Clock) -> Targets:
    """The operator registers by settings and by the jobs file; the file's directory is where its modules are found."""
    paths = [str(Path.cwd())]
    if jobs is not None:
        paths.insert(0, str(jobs.directory))
    return build_targets(
        version=__version__,
        egress=EgressRule.parse(settings.egress_allow, allow_private=settings.loopback),
        functions=(*settings.functions, *(jobs.modules if jobs is not None else ())),
        commands={**settings.commands, **(jobs.commands if jobs is not None else {})},
        function_processes=settings.function_processes,
        import_paths=list(dict.fromkeys(paths)),
        clock=clock,
    )


async def _refuse_open_door(settings: Settings, store: Store) -> None:
    """Whoever can reach the API can run things here: beyond this machine nobody may without a key."""
    if settings.loopback or "api" not in settings.roles or await store.any_key():
        return
    raise SettingsError(
        f"HOST is {settings.host}: others could reach this server, and there is no API key yet.\n"
        "Make the first one, then start again:\n"
        f"  onthedot keys create --name admin --scope admin --store '{settings.store}'\n"
        "or stay on this machine with --host 127.0.0.1"
    )


def _why_not_ready(node: Node | None) -> Callable[[], str | None]:
    def why() -> str | None:
        return None if node is None or node.ready else "not registered, or it can't reach the store"

    return why
