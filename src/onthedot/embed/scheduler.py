"""Embeds the scheduler in a program.

    scheduler = Scheduler()             # sqlite:///onthedot.db; with postgresql://… it joins a cluster

    @scheduler.job(every="10s")
    def refresh() -> None: ...

    scheduler.start()                   # in a background thread
    scheduler.add(refresh, cron="0 3 * * *", key="nightly")
    ...
    scheduler.stop()

In an asyncio program: `async with scheduler:`, and `await scheduler.add(…)`. A program that does nothing else:
`scheduler.run()`.

Jobs defined by a decorator belong to the program: if you delete the decorator, the job is deleted at the next start.
Jobs added with `add` stay until you remove them. Functions run in this process on a separate event loop, or in threads,
so that a slow one does not delay the scheduler.
"""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any, TypeVar, overload

import msgspec

from onthedot.clock import Clock, SystemClock
from onthedot.embed.embedded_node import EmbeddedNode, anywhere, running_loop
from onthedot.embed.keywords import SharedKeywords, params_of
from onthedot.embed.listeners import LATE_MS, Listener, NoticeKind
from onthedot.errors import Conflict, Invalid
from onthedot.model.duration import ACCEPTED_DURATIONS, Duration
from onthedot.model.job import JobSpec, JobView
from onthedot.model.keyword_spec import patch_from_keywords, spec_from_keywords
from onthedot.model.python_values import from_python
from onthedot.model.run import RunView
from onthedot.service import DEFAULT_TENANT, Service
from onthedot.settings import load_settings
from onthedot.store import JobFilter, Page, RunFilter

__all__ = ["Scheduler"]

F = TypeVar("F", bound=Callable[..., Any])
L = TypeVar("L", bound=Listener)

CONCURRENCY = 100
"""Default number of concurrent runs. A sync function occupies a thread while it runs."""


