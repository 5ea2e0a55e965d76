"""Functions of the program that want to know what became of its runs: `@scheduler.on("failed")`.

They are called one after the other in a thread of their own, so that a slow one delays no run. Async ones run on a loop
there. What they raise is logged.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal, get_args

import msgspec

from onthedot.errors import Invalid
from onthedot.telemetry import Event, Telemetry

__all__ = ["NOTICES", "Listeners", "NoticeKind", "RunNotice"]

NoticeKind = Literal["done", "failed", "dead", "late"]
NOTICES: tuple[str, ...] = get_args(NoticeKind)
LATE_MS = 1000
WAITING = 10_000
"""Notices that wait for a listener; more than that are dropped, with a line in the log."""
AT_THE_END = 5.0
"""Seconds for listeners to come to an end when the scheduler stops."""

_log = logging.getLogger("onthedot")


class RunNotice(msgspec.Struct, frozen=True, kw_only=True):
    """What a listener is told. `done`: the run has succeeded. `failed`: an attempt has failed, and may be retried.
    `dead`: the last attempt has failed. `late`: the run began later than it should have."""

    kind: NoticeKind
    run_id: str
    job_id: int
    job_key: str | None
    error: str | None = None
    tries: int | None = None  # of `failed`, if it is retried: attempts so far
    lateness_ms: int | None = None
    duration_ms: int | None = None


Listener = Callable[[RunNotice], Any]


class Listeners:
    def __init__(self) -> None:
        self._by_kind: dict[str, list[tuple[Listener, int]]] = {}
        self._telemetry: Telemetry | None = None
        self._engine: asyncio.AbstractEventLoop | None = None
        self._subscribed: Callable[[], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waiting = 0
        self._dropped = 0

    def add(self, kind: str, listener: Listener, late_ms: int = LATE_MS) -> None:
        """Also while the scheduler runs."""
        if kind not in NOTICES:
            raise Invalid.one("on", "not an event", given=kind, accepted=", ".join(NOTICES))
        self._by_kind.setdefault(kind, []).append((listener, late_ms))
        self._subscribe()

    @asynccontextmanager
    async def listening(self, telemetry: Telemetry) -> AsyncIterator[None]:
        """On the engine's loop, around the engine: what it tells at its end is heard."""
        self._telemetry, self._engine = telemetry, asyncio.get_running_loop()
        self._subscribe()
        try:
            yield
        finally:
            self._telemetry = None
            if self._subscribed is not None:
                self._subscribed()
                self._subscribed = None
            await asyncio.to_thread(self._end)

    def _subscribe(self) -> None:
        """Nobody listens: then the engine need not tell."""
        if self._telemetry is None or not self._by_kind or self._subscribed is not None:
            return
        loop = self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, args=(loop,), name="onthedot-listeners", daemon=True)
        self._thread.start()
        self._subscribed = self._telemetry.subscribe(self._heard)

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        loop.close()

    def _end(self) -> None:
        loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(self._finish(), loop).result(AT_THE_END)
        except TimeoutError:
            _log.warning("listeners did not end within %g s", AT_THE_END)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(AT_THE_END)

    async def _finish(self) -> None:
        """What was told before is done by now, as far as it is not async."""
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    # on the engine's thread

    def _heard(self, event: Event) -> None:
        if event.name not in _INTERESTING or not self._is_ours():
            return
        for notice in _notices(event):
            for listener, late_ms in self._by_kind.get(notice.kind, ()):
                if notice.kind != "late" or (notice.lateness_ms or 0) > late_ms:
                    self._pass_on(listener, notice)

    def _is_ours(self) -> bool:
        """Another scheduler of this process, in another thread, tells the same bus."""
        try:
            return asyncio.get_running_loop() is self._engine
        except RuntimeError:
            return False

    def _pass_on(self, listener: Listener, notice: RunNotice) -> None:
        if self._loop is None:
            return
        if self._waiting >= WAITING:
            self._dropped += 1
            if self._dropped == 1 or self._dropped % WAITING == 0:
                _log.error("listeners are too slow: %d notices were dropped", self._dropped)
            return
        self._waiting += 1
        self._loop.call_soon_threadsafe(self._call, listener, notice)

    # on the listeners' thread

    def _call(self, listener: Listener, notice: RunNotice) -> None:
        self._waiting -= 1
        try:
            answer = listener(notice)
        except Exception:
            _log.exception("the listener %r for %r failed", listener, notice.kind)
            return
        if asyncio.iscoroutine(answer):
            task = asyncio.get_running_loop().create_task(self._await(answer, listener, notice))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _await(self, answer: Any, listener: Listener, notice: RunNotice) -> None:
        try:
            await answer
        except Exception:
            _log.exception("the listener %r for %r failed", listener, notice.kind)


_INTERESTING = frozenset({"run.started", "run.retried", "run.finished"})


def _notices(event: Event) -> list[RunNotice]:
    fields = event.fields
    names: dict[str, Any] = {"run_id": fields["run_id"], "job_id": fields["job_id"], "job_key": fields.get("key")}
    if event.name == "run.started":
        return [RunNotice(kind="late", lateness_ms=fields["lateness_ms"], **names)]
    if event.name == "run.retried":
        return [RunNotice(kind="failed", error=fields["error"], tries=fields["tries"], **names)]
    took = {"lateness_ms": fields["lateness_ms"], "duration_ms": fields["duration_ms"]}
    if fields["status"] == "DONE":
        return [RunNotice(kind="done", **names, **took)]
    if fields["status"] == "FAILED":
        return [
            RunNotice(kind="failed", error=fields["error"], **names, **took),
            RunNotice(kind="dead", error=fields["error"], **names, **took),
        ]
    return []
