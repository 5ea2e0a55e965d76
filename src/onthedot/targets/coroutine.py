"""Kinds that are one coroutine: `async def send(call) -> Outcome`.

Cancelled is how it learns that it is to stop; `call.stopped` says why, which a kind must read whose work goes on
without the node. Where it did not get as far as beginning, it answers NOT_BEGUN instead of an outcome.

A kind whose work survives the node tells by `call.begun` when that began; until then the call has not. Asked to kill
what it adopted, it is cancelled no earlier than at its first wait, so that it can.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from onthedot.model.run import Outcome
from onthedot.targets.contract import NOT_BEGUN, Call, Cause, Done, Ended, Handle, Kind, Profile, Stop, failed_try

__all__ = ["CoroutineKind", "Send", "from_coroutine", "take_cancel"]

Send = Callable[[Call], Awaitable[Outcome | Ended]]


def take_cancel() -> None:
    """For who has caught CancelledError and goes on, to tidy up: now `asyncio.timeout` works again. In a task that
    counts as cancelled, Python before 3.11.3 raises CancelledError instead of TimeoutError when the time is up, which
    looks like being asked to stop a second time."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()


class CoroutineKind(Kind):
    """Each call is a task of its own."""

    @abstractmethod
    async def send(self, call: Call) -> Outcome | Ended: ...

    def start(self, call: Call, at: float, done: Done) -> Handle:
        if self.profile.survives_node:
            return _SurvivingTask(self.send, self.recorded, call, at, done)
        return _SendTask(self.send, call, at, done)

    def recorded(self, call: Call) -> None:
        """The result of this call is committed: what it started may be removed. For kinds that survive."""


class _SendTask:
    """One send. What raises is a failed try; only our own cancelling is none."""

    __slots__ = ("_at", "_begun", "_call", "_done", "_send", "_task")

    def __init__(self, send: Send, call: Call, at: float, done: Done) -> None:
        self._send = send
        self._call = call
        call.log = partial(_log_text, call.log)
        self._at = at
        self._done: Done | None = done
        self._begun = False
        # Not `create_task`: a program's own task factory may take the first step at once, before we have returned.
        self._task: asyncio.Task[None] | None = asyncio.Task(self._run(), loop=asyncio.get_running_loop())

    def stop(self, cause: Cause) -> Stop:
        task = self._task
        if task is None:
            return Stop.ENDED
        if not self._begun:  # a task that is cancelled before its first step never takes it
            self._task = self._done = None
            task.cancel()
            return Stop.NOT_BEGUN
        if cause != "recalled":
            self._call.stopped = cause
            task.cancel()
        return Stop.STOPPING

    def recorded(self) -> None:
        """Nothing is left of it."""

    async def _run(self) -> None:
        call = self._call
        if not self._may_begin():
            self._end(NOT_BEGUN)
            return
        self._begun = True
        self._begin()
        try:
            answer = await self._send(call)
        except asyncio.CancelledError as error:
            stopped = call.stopped is not None
            self._end(Ended(None if stopped else failed_try(error), self._began()))
            if not stopped:
                raise
        except (Exception, SystemExit) as error:  # what a plug-in raises must not end the loop, and with it the node
            self._end(Ended(failed_try(error), self._at))
        else:
            self._end(answer if isinstance(answer, Ended) else Ended(_checked(answer), self._at))

    def _may_begin(self) -> bool:
        return self._call.may_begin()

    def _begin(self) -> None:
        self._call.begun(self._at)

    def _began(self) -> float | None:
        """Of a call that was stopped."""
        return self._at

    def _end(self, ended: Ended) -> None:
        done, self._done, self._task = self._done, None, None  # a finished task must not hold on to itself
        if done is not None:
            done(ended)


def _log_text(log: Callable[[str], None], text: str) -> None:
    """What is no text is the mistake of who logs it, and is told there: in the log itself it would end the node."""
    if not isinstance(text, str):
        raise TypeError(f"call.log() takes text, not {type(text).__name__}")
    log(text)


def _checked(answer: Any) -> Outcome:
    """A plug-in may have forgotten to answer; no outcome at all would mean that it was stopped. Structs do not look at
    what they are made of."""
    if not isinstance(answer, Outcome):
        return failed_try(TypeError(f"send() returned {type(answer).__name__}, not an Outcome"))
    try:
        msgspec.convert(msgspec.structs.asdict(answer), Outcome)
    except msgspec.ValidationError as error:
        return failed_try(TypeError(f"send() returned an Outcome that is wrong: {error}"))
    return answer


_KILLS = ("cancelled", "timeout")


class _SurvivingTask(_SendTask):
    """One send of a kind whose work goes on without it."""

    __slots__ = ("_has_begun", "_recorded", "_tell")

    def __init__(self, send: Send, recorded: Callable[[Call], None], call: Call, at: float, done: Done) -> None:
        self._recorded = recorded
        self._has_begun = False
        self._tell, call.begun = call.begun, self._tell_begun
        super().__init__(send, call, at, done)

    def stop(self, cause: Cause) -> Stop:
        if self._task is not None and not self._begun and self._call.adopted and cause in _KILLS:
            self._call.stopped = cause
            asyncio.get_running_loop().call_soon(self._task.cancel)  # after its first step, which is on its way
            return Stop.STOPPING
        return super().stop(cause)

    def recorded(self) -> None:
        self._recorded(self._call)

    def _may_begin(self) -> bool:
        """What is to be killed has to be found."""
        return self._call.stopped is not None or super()._may_begin()

    def _begin(self) -> None:
        """Only `send` knows when."""

    def _tell_begun(self, at: float) -> None:
        self._has_begun, self._at = True, at
        self._tell(at)

    def _began(self) -> float | None:
        """None: it was stopped before anything of it was found or made. Of what was adopted, and is killed, nothing is
        left then."""
        killed = self._call.adopted and self._call.stopped in _KILLS
        return self._at if self._has_begun or killed else None


class _FromCoroutine(CoroutineKind):
    def __init__(
        self, send: Send, spec: type[Any], capabilities: Callable[[], Sequence[str]] | None, profile: Profile
    ) -> None:
        self._send = send
        self._capabilities = capabilities
        self.spec = spec
        self.profile = profile

    def capabilities(self) -> list[str]:
        return super().capabilities() if self._capabilities is None else list(self._capabilities())

    async def send(self, call: Call) -> Outcome | Ended:
        return await self._send(call)


def from_coroutine(
    send: Send,
    *,
    spec: type[Any],
    capabilities: Callable[[], Sequence[str]] | None = None,
    profile: Profile | None = None,
) -> Kind:
    """A kind of target out of one coroutine function; `spec` is the struct of its targets. `capabilities`: the name of
    the kind alone, unless given."""
    return _FromCoroutine(send, spec, capabilities, profile or Profile())