class Scheduler(EmbeddedNode):
    """A scheduler in this process. `start()` runs it in a background thread until `stop()`; `async with scheduler:`
    runs it on the program's own event loop until the block ends; `run()` runs it until a signal.

    Methods that return something are awaited in coroutines, and called as they are in plain code, from any thread.
    Takes the settings of a node as keyword arguments, in lower case.
    """

    def __init__(
        self,
        store: str = "sqlite:///onthedot.db",
        *,
        name: str = "program",
        tz: str | tzinfo | None = None,
        defaults: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        **settings: Any,
    ) -> None:
        """`name` separates the decorated jobs of this program from those of other programs on the same store. `tz`: the
        time zone of jobs that name none. `defaults`: policy of jobs that do not say otherwise, such as
        `{"timeout": "30s", "retry": {"attempts": 5}, "max_running": 1}`."""
        flags = {
            "logs_base_directory": os.devnull,
            "concurrency": CONCURRENCY,
            **settings,
            "store": store,
            "roles": "executor",
        }
        super().__init__(load_settings(flags, environ={}), clock or SystemClock(), rng or random.SystemRandom())
        self._shared = SharedKeywords(tz, defaults)
        self._source = f"code:{name}"
        self._names: dict[Callable[..., Any], str] = {}
        self._decorated: dict[str, JobSpec] = {}
        self._early: list[AddedJob] = []  # before the start

    # registering functions and jobs

    def function(self, name: str | None = None) -> Callable[[F], F]:
        """Decorator: register a function by name, without a schedule, so that jobs can call it."""

        def register(function: F) -> F:
            self._register(function, name)
            return function

        return register

    def job(
        self,
        *,
        key: str | None = None,
        args: Sequence[Any] | None = None,
        params: Mapping[str, Any] | None = None,
        **when_and_how: Any,
    ) -> Callable[[F], F]:
        """Decorator: schedule a function. `every="10s"`, `cron="0 3 * * *", tz="Europe/Berlin"`, `timeout="5s"` …

        Jobs are created when the scheduler starts, so use the decorator before that.
        """

        def register(function: F) -> F:
            if self._service is not None:
                raise Conflict(
                    "the scheduler is already running: use the decorator before it starts, or `scheduler.add(…)`"
                )
            known_as = key or self._register(function, None).lstrip("_")  # a key starts with a letter or digit
            if known_as in self._decorated:
                raise Conflict(f"duplicate job {known_as!r}: set a different `key` for one of them")
            named = params_of(function, args, params)
            given = self._shared.given(when_and_how)
            self._decorated[known_as] = spec_from_keywords(self._target(function), known_as, named, given)
            return function

        return register

    def _register(self, function: Callable[..., Any], name: str | None) -> str:
        known_as = self._names.get(function) or name or _name_of(function)
        self._functions.add(known_as, function)
        self._names[function] = known_as
        return known_as

    @overload
    def on(self, kind: NoticeKind, /, *, than: Any = ...) -> Callable[[L], L]: ...
    @overload
    def on(self, kind: NoticeKind, listener: L, /, *, than: Any = ...) -> L: ...
    def on(self, kind: str, listener: Any = None, /, *, than: Any = None) -> Any:
        """Call a function when a run is `done`, an attempt has `failed`, a run is `dead` (its last attempt has failed),
        or a run began `late`. As a decorator, or with the function. It gets a `RunNotice`, in a thread of its own. Only
        runs of this process are told. `than`: how late is late, 1 s by default."""
        late_ms = LATE_MS if than is None else _milliseconds("than", than)

        def listen(function: Any) -> Any:
            self._listeners.add(kind, function, late_ms)
            return function

        return listen if listener is None else listen(listener)

    # jobs

    def add(
        self,
        what: Callable[..., Any] | str,
        *,
        key: str | None = None,
        args: Sequence[Any] | None = None,
        params: Mapping[str, Any] | None = None,
        replace: bool = True,
        **when_and_how: Any,
    ) -> Any:
        """Add a job that calls a function (or its registered name) or a URL. Replaces the job with the same `key`,
        which stays paused if somebody paused it, unless `paused` is given.

        `args` are stored by name, like `params`. Before the scheduler has started, plain code can add jobs too: they
        are created when it starts, and None is returned."""
        if not callable(what) and not isinstance(what, str):
            raise TypeError(f"what to run is a function, the name of a registered one, or a URL; not {what!r}")
        function = what if callable(what) else self._functions.find(what)
        named = params_of(function, args, params)
        spec = spec_from_keywords(self._target(what), key, named, self._shared.given(when_and_how))
        added = AddedJob(spec, replaces=replace, keeps_pause=when_and_how.get("paused") is None)
        if self._loop is None and self._service is None and running_loop() is None:
            self._early.append(added)
            return None
        return self._carry_out(self._add(added))

    async def _define_jobs(self, service: Service) -> None:
        await service.sync(DEFAULT_TENANT, self._source, list(self._decorated.values()), prune=True)

    async def _add_early_jobs(self) -> None:
        while self._early:
            await self._add(self._early[0])
            del self._early[0]

    async def _add(self, added: AddedJob) -> JobView:
        spec = added.spec
        if spec.key is None or not added.replaces:
            return await self.service.create_job(DEFAULT_TENANT, spec)
        keeps = added.keeps_pause
        return (await self.service.put_job_by_key(DEFAULT_TENANT, spec.key, spec, keeps_pause=keeps))[0]

    @anywhere
    async def change(
        self, /, job: int | str, *, params: Mapping[str, Any] | None = None, **when_and_how: Any
    ) -> JobView:
        """Change a job by ID or key: its schedule, its `params`, or other fields such as `timeout`. The rest stays."""
        patch, job_id = patch_from_keywords(params, when_and_how), await self._id(job)
        if params is not None:  # these, and none of the former
            former = (await self.service.get_job(DEFAULT_TENANT, job_id)).params
            patch["params"] = {**dict.fromkeys(former), **patch["params"]}
        return await self.service.patch_job(DEFAULT_TENANT, job_id, patch)

    def _target(self, what: Callable[..., Any] | str) -> dict[str, Any]:
        if callable(what):
            return {"type": "function", "function": self._register(what, None)}
        if "://" in what:
            return {"type": "webhook", "url": what}
        return {"type": "function", "function": what}

    @anywhere
    async def get(self, job: int | str) -> JobView:
        """Get a job by ID or key."""
        if isinstance(job, int):
            return await self.service.get_job(DEFAULT_TENANT, job)
        return await self.service.get_job_by_key(DEFAULT_TENANT, job)

    def jobs(self, **filters: Any) -> JobIteration:
        """Iterate over all jobs, newest first: `for`, or `async for` in a coroutine. Filters as in the HTTP API: `q`,
        `tag`, `status` …"""
        return JobIteration(self, filters)

    @anywhere
    async def jobs_page(self, filters: Mapping[str, Any], cursor: str | None) -> Page[JobView]:
        """Up to 500 of the jobs, and where the next ones begin."""
        return await self.service.list_jobs(DEFAULT_TENANT, JobFilter(**filters, limit=500, cursor=cursor))

    @anywhere
    async def remove(self, job: int | str) -> None:
        """Delete a job by ID or key. Its run history is kept."""
        await self.service.delete_job(DEFAULT_TENANT, await self._id(job))

    @anywhere
    async def pause(self, job: int | str) -> JobView:
        """Pause a job by ID or key."""
        return await self.service.pause_job(DEFAULT_TENANT, await self._id(job))

    @anywhere
    async def resume(self, job: int | str) -> JobView:
        """Resume a paused job by ID or key."""
        return await self.service.resume_job(DEFAULT_TENANT, await self._id(job))

    @anywhere
    async def run_now(self, job: int | str, params: Mapping[str, Any] | None = None) -> RunView:
        """Run a job now, in addition to its schedule. `params`: of this run, instead of those of the job."""
        own = None if params is None else dict(params)
        return await self.service.run_job(DEFAULT_TENANT, await self._id(job), params=own)

    @anywhere
    async def runs(self, job: int | str, limit: int = 50) -> Sequence[RunView]:
        """The newest runs of a job."""
        wanted = RunFilter(job_id=await self._id(job), limit=limit)
        return (await self.service.list_runs(DEFAULT_TENANT, wanted)).items

    @anywhere
    async def get_run(self, run_id: str) -> RunView:
        """One run, with its result, which lists leave out."""
        return await self.service.get_run(DEFAULT_TENANT, run_id)

    async def _id(self, job: int | str) -> int:
        return job if isinstance(job, int) else (await self.service.get_job_by_key(DEFAULT_TENANT, job)).id


