"""Embeds the scheduler in an asyncio program.

    scheduler = Scheduler()             # sqlite:///onthedot.db; with postgresql://… it joins a cluster

    @scheduler.job(every="10s")
    async def refresh() -> None: ...

    async with scheduler:
        await scheduler.add(refresh, cron="0 3 * * *", key="nightly", params={"full": True})
        await my_program()

Jobs defined by a decorator belong to the program: if you delete the decorator, the job is deleted at the next start.
Jobs added with `add` stay until you remove them. Functions run in this process on a separate event loop, so that a slow
one does not delay the scheduler.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Any, Self, TypeVar

from onthedot.clock import Clock, SystemClock
from onthedot.engine import Node
from onthedot.errors import Conflict
from onthedot.model.job import JobSpec, JobView
from onthedot.model.keyword_spec import spec_from_keywords
from onthedot.model.run import RunView
from onthedot.service import DEFAULT_TENANT, Service, Trust
from onthedot.settings import Settings, load_settings
from onthedot.store import JobFilter, RunFilter, open_store
from onthedot.targets import InProcessFunctions, build_targets
from onthedot.telemetry import telemetry
from onthedot.telemetry.log import log_failures

__all__ = ["Scheduler"]

F = TypeVar("F", bound=Callable[..., Any])

CONCURRENCY = 100
"""Default number of concurrent runs. A sync function occupies a thread while it runs."""


class Scheduler:
    """A scheduler in this process: `async with Scheduler(url) as scheduler:` runs jobs until the block ends.

    Takes the settings of a node as keyword arguments, in lower case.
    """

    def __init__(
        self,
        store: str = "sqlite:///onthedot.db",
        *,
        name: str = "program",
        clock: Clock | None = None,
        rng: random.Random | None = None,
        **settings: Any,
    ) -> None:
        """`name` separates the decorated jobs of this program from those of other programs on the same store."""
        flags = {
            "logs_base_directory": os.devnull,
            "concurrency": CONCURRENCY,
            **settings,
            "store": store,
            "roles": "executor",
        }
        self.settings: Settings = load_settings(flags, environ={})
        self._source = f"code:{name}"
        self._clock = clock or SystemClock()
        self._rng = rng or random.SystemRandom()
        shared = self._clock if isinstance(self._clock, SystemClock) else None  # a fake clock works in one thread only
        self._functions = InProcessFunctions(threads=self.settings.concurrency, clock=shared)
        self._names: dict[Callable[..., Any], str] = {}
        self._decorated: dict[str, JobSpec] = {}
        self._open = AsyncExitStack()
        self._service: Service | None = None
        self._node: Node | None = None
        self._signals = 0

    # registering functions and jobs

    def function(self, name: str | None = None) -> Callable[[F], F]:
        """Decorator: register a function by name, without a schedule, so that jobs can call it."""

        def register(function: F) -> F:
            self._register(function, name)
            return function

        return register

    def job(
        self, *, key: str | None = None, params: Mapping[str, Any] | None = None, **when_and_how: Any
    ) -> Callable[[F], F]:
        """Decorator: schedule a function. `every="10s"`, `cron="0 3 * * *", tz="Europe/Berlin"`, `timeout="5s"` …

        Jobs are created when the scheduler starts, so use the decorator before `async with`.
        """

        def register(function: F) -> F:
            if self._service is not None:
                raise Conflict(
                    "the scheduler is already running: use the decorator before it starts, or `await scheduler.add(…)`"
                )
            known_as = key or self._register(function, None).lstrip("_")  # a key starts with a letter or digit
            if known_as in self._decorated:
                raise Conflict(f"duplicate job {known_as!r}: set a different `key` for one of them")
            self._decorated[known_as] = spec_from_keywords(self._target(function), known_as, params, when_and_how)
            return function

        return register

    def _register(self, function: Callable[..., Any], name: str | None) -> str:
        known_as = self._names.get(function) or name or _name_of(function)
        self._functions.add(known_as, function)
        self._names[function] = known_as
        return known_as

    # jobs

    async def add(
        self,
        what: Callable[..., Any] | str,
        *,
        key: str | None = None,
        params: Mapping[str, Any] | None = None,
        replace: bool = True,
        **when_and_how: Any,
    ) -> JobView:
        """Add a job that calls a function (or its registered name) or a URL. Replaces the job with the same `key`."""
        spec = spec_from_keywords(self._target(what), key, params, when_and_how)
        if key is not None and replace:
            return (await self.service.put_job_by_key(DEFAULT_TENANT, key, spec))[0]
        return await self.service.create_job(DEFAULT_TENANT, spec)

    def _target(self, what: Callable[..., Any] | str) -> dict[str, Any]:
        if callable(what):
            return {"type": "function", "function": self._register(what, None)}
        if "://" in what:
            return {"type": "webhook", "url": what}
        return {"type": "function", "function": what}

    async def get(self, job: int | str) -> JobView:
        """Get a job by ID or key."""
        if isinstance(job, int):
            return await self.service.get_job(DEFAULT_TENANT, job)
        return await self.service.get_job_by_key(DEFAULT_TENANT, job)

    async def jobs(self, **filters: Any) -> AsyncIterator[JobView]:
        """Iterate over all jobs, newest first. Filters as in the HTTP API: `q`, `tag`, `status` …"""
        cursor: str | None = None
        while True:
            page = await self.service.list_jobs(DEFAULT_TENANT, JobFilter(**filters, limit=500, cursor=cursor))
            for job in page.items:
                yield job
            cursor = page.next
            if cursor is None:
                return

    async def remove(self, job: int | str) -> None:
        """Delete a job by ID or key. Its run history is kept."""
        await self.service.delete_job(DEFAULT_TENANT, await self._id(job))

    async def pause(self, job: int | str) -> JobView:
        """Pause a job by ID or key."""
        return await self.service.pause_job(DEFAULT_TENANT, await self._id(job))

    async def resume(self, job: int | str) -> JobView:
        """Resume a paused job by ID or key."""
        return await self.service.resume_job(DEFAULT_TENANT, await self._id(job))

    async def run_now(self, job: int | str) -> RunView:
        """Run a job now, in addition to its schedule."""
        return await self.service.run_job(DEFAULT_TENANT, await self._id(job))

    async def runs(self, job: int | str, limit: int = 50) -> Sequence[RunView]:
        """The newest runs of a job."""
        wanted = RunFilter(job_id=await self._id(job), limit=limit)
        return (await self.service.list_runs(DEFAULT_TENANT, wanted)).items

    async def get_run(self, run_id: str) -> RunView:
        """One run, with its result, which lists leave out."""
        return await self.service.get_run(DEFAULT_TENANT, run_id)

    async def _id(self, job: int | str) -> int:
        return job if isinstance(job, int) else (await self.get(job)).id

    # running

    @property
    def service(self) -> Service:
        """The full service API; the methods of this class cover the common operations."""
        if self._service is None:
            raise Conflict("the scheduler is not running: use it inside `async with scheduler:`")
        return self._service

    async def __aenter__(self) -> Self:
        if self._service is not None:
            raise Conflict("the scheduler is already running")
        async with AsyncExitStack() as opening:
            store = await open_store(self.settings.store, self._clock, lookahead=self.settings.lookahead)
            opening.push_async_callback(store.close)
            opening.callback(log_failures(telemetry))
            targets = build_targets(self.settings, in_process=self._functions)
            service = Service(store, targets, self._clock, self.settings)
            opening.push_async_callback(service.close)
            trust = Trust(self.settings, targets)
            await trust.begin(store)
            await service.sync(DEFAULT_TENANT, self._source, list(self._decorated.values()), prune=True)
            await opening.enter_async_context(targets)
            self._node = Node(
                store=store,
                targets=targets,
                clock=self._clock,
                rng=self._rng,
                settings=self.settings,
                heard=trust.heard,
            )
            await opening.enter_async_context(self._node)
            self._service = service
            opening.callback(self._closed)
            self._open = opening.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._open.aclose()

    def _closed(self) -> None:
        self._service = self._node = None

    async def wait(self) -> None:
        """Wait until the engine stops. Raises the error if it stopped because of one."""
        if self._node is None:
            raise Conflict("the scheduler is not running: use it inside `async with scheduler:`")
        await self._node.wait()

    def run(self) -> None:
        """Run until Ctrl-C or SIGTERM, then drain: executing runs get the grace period to finish. A second signal stops
        immediately. For programs that do nothing else."""

        async def live() -> None:
            with _on_signals(self._signalled):
                async with self:
                    for _ in range(self._signals):  # signals that arrived while the store was opening
                        self._ask_to_stop()
                    await self.wait()

        self._signals = 0
        try:
            asyncio.run(live())
        except KeyboardInterrupt:  # the loop can't handle signals on Windows or outside the main thread
            return

    def _signalled(self) -> None:
        self._signals += 1
        self._ask_to_stop()

    def _ask_to_stop(self) -> None:
        if self._node is not None:
            self._node.request_stop()


@contextmanager
def _on_signals(handler: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    taken = []
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, handler)
        except (NotImplementedError, RuntimeError, ValueError):
            continue
        taken.append(number)
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)


def _name_of(function: Callable[..., Any]) -> str:
    """The name in the store, stable across restarts: `__name__`, without enclosing functions."""
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise ValueError(f'{function!r} has no name: register it with `@scheduler.function("name")`')
    return str(name)
