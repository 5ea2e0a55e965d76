"""The composition root: from settings to a running node, each part given what it needs and nothing else.

The nesting of `async with` is the order of starting, and backwards the order of stopping: what is used last ends last.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onthedot.channels.registry import check_channels
from onthedot.clock import Clock, SystemClock
from onthedot.errors import Invalid, SettingsError
from onthedot.jobsfile import JobsFile
from onthedot.service import DEFAULT_TENANT, Service, Trust
from onthedot.settings import Settings
from onthedot.store import Store, SyncReport, open_store
from onthedot.targets import FileGrants, Targets, build_targets
from onthedot.telemetry import telemetry
from onthedot.telemetry.metrics import Metrics
from onthedot.telemetry.otlp import exporting
from onthedot.telemetry.stalls import watch_loop

if TYPE_CHECKING:
    from onthedot.api.app import App
    from onthedot.api.monitoring import MonitoringApp
    from onthedot.api.operations import Endpoint
    from onthedot.engine import Node

STARTING = 5.0
"""Seconds in which modules are still being loaded, which holds the loop, and nobody need be told."""

__all__ = ["Prepared", "Running", "assembled", "load_jobs", "prepare", "targets_of"]


@dataclass(frozen=True)
class Prepared:
    """What must be there before a node can start: an open store, what may be called, the jobs file applied."""

    settings: Settings
    jobs: JobsFile | None
    store: Store
    targets: Targets
    service: Service
    synced: SyncReport | None
    is_open: bool  # to everybody on this machine, as long as there is no key
    keyless: bool  # a key is required, and none was ever made
    trust: Trust

    async def close(self) -> None:
        await self.service.close()
        await self.store.close()


@dataclass(frozen=True)
class Running:
    """A node and its parts. `app` None: it serves no API. A node that executes nothing still shows that it is there.
    `monitoring`: what METRICS_PORT serves."""

    prepared: Prepared
    service: Service
    app: App | None
    monitoring: MonitoringApp | None
    node: Node
    synced: SyncReport | None


async def prepare(settings: Settings, jobs: JobsFile | None, clock: Clock) -> Prepared:
    """Raises StoreUnavailable when the database is away: then it can be tried again, nothing is left open."""
    if settings.intake:
        from onthedot.intake import check_intakes

        check_intakes(settings)
    async with AsyncExitStack() as stack:
        check_channels(settings)
        store = await open_store(settings.store, clock, lookahead=settings.lookahead, alerting=settings.alerting)
        stack.push_async_callback(store.close)
        targets = targets_of(settings, jobs)
        service = Service(store, targets, clock, settings)
        stack.push_async_callback(service.close)
        if settings.admin_key is not None:
            await service.set_admin_key(settings.admin_key)
        await _refuse_without_key(settings, store)
        trust = await trusted(service, targets)
        synced = None if jobs is None else await load_jobs(service, jobs)
        is_open = await service.is_open()
        keyless = not is_open and "api" in settings.roles and not await store.any_key()
        stack.pop_all()
    return Prepared(settings, jobs, store, targets, service, synced, is_open, keyless, trust)


async def trusted(service: Service, targets: Targets) -> Trust:
    """What is called and who may call it hang on the same: whether a key was ever made."""
    trust = Trust(service.settings, targets, closed=service.forget_keys)
    service.when_key_made = trust.key_made
    await trust.begin(service.store)
    return trust


@asynccontextmanager
async def assembled(
    settings: Settings,
    *,
    jobs: JobsFile | None = None,
    prepared: Prepared | None = None,
    routes: Sequence[Endpoint] = (),
    clock: Clock | None = None,
    rng: random.Random | None = None,
) -> AsyncIterator[Running]:
    """Everything that the settings ask for, running. `routes` are the pages; `prepared` is closed at the end."""
    from onthedot.engine import Node
    from onthedot.engine.membership.change_news import ChangeNews

    clock = clock or SystemClock()
    prepared = prepared or await prepare(settings, jobs, clock)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(prepared.close)
        store, targets, service = prepared.store, prepared.targets, prepared.service
        metrics = Metrics()
        stack.callback(metrics.listen(telemetry))
        await stack.enter_async_context(
            exporting(
                telemetry,
                os.environ,
                node=settings.node_name or socket.gethostname(),
                host=socket.gethostname(),
                count=metrics.count_otel,
            )
        )
        executes = "executor" in settings.roles
        if executes:
            await stack.enter_async_context(targets)
        node = Node(
            store=store,
            targets=targets if executes else Targets(),  # it is registered, watches the others, and claims no run
            clock=clock,
            rng=rng or random.SystemRandom(),
            settings=settings,
            heard=prepared.trust.heard,
            channels=service.channels,
        )
        await stack.enter_async_context(node)
        if not settings.is_sqlite:  # that has one node
            stack.callback(ChangeNews(store.notify, clock).listen(telemetry))
        intakes = await _intakes(stack, settings, service, clock)
        app: App | None = None
        if "api" in settings.roles:
            from onthedot.api.app import create_app

            app = create_app(service, clock=clock, metrics=metrics, extra_routes=routes, **_told_of(node, intakes))
        monitoring = _monitoring(service, node, metrics, intakes, clock)
        await stack.enter_async_context(watch_loop(metrics.loop_held.observe, quiet_for=STARTING))
        yield Running(prepared, service=service, app=app, monitoring=monitoring, node=node, synced=prepared.synced)


def _monitoring(
    service: Service, node: Node, metrics: Metrics, intakes: Callable[[], dict[str, str]], clock: Clock
) -> MonitoringApp | None:
    if service.settings.metrics_port is None:
        return None
    from onthedot.api.context import NodeReport
    from onthedot.api.monitoring import monitoring_of_node

    report = NodeReport(service=service, metrics=metrics, clock=clock, **_told_of(node, intakes))
    return monitoring_of_node(report)


def _told_of(node: Node, intakes: Callable[[], dict[str, str]]) -> dict[str, Any]:
    """What whoever watches a node may ask: see `NodeReport`."""
    return {
        "ready": lambda: node.trouble,
        "lacking": lambda: node.lacking,
        "intake": intakes,
        "mailboxes": lambda: node.mailboxes,
        "slots": lambda: node.slots,
        "node_id": lambda: None if node.info is None else node.info.id,
    }


async def _intakes(
    stack: AsyncExitStack, settings: Settings, service: Service, clock: Clock
) -> Callable[[], dict[str, str]]:
    """How each of them is, by name."""
    if not settings.intake:
        return dict
    from onthedot.intake import Intakes

    return (await stack.enter_async_context(Intakes(settings, service, clock))).troubles


async def load_jobs(service: Service, jobs: JobsFile) -> SyncReport:
    """Make the file's jobs what the file says: what is no longer in it is removed, other jobs are not touched.

    Without a source that somebody named, nothing is ever removed from a database that others may share.

    A key that is somebody else's (the file was renamed, perhaps) is left to them: what runs goes on, the node starts.
    """
    try:
        return await service.sync(
            DEFAULT_TENANT,
            jobs.source,
            jobs.specs,
            prune=jobs.named or service.settings.is_sqlite,
            file=jobs.origin,
            others="leave",
            former=jobs.former,
        )
    except Invalid as invalid:
        raise jobs.located(invalid) from None


class JobsFileInUse:
    """The jobs file that a node goes by: read again, it may also register other modules and commands."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._applied = prepared.jobs

    async def apply(self, jobs: JobsFile) -> SyncReport:
        """All of it or nothing: if it is refused, what was registered before is registered still."""
        self._register(jobs)
        try:
            report = await load_jobs(self._prepared.service, jobs)
        except BaseException:
            self._register(self._applied)
            raise
        self._applied = jobs
        await self._prepared.targets.reload()
        return report

    def _register(self, jobs: JobsFile | None) -> None:
        _register(self._prepared.targets, self._prepared.settings, jobs)


