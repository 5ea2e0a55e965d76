"""Threads that carry out what blocks, no more of them than are needed at a time.

A thread that takes something wakes the next one before it begins, if more is waiting: calls that block are spread over
as many threads as they need, and calls that end at once are all done by the first before the second has got its turn
at the interpreter lock. (An executor starts a thread for each while all are busy, and wakes the loop for each answer:
with up to 1,000 threads a no-op cost 129 µs of the process, here 18-21, engine included.)
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from queue import SimpleQueue
from typing import Protocol

from onthedot.targets.exhaustion import lack_of

__all__ = ["PoolWork", "ThreadPool"]


class PoolWork(Protocol):
    lack: str | None  # set here, if there is no thread to be had: it comes home without having been carried out

    def carry_out_here(self) -> bool:
        """In a thread; keeps its own result and never raises. False: it goes on elsewhere."""
        ...

    def bring_home(self) -> None:
        """On the loop it came from, when it is carried out."""
        ...


class ThreadPool:
    def __init__(self, most: int, name: str, home: asyncio.AbstractEventLoop) -> None:
        self._most = most
        self._name = name
        self._home = home
        self._waiting: deque[PoolWork] = deque()
        self._carried_out: deque[PoolWork] = deque()
        self._announced = False
        self._wake_ups: SimpleQueue[bool] = SimpleQueue()
        self._state = threading.Lock()  # of the three below
        self._threads = 0
        self._idle = 0
        self._waking = False

    def send(self, work: PoolWork) -> None:
        self._waiting.append(work)
        if not self._waking:
            self._wake()

    def take_back(self, work: PoolWork) -> bool:
        """Whether it has not begun; then it will not. One step under the interpreter's lock, as taking it to begin."""
        try:
            self._waiting.remove(work)
        except ValueError:
            return False
        return True

    def close(self) -> None:
        """Threads end when their call does; a call can't be ended from outside, so nobody waits."""
        self._waiting.clear()
        with self._state:
            self._most = 0
            for _ in range(self._threads):
                self._wake_ups.put(False)

    def _wake(self) -> None:
        with self._state:
            if self._waking:
                return
            if self._idle:
                self._waking = True
                self._wake_ups.put(True)
            elif self._threads < self._most:
                self._waking = True
                self._threads += 1
                name = f"{self._name}_{self._threads}"
                try:
                    threading.Thread(target=self._serve, name=name, daemon=True).start()
                except (RuntimeError, MemoryError) as error:
                    self._threads -= 1
                    self._waking = False
                    if not self._threads:  # nobody will ever come
                        self._turn_away(lack_of(error, starting=True) or str(error))

    def _turn_away(self, lack: str) -> None:
        while self._waiting:
            work = self._waiting.popleft()
            work.lack = lack
            self._carried_out.append(work)
        self._announce()

    def _serve(self) -> None:
        while True:
            self._waking = False
            self._carry_out_what_waits()
            with self._state:
                if self._waiting:
                    continue
                self._idle += 1
            goes_on = self._wake_ups.get()
            with self._state:
                self._idle -= 1
                if not goes_on:
                    self._threads -= 1
                    return

    def _carry_out_what_waits(self) -> None:
        while True:
            try:
                work = self._waiting.popleft()
            except IndexError:
                return
            if self._waiting and not self._waking:
                self._wake()
            if work.carry_out_here():
                self._carried_out.append(work)
                self._announce()

    def _announce(self) -> None:
        if not self._announced and not self._home.is_closed():
            self._announced = True
            self._home.call_soon_threadsafe(self._bring_home)

    def _bring_home(self) -> None:
        self._announced = False  # before the first is taken: what comes from here on announces itself
        while self._carried_out:
            self._carried_out.popleft().bring_home()
