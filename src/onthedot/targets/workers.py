"""The pool of worker processes: started when needed, kept warm, never more than told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from onthedot.targets.worker import Worker

__all__ = ["Workers"]

CALLS_PER_WORKER = 1000  # what user code leaks is given back to the system now and then


class Workers:
    def __init__(self, processes: int, import_paths: Sequence[str], *, calls: int = CALLS_PER_WORKER) -> None:
        self._free = asyncio.Semaphore(processes)
        self._import_paths, self._calls = tuple(import_paths), calls
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._going: set[asyncio.Task[None]] = set()
        self._generation = 0

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in (*self._idle, *self._busy)]

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Worker]:
        """A worker for one call. If the call ends in any way but an answer, the worker is killed."""
        async with self._free:
            worker, generation = await self._take(), self._generation
            self._busy.add(worker)
            answered = False
            try:
                yield worker
                answered = True
            finally:
                self._busy.discard(worker)
                fit = answered and worker.alive and worker.calls < self._calls and generation == self._generation
                if fit:
                    self._idle.append(worker)
                else:
                    self._let_go(worker)

    async def _take(self) -> Worker:
        while self._idle:
            worker = self._idle.pop()  # the warmest
            if worker.ready:
                return worker
            self._let_go(worker)
        return await Worker.start(self._import_paths)

    def _let_go(self, worker: Worker) -> None:
        worker.kill()
        task = asyncio.ensure_future(worker.gone())
        self._going.add(task)
        task.add_done_callback(self._going.discard)

    async def refresh(self) -> None:
        """Replace every worker: idle ones now, busy ones when they are done."""
        self._generation += 1
        while self._idle:
            self._let_go(self._idle.pop())
        await asyncio.gather(*self._going)

    async def close(self) -> None:
        for worker in (*self._busy, *self._idle):
            self._let_go(worker)
        self._idle.clear()
        await asyncio.gather(*self._going)
