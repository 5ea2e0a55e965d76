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
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import msgspec

from onthedot.errors import Invalid
from onthedot.model.run import Outcome
from onthedot.model.target import FunctionTarget, requires
from onthedot.targets.call import Call
from onthedot.targets.other_loop import OtherLoop
from onthedot.targets.registry import names

__all__ = ["Callables"]

_log: contextvars.ContextVar[Callable[[str], None] | None] = contextvars.ContextVar("onthedot_log", default=None)


class _RunLog(logging.Handler):
    """Passes what is logged inside a call on to that call's run."""

    def emit(self, record: logging.LogRecord) -> None:
        write = _log.get()
        if write is not None:
            write(self.format(record) + "\n")


class Callables:
    """The kind `function` of an embedded Scheduler: what was registered by name."""

    def __init__(self, *, threads: int = 32) -> None:
        self._functions: dict[str, Callable[..., Any]] = {}
        self.offers: list[str] = []
        self.threads = threads
        self._signatures: dict[Callable[..., Any], inspect.Signature | None] = {}
        self._other = OtherLoop("onthedot-callables")
        self._home: asyncio.AbstractEventLoop | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._handler = _RunLog()
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def register(self, name: str, function: Callable[..., Any]) -> None:
        """Also while running. The name is what jobs call it by, "module:function" or as `model.checks` accepts it."""
        known = self._functions.setdefault(name, function)
        if known is not function:
            raise ValueError(f"{name!r} is registered already, for another callable")
        offer = requires(FunctionTarget(function=name))
        if offer not in self.offers:  # a new list: whoever has the old one can tell that something changed
            self.offers = [*self.offers, offer]

    def check(self, target: FunctionTarget) -> None:
        if target.function not in self._functions:
            accepted = names(list(self._functions))
            raise Invalid.one("target.function", "is not registered", given=target.function, accepted=accepted)

    async def send(self, call: Call) -> Outcome:
        assert isinstance(call.target, FunctionTarget)
        assert self._home is not None, "not entered"
        function = self._functions.get(call.target.function)
        if function is None:
            return Outcome(kind="refused", error=f"{call.target.function} is not registered in this program")
        signature = self._signature(function)
        try:
            if signature is not None:
                signature.bind(**call.params)
        except TypeError as error:
            return Outcome(kind="error", error=f"the params do not fit {call.target.function}: {error}")
        heard = _from_thread(self._home, call.log)
        return await self._other.run(lambda: self._call(function, call, heard))

    def _signature(self, function: Callable[..., Any]) -> inspect.Signature | None:
        """Read once: it takes longer than many a call. None: it has no readable one, and the call will tell."""
        if function not in self._signatures:
            try:
                self._signatures[function] = inspect.signature(function)
            except ValueError:
                self._signatures[function] = None
        return self._signatures[function]

    async def _call(self, function: Callable[..., Any], call: Call, log: Callable[[str], None]) -> Outcome:
        _log.set(log)  # this task's context only, and that of what it starts
        try:
            if inspect.iscoroutinefunction(function):
                result = await function(**call.params)
            else:
                context = contextvars.copy_context()
                loop = asyncio.get_running_loop()
                result = await loop.run_in_executor(self._pool, lambda: context.run(function, **call.params))
                if inspect.isawaitable(result):
                    result = await result
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            log("".join(traceback.format_exception(error)))
            return Outcome(kind="error", retryable=True, error=f"{type(error).__name__}: {error}")
        return Outcome(kind="ok", detail={} if result is None else {"result": _json_or_repr(result)})

    async def __aenter__(self) -> Self:
        self._home = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="onthedot-callable")
        await self._other.__aenter__()
        logging.getLogger().addHandler(self._handler)
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._home is None or self._pool is None:
            return
        logging.getLogger().removeHandler(self._handler)
        await self._other.__aexit__(*exc)
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._home = None


def _from_thread(home: asyncio.AbstractEventLoop, log: Callable[[str], None]) -> Callable[[str], None]:
    def write(text: str) -> None:
        if not home.is_closed():
            home.call_soon_threadsafe(log, text)

    return write


def _json_or_repr(result: Any) -> Any:
    try:
        return msgspec.json.decode(msgspec.json.encode(result))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return repr(result)[:10_000]
