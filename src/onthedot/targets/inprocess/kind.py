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
from onthedot.model.run import Outcome
from onthedot.model.targets import FunctionTarget
from onthedot.targets.contract import Booking, Call, NotBegun
from onthedot.targets.inprocess.loop_thread import LoopThread
from onthedot.targets.inprocess.thread_pool import ThreadPool
from onthedot.targets.registry import names

__all__ = ["Callables"]

_log: contextvars.ContextVar[Callable[[str], None] | None] = contextvars.ContextVar("onthedot_log", default=None)
_OK = Outcome(kind="ok")
_REMEMBERED = 1000


class _RunLog(logging.Handler):
    """Passes what is logged inside a call on to that call's run."""

    def emit(self, record: logging.LogRecord) -> None:
        write = _log.get()
        if write is not None:
            write(self.format(record) + "\n")


class Callables:
    """The kind `function` of an embedded Scheduler: what was registered by name."""

    def __init__(self, *, threads: int = 32, clock: Clock | None = None) -> None:
        """`clock`: the engine's, if it can be read in any thread. Without one no calls are booked."""
        self._functions: dict[str, Callable[..., Any]] = {}
        self.offers: list[str] = []
        self.threads = threads
        self._waits: dict[str, bool] = {}  # whether it is a coroutine function
        self._misfits: dict[str | tuple[str, ...], str | None] = {}
        self._clock = clock
        self._other = LoopThread("onthedot-callables", clock)
        self._home: asyncio.AbstractEventLoop | None = None
        self._threads: ThreadPool | None = None
        self._handler = _RunLog()
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def register(self, name: str, function: Callable[..., Any]) -> None:
        """Also while running. The name is what jobs call it by, "module:function" or as `model.checks` accepts it."""
        known = self._functions.setdefault(name, function)
        if known is not function:
            raise ValueError(f"{name!r} is registered already, for another callable")
        self._waits[name] = inspect.iscoroutinefunction(function)
        offer = FunctionTarget(function=name).capability()
        if offer not in self.offers:  # a new list: whoever has the old one can tell that something changed
            self.offers = [*self.offers, offer]

    def check(self, target: FunctionTarget, tenant: int = 1) -> None:
        if target.function not in self._functions:
            accepted = names(list(self._functions))
            raise Invalid.one("target.function", "is not registered", given=target.function, accepted=accepted)

    async def send(self, call: Call) -> Outcome:
        assert self._home is not None, "not entered"
        answer: asyncio.Future[Outcome | None] = self._home.create_future()
        withdraw = self.hand_over(call, answer.set_result)
        try:
            outcome = await answer
        except asyncio.CancelledError:
            withdraw()
            raise
        if outcome is None:
            raise NotBegun
        return outcome

    def hand_over(self, call: Call, ended: Callable[[Outcome | None], None]) -> Callable[[], bool | None]:
        assert isinstance(call.target, FunctionTarget)
        assert self._home is not None, "not entered"
        assert self._threads is not None
        name = call.target.function
        function = self._functions.get(name)
        errand = _Errand(self, function, call, ended)
        if function is None:
            errand.outcome = Outcome(kind="refused", error=f"{name} is not registered in this program")
            self._home.call_soon(errand.bring_home)
        elif misfit := self._misfit(name, function, call.params):
            errand.outcome = Outcome(kind="error", error=misfit)
            self._home.call_soon(errand.bring_home)
        elif self._waits[name]:
            self._other.send(errand)
        else:
            self._threads.send(errand)
        return errand.withdraw

    def keeps_time_for(self, target: FunctionTarget) -> bool:
        """Threads are woken one by one, whoever does it: only the loop saves something by it."""
        return self._clock is not None and self._waits.get(target.function, False)

    def book(self, call: Call, at: float, ended: Callable[[Outcome | None], None]) -> Booking | None:
        assert isinstance(call.target, FunctionTarget)
        name = call.target.function
        function = self._functions.get(name)
        if self._clock is None or function is None or self._misfit(name, function, call.params):
            return None  # what is wrong with it is told at its instant
        errand = _Errand(self, function, call, ended, self._clock)
        self._other.book(errand, at)
        return errand

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
        self._threads = ThreadPool(self.threads, "onthedot-callable", self._home)
        await self._other.__aenter__()
        logging.getLogger().addHandler(self._handler)
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._home is None or self._threads is None:
            return
        logging.getLogger().removeHandler(self._handler)
        await self._other.__aexit__(*exc)
        self._threads.close()
        self._home = None


