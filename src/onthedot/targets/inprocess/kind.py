"""Callables of a program that embeds On the Dot: they run in its process, but never on the loop that beats.

Async ones run on a loop of their own in another thread, sync ones in threads. What they log through `logging` is the
run's log too; what they print is the program's own. Cancelling is best effort: a coroutine is cancelled, a thread can
only be left to its end, unheard.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import msgspec

from onthedot.clock import Clock
from onthedot.errors import Invalid
from onthedot.model.current_run import CALLED_FOR
from onthedot.model.result import not_json
from onthedot.model.run import Outcome
from onthedot.model.targets import FunctionTarget
from onthedot.targets.contract import Call, Cause, Done, Ended, Handle, Kind, Profile, Stop, failed_try
from onthedot.targets.inprocess.loop_thread import LoopThread
from onthedot.targets.inprocess.thread_pool import ThreadPool
from onthedot.targets.registry import names

__all__ = ["InProcessFunctions"]

_OK = Outcome(kind="ok")
_REMEMBERED = 1000
STOP_WITHIN = 1.0
"""Seconds for a coroutine that was cancelled to tidy up. A thread ends when it ends, and is waited for no longer."""


class _RunLog(logging.Handler):
    """Passes what is logged inside a call on to that call's run."""

    def emit(self, record: logging.LogRecord) -> None:
        started = CALLED_FOR.get()
        if isinstance(started, InProcessCall):
            started.write(self.format(record) + "\n")


class InProcessFunctions(Kind):
    """The kind `function` of an embedded Scheduler: what was registered by name."""

    spec = FunctionTarget

    def __init__(self, *, threads: int = 32, clock: Clock | None = None) -> None:
        """`clock`: the engine's, if it can be read in any thread. Without one no call is started before its instant."""
        self.profile = Profile(capacity=threads, in_process=True, stop_within=STOP_WITHIN)
        self._functions: dict[str, Callable[..., Any]] = {}
        self._capabilities: list[str] = []
        self._most_threads = threads
        self._waits: dict[str, bool] = {}  # whether it is a coroutine function
        self._misfits: dict[str | tuple[str, ...], str | None] = {}
        self._clock = clock
        self._loop_thread = LoopThread("onthedot-functions", clock)
        self._home: asyncio.AbstractEventLoop | None = None
        self._threads: ThreadPool | None = None
        self._handler = _RunLog()
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def capabilities(self) -> list[str]:
        return self._capabilities

    def add(self, name: str, function: Callable[..., Any]) -> None:
        """Also while running. The name is what jobs call it by, "module:function" or as `model.checks` accepts it."""
        known = self._functions.setdefault(name, function)
        if known is not function:
            raise ValueError(f"{name!r} is already registered for another callable")
        self._waits[name] = inspect.iscoroutinefunction(function)
        capability = FunctionTarget(function=name).capability()
        if capability not in self._capabilities:  # a new list: whoever has the old one can tell that something changed
            self._capabilities = [*self._capabilities, capability]

    def find(self, name: str) -> Callable[..., Any] | None:
        """What was registered by this name."""
        return self._functions.get(name)

    def check(self, target: FunctionTarget, tenant: int = 1) -> None:
        if target.function not in self._functions:
            accepted = names(list(self._functions))
            raise Invalid.one("target.function", "is not registered", given=target.function, accepted=accepted)

    def keeps_time(self, target: FunctionTarget) -> bool:
        """Threads are woken one by one, whoever does it: only the loop saves something by it."""
        return self._clock is not None and self._waits.get(target.function, False)

    def start(self, call: Call, at: float, done: Done) -> Handle:
        name = call.target.function  # type: ignore[attr-defined]  # the registry asks for no other kind of target
        function, given, clock = self._functions.get(name), call.params, self._clock
        if given and "trigger" in given and function is not None:
            given = _without_trigger(function, given)
        early = clock is not None and at > clock.monotonic()
        started = InProcessCall(self, function, call, given, at, done, clock if early else None)
        if function is None:
            started.outcome = Outcome(kind="refused", error=f"{name} is not registered in this program")
        elif misfit := self._misfit(name, function, given):
            started.outcome = Outcome(kind="error", error=misfit)
        if early:
            self._loop_thread.send_early(started, at)
        elif started.outcome is not None:
            started.began = at
            asyncio.get_running_loop().call_soon(started.bring_home)
        else:
            call.begun(at)
            if self._waits[name]:
                self._loop_thread.send(started)
            else:
                assert self._threads is not None, "not entered"
                self._threads.send(started)
        return started

    def take_back(self, started: InProcessCall) -> bool:
        """Whether it has not begun; then it will not."""
        return self._loop_thread.take_back(started) or (self._threads is not None and self._threads.take_back(started))

    def _misfit(self, name: str, function: Callable[..., Any], params: dict[str, Any]) -> str | None:
        """Whether params fit is decided by their names alone, so it is found out once: it takes longer than a call."""
        given = (name, *params) if params else name
        try:
            return self._misfits[given]
        except KeyError:
            if len(self._misfits) >= _REMEMBERED:
                self._misfits.clear()
            misfit = self._misfits[given] = _why_not(name, function, params)
            return misfit

    async def __aenter__(self) -> Self:
        self._home = asyncio.get_running_loop()
        self._threads = ThreadPool(self._most_threads, "onthedot-function", self._home)
        await self._loop_thread.__aenter__()
        logging.getLogger().addHandler(self._handler)
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._home is None or self._threads is None:
            return
        logging.getLogger().removeHandler(self._handler)
        await self._loop_thread.__aexit__(*exc)
        self._threads.close()
        self._home = None


