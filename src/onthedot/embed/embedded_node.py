"""The node inside a program: on the program's own event loop, in a background thread, or until a signal."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import random
import signal
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from onthedot.clock import Clock, SystemClock
from onthedot.embed.background import BackgroundThread, stop_at_exit
from onthedot.embed.listeners import Listeners
from onthedot.engine import Node
from onthedot.errors import Conflict
from onthedot.model.current_run import CALLED_FOR
from onthedot.service import Service, Trust
from onthedot.settings import Settings
from onthedot.store import open_store
from onthedot.targets import InProcessFunctions, build_targets
from onthedot.telemetry import telemetry
from onthedot.telemetry.log import log_failures

__all__ = ["EmbeddedNode", "anywhere", "running_loop"]

P = ParamSpec("P")
N = TypeVar("N", bound="EmbeddedNode")

_NOT_RUNNING = (
    "the scheduler is not running: call `scheduler.start()` or `scheduler.run()`, or use `async with scheduler:`"
)


def anywhere(
    method: Callable[Concatenate[N, P], Coroutine[Any, Any, Any]],
) -> Callable[Concatenate[N, P], Any]:
    """To be awaited in a coroutine; in plain code it returns its result, from any thread. (Which of both it is can't be
    told by types, so the result is Any.)"""

    @functools.wraps(method)
    def call(self: N, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        return self._carry_out(method(self, *args, **kwargs))

    return call


class EmbeddedNode(ABC):
    def __init__(self, settings: Settings, clock: Clock, rng: random.Random) -> None:
        self.settings = settings
        self._clock = clock
        self._rng = rng
        self._listeners = Listeners()
        shared = clock if isinstance(clock, SystemClock) else None  # a fake clock works in one thread only
        self._functions = InProcessFunctions(threads=settings.concurrency, clock=shared)
        self._open = AsyncExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None  # the engine's, while it runs
        self._thread: BackgroundThread | None = None
        self._stops_at_exit = False
        self._service: Service | None = None
        self._node: Node | None = None
        self._signals = 0

    @abstractmethod
    async def _define_jobs(self, service: Service) -> None:
        """Jobs that the program defines, as the store is to have them from now on."""

    @abstractmethod
    async def _add_early_jobs(self) -> None:
        """Jobs that were added before the start."""

    @property
    def service(self) -> Service:
        """The full service API; the methods of this class cover the common operations."""
        if self._service is None:
            raise Conflict(_NOT_RUNNING)
        return self._service

    def _carry_out(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """On the engine's loop, wherever it is asked for: something to await, or the result."""
        here, engine = running_loop(), self._loop
        if here is not None and (engine is None or here is engine):
            return coroutine
        if engine is None:
            coroutine.close()
            raise Conflict(_NOT_RUNNING)
        answer = asyncio.run_coroutine_threadsafe(coroutine, engine)
        if here is not None:
            return asyncio.wrap_future(answer)
        try:
            return answer.result()
        except concurrent.futures.CancelledError:
            raise Conflict("the scheduler was stopped meanwhile") from None

    async def __aenter__(self) -> Self:
        if self._service is not None:
            raise Conflict("the scheduler is already running")
        async with AsyncExitStack() as opening:
            store = await open_store(
                self.settings.store,
                self._clock,
                lookahead=self.settings.lookahead,
                alerting=self.settings.alerting,
            )
            opening.push_async_callback(store.close)
            opening.callback(log_failures(telemetry))
            targets = build_targets(self.settings, in_process=self._functions)
            service = Service(store, targets, self._clock, self.settings)
            opening.push_async_callback(service.close)
            trust = Trust(self.settings, targets)
            await trust.begin(store)
            await self._define_jobs(service)
            await opening.enter_async_context(self._listeners.listening(telemetry))
            await opening.enter_async_context(targets)
            self._node = Node(
                store=store,
                targets=targets,
                clock=self._clock,
                rng=self._rng,
                settings=self.settings,
                heard=trust.heard,
                channels=service.channels,
            )
            self._service, self._loop = service, asyncio.get_running_loop()
            opening.callback(self._closed)  # after the engine has stopped: functions that end with it may still ask
            await self._add_early_jobs()
            await opening.enter_async_context(self._node)
            self._open = opening.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._open.aclose()

    def _closed(self) -> None:
        self._service = self._node = self._loop = None

    async def wait(self) -> None:
        """Wait until the engine stops. Raises the error if it stopped because of one."""
        if self._node is None:
            raise Conflict(_NOT_RUNNING)
        await self._node.wait()

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:
        """For ASGI frameworks: `FastAPI(lifespan=scheduler.lifespan)`, and the same with Starlette and Litestar. Start
        it in every worker: with PostgreSQL they share the work, and each slot fires once."""
        async with self:
            yield

    def start(self) -> Self:
        """Run in a background thread, and return when it runs. It ends with `stop()`, or with the program."""
        if self._thread is not None or self._service is not None:
            raise Conflict("the scheduler is already running")
        thread = self._thread = BackgroundThread(self, self.wait)
        try:
            thread.start()
        except BaseException:
            self._thread = None
            raise
        if not self._stops_at_exit:
            stop_at_exit(self)
            self._stops_at_exit = True
        return self

    def stop(self, wait: bool = True) -> Any:
        """Stop: nothing new starts, executing runs get the grace period to finish. With wait=False they get none, and
        run again later. In a coroutine: `await scheduler.stop()`. From inside a job it only asks for it. Does nothing
        if the scheduler does not run."""
        here, thread = running_loop(), self._thread
        if CALLED_FOR.get() is not None and here is not self._loop:
            self._ask_from_afar(at_once=not wait)
            return None if here is None else asyncio.sleep(0)
        if thread is None:
            return asyncio.sleep(0) if here is not None and self._loop is None else self._stop_here(wait)
        if here is not None:
            return here.run_in_executor(None, self._stop_thread, thread, wait)  # begun, whether it is awaited or not
        return self._stop_thread(thread, wait)

    shutdown = stop

    def _stop_here(self, wait: bool) -> Any:
        return None if self._loop is None else self._carry_out(self._stop_node(wait))

    async def _stop_node(self, wait: bool) -> None:
        if self._node is not None:
            await self._node.stop(at_once=not wait)

    def _stop_thread(self, thread: BackgroundThread, wait: bool) -> None:
        self._ask_from_afar(at_once=not wait)
        thread.join()
        if self._thread is thread:
            self._thread = None

    def _ask_from_afar(self, *, at_once: bool) -> None:
        loop = self._loop
        if loop is None:
            return
        try:
            for _ in range(2 if at_once else 1):
                loop.call_soon_threadsafe(self._ask_to_stop)
        except RuntimeError:  # it has just ended
            return

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


def running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


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