def _register(targets: Targets, settings: Settings, jobs: JobsFile | None) -> None:
    """The operator registers by settings, for all tenants, and by the jobs file, for the tenant that owns it."""
    granted = {}
    if jobs is not None:
        granted[DEFAULT_TENANT] = FileGrants([spec.target for spec in jobs.specs], jobs.commands)
    targets.register(settings, granted)


def targets_of(settings: Settings, jobs: JobsFile | None) -> Targets:
    """What a node offers by these settings. The jobs file's directory is where its modules are found."""
    paths = [str(Path.cwd())]
    if jobs is not None:
        paths.insert(0, str(jobs.directory))
    targets = build_targets(settings, import_paths=list(dict.fromkeys(paths)))
    _register(targets, settings, jobs)
    return targets


async def _refuse_without_key(settings: Settings, store: Store) -> None:
    """Whoever can reach the API can run things here: beyond this machine nobody may without a key."""
    if settings.loopback or "api" not in settings.roles or await store.any_key():
        return
    raise SettingsError(
        f"HOST is {settings.host}: other machines could reach this server, but there is no API key yet.\n"
        "Create the first key, then start again:\n"
        f"  {settings.first_key_command}\n"
        "or set one with ADMIN_KEY or ADMIN_KEY_FILE, or listen on this machine only, with --host 127.0.0.1"
    )