class InProcessCall(msgspec.Struct, gc=False, eq=False):
    """One call, on its way to where it is carried out and back; if it may not begin any more when it gets there, it
    comes back without an outcome. Out of the collector's sight as the Monitor is, which lets go of it when it ends."""

    _kind: InProcessFunctions
    _function: Callable[..., Any] | None
    call: Call
    _given: dict[str, Any]
    _at: float
    _done: Done | None
    _clock: Clock | None = None  # of one that was started before its instant
    _awaitable: Any = None
    outcome: Outcome | None = None
    lack: str | None = None
    began: float | None = None
    _ended: float | None = None

    def may_wait(self) -> bool:
        return self._clock is not None and self.call.stopped is None

    def stop(self, cause: Cause) -> Stop:
        """A coroutine is cancelled; a thread can only be left to its end."""
        if self._is_home():
            return Stop.ENDED
        if self._awaitable is None and self._kind.take_back(self):
            self._done = None
            return Stop.NOT_BEGUN
        loop_thread = self._kind._loop_thread
        loop_thread.fetch()
        if self._is_home():
            return Stop.ENDED
        if cause != "recalled":
            self.call.stopped = cause
            loop_thread.cancel(self)
        return Stop.STOPPING

    def recorded(self) -> None:
        """Nothing is left of it."""

    def _is_home(self) -> bool:
        return self._done is None

    def bring_home(self) -> None:
        done, self._done = self._done, None
        if done is None:
            return
        if self.lack is not None:
            self.call.lacks(self.lack)
        stopped = self.call.stopped is not None  # too late: what came of it is why it was stopped
        done(Ended(None if stopped else self.outcome, self.began, self._ended))

    def tell_begun(self) -> bool:
        if self._is_home():
            return True
        if self.began is None:
            return False
        self.call.begun(self.began)
        return True

    async def carry_out(self) -> None:
        if self._awaitable is None:
            if not self._begin():
                return
        elif self._was_stopped():  # while its thread ran
            if inspect.iscoroutine(self._awaitable):
                self._awaitable.close()
            return
        assert self._function is not None
        token = CALLED_FOR.set(self)  # in this task, and in what it starts
        try:
            waits_for = self._awaitable
            self._succeeded(await (self._function(**self._given) if waits_for is None else waits_for))
        except BaseException as error:
            if not (isinstance(error, asyncio.CancelledError) and self._was_stopped()):
                self._failed(error)
        finally:
            CALLED_FOR.reset(token)
            if self._clock is not None:
                self._ended = self._clock.monotonic()

    def carry_out_here(self) -> bool:
        return not self._begin() or contextvars.copy_context().run(self._in_thread)

    def _begin(self) -> bool:
        """Whether there is something to do. What can't be called has its outcome already, and tells at its instant."""
        if self.call.stopped is not None or not self.call.may_begin():
            self.outcome = None
            return False
        self.began = self._at if self._clock is None else self._clock.monotonic()
        return self.outcome is None

    def _was_stopped(self) -> bool:
        """Asked over there."""
        return self.call.stopped is not None

    def _in_thread(self) -> bool:
        CALLED_FOR.set(self)
        assert self._function is not None
        try:
            result = self._function(**self._given)
            if result is not None and inspect.isawaitable(result):
                self._awaitable = result
                self._kind._loop_thread.send_from_thread(self)
                return False
            self._succeeded(result)
        except BaseException as error:
            self._failed(error)
        return True

    def _succeeded(self, result: Any) -> None:
        self.outcome = _OK if result is None else Outcome(kind="ok", detail=_detail(result))

    def _failed(self, error: BaseException) -> None:
        self.write("".join(traceback.format_exception(error)))
        self.outcome = failed_try(error)

    def write(self, text: str) -> None:
        """Into the log of its run, from any thread."""
        if self._kind._home is not None:
            self._kind._loop_thread.say(partial(self._log, text))

    def _log(self, text: str) -> None:
        """At home."""
        if self._clock is not None:
            self.tell_begun()
        self.call.log(text)


def _without_trigger(function: Callable[..., Any], params: dict[str, Any]) -> dict[str, Any]:
    """What a chain gives to its runs is for functions that ask for it."""
    try:
        asked = inspect.signature(function).parameters
    except ValueError:
        return params
    if "trigger" in asked or any(each.kind is each.VAR_KEYWORD for each in asked.values()):
        return params
    return {name: value for name, value in params.items() if name != "trigger"}


def _why_not(name: str, function: Callable[..., Any], params: dict[str, Any]) -> str | None:
    try:
        inspect.signature(function).bind(**params)
    except ValueError:  # it has no readable signature: the call will tell
        return None
    except TypeError as error:
        return f"the params do not match {name}: {error}"
    return None


def _detail(result: Any) -> dict[str, Any]:
    """Read here, in the thread that made it: nobody changes it while it waits to be stored."""
    try:
        return {"result": msgspec.json.decode(msgspec.json.encode(result))}
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return {"result_note": not_json(result)}
