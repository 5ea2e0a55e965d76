"""A thread with the scheduler's event loop, for programs that have none."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import logging
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

__all__ = ["BackgroundThread"]

_log = logging.getLogger("onthedot")


class BackgroundThread:
    """Enters the scheduler in a thread of its own, and leaves it when its engine has stopped."""

    def __init__(self, scheduler: AbstractAsyncContextManager[Any], wait: Callable[[], Any]) -> None:
        self._scheduler = scheduler
        self._wait = wait
        self._started: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._serve, name="onthedot-scheduler", daemon=True)

    def start(self) -> None:
        """Returns when it runs; raises what it could not start for."""
        self._thread.start()
        self._started.result()

    def join(self) -> None:
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _serve(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:
            if self._started.done():
                _log.exception("the scheduler stopped because of an error")
            else:
                self._started.set_exception(error)

    async def _live(self) -> None:
        async with self._scheduler:
            self._started.set_result(None)
            await self._wait()


def stop_at_exit(scheduler: Any) -> None:
    """When the program ends without `stop()`, what executes may end. As early as the pool of threads is told of the
    end, and before it: an `atexit` handler comes when no thread can be started any more."""
    weak = weakref.ref(scheduler)

    def stop() -> None:
        there = weak()
        if there is not None:
            there.stop()

    # private, but what `concurrent.futures` itself uses; there is no public hook that is early enough
    threading._register_atexit(stop)  # type: ignore[attr-defined]