class AddedJob(msgspec.Struct, frozen=True):
    """A job as a call of `add` says it."""

    spec: JobSpec
    replaces: bool  # the one with its key
    keeps_pause: bool  # of that one: each start of the program adds the job again


class JobIteration:
    """All jobs that pass the filters, read page by page."""

    def __init__(self, scheduler: Scheduler, filters: Mapping[str, Any]) -> None:
        self._scheduler = scheduler
        self._filters = filters

    def __iter__(self) -> Iterator[JobView]:
        cursor: str | None = None
        while True:
            page: Page[JobView] = self._scheduler.jobs_page(self._filters, cursor)
            yield from page.items
            cursor = page.next
            if cursor is None:
                return

    async def __aiter__(self) -> AsyncIterator[JobView]:
        cursor: str | None = None
        while True:
            page: Page[JobView] = await self._scheduler.jobs_page(self._filters, cursor)
            for job in page.items:
                yield job
            cursor = page.next
            if cursor is None:
                return


def _milliseconds(path: str, value: Any) -> int:
    try:
        return Duration.parse(from_python(path, value))
    except ValueError:
        raise Invalid.one(path, "not a valid duration", given=value, accepted=ACCEPTED_DURATIONS) from None


def _name_of(function: Callable[..., Any]) -> str:
    """The name in the store, stable across restarts: `__name__`, without enclosing functions."""
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise ValueError(f'{function!r} has no name: register it with `@scheduler.function("name")`')
    return str(name)