class _Errand(msgspec.Struct, gc=False, eq=False):
    """One call, on its way to where it is carried out and back; if it may not begin any more when it gets there, it
    comes back without an outcome. Out of the collector's sight as the Monitor is, which lets go of it when it ends."""

    _all: Callables
    _function: Callable[..., Any] | None
    _call: Call
    _tell: Callable[[Outcome | None], None]
    _clock: Clock | None = None  # of one that was booked
    _awaitable: Any = None
    outcome: Outcome | None = None
    unwanted: bool = False
    lack: str | None = None
    began: float | None = None  # the next two: of one that was booked
    ended: float | None = None
    _is_home: bool = False

    @property
    def booked(self) -> bool:
        return self._clock is not None

    def withdraw(self) -> bool | None:
        other = self._all._other
        if self._clock is not None:
            if other.take_back(self):
                return False
            other.fetch()
            if self._is_home:
                return None
        other.withdraw(self)
        return None

    def take_back(self) -> bool:
        return self._all._other.take_back(self)

    def bring_home(self) -> None:
        if not self.unwanted:
            self._is_home = True
            if self.lack is not None:
                self._call.lacks(self.lack)
            self._tell(self.outcome)

    def tell_begun(self) -> bool:
        if self._is_home or self.unwanted:
            return True
        if self.began is None:
            return False
        if self._call.begun is not None:
            self._call.begun(self.began)
        return True

    async def carry_out(self) -> None:
        if self._awaitable is None and not self._call.may_begin():
            return
        if self._clock is not None:
            self.began = self._clock.monotonic()
        token = _log.set(self._write)  # this task's context only, and that of what it starts
        assert self._function is not None
        try:
            waits_for = self._awaitable
            self._succeeded(await (self._function(**self._call.params) if waits_for is None else waits_for))
        except BaseException as error:
            if self.unwanted and isinstance(error, asyncio.CancelledError):
                raise
            self._failed(error)
        finally:
            _log.reset(token)
            if self._clock is not None:
                self.ended = self._clock.monotonic()

    def carry_out_here(self) -> bool:
        return not self._call.may_begin() or contextvars.copy_context().run(self._in_thread)

    def _in_thread(self) -> bool:
        _log.set(self._write)
        assert self._function is not None
        try:
            result = self._function(**self._call.params)
            if result is not None and inspect.isawaitable(result):
                self._awaitable = result
                self._all._other.send_from_thread(self)
                return False
            self._succeeded(result)
        except BaseException as error:
            self._failed(error)
        return True

    def _succeeded(self, result: Any) -> None:
        self.outcome = _OK if result is None else Outcome(kind="ok", detail={"result": _json_or_repr(result)})

    def _failed(self, error: BaseException) -> None:
        self._write("".join(traceback.format_exception(error)))
        self.outcome = Outcome(kind="error", retryable=True, error=f"{type(error).__name__}: {error}")

    def _write(self, text: str) -> None:
        if self._all._home is not None:
            self._all._other.say(partial(self._log, text))

    def _log(self, text: str) -> None:
        """At home."""
        if self._clock is not None:
            self.tell_begun()
        self._call.log(text)


def _why_not(name: str, function: Callable[..., Any], params: dict[str, Any]) -> str | None:
    try:
        inspect.signature(function).bind(**params)
    except ValueError:  # it has no readable signature: the call will tell
        return None
    except TypeError as error:
        return f"the params do not fit {name}: {error}"
    return None


def _json_or_repr(result: Any) -> Any:
    try:
        return msgspec.json.decode(msgspec.json.encode(result))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return repr(result)[:10_000]
