"""The heap of claimed runs that wait for their instant."""

from __future__ import annotations

import heapq
import itertools

from onthedot.engine.mailbox import Signal
from onthedot.model.run import ClaimedRun

__all__ = ["DueHeap"]


class DueHeap:
    """Keyed by the instant on the database's clock. A run that becomes the first to fire sets `wake`.

    `head` is the next instant in ms, or None: never that of a run that was removed. It is read several times for each
    time that it changes, and what a firing touches after a rest has to come from memory."""

    def __init__(self, wake: Signal | None = None) -> None:
        """`wake`: set when whoever sleeps until `head` has to sleep for less."""
        self._heap: list[tuple[int, int, ClaimedRun, bool]] = []
        self._runs: dict[str, ClaimedRun] = {}
        self._order = itertools.count()
        self._wake = wake or Signal()
        self.head: int | None = None
        self._head_may_leave = False

    def __len__(self) -> int:
        return len(self._runs)

    def push(self, run: ClaimedRun, at_ms: int, *, may_leave: bool = False) -> None:
        """`may_leave`: it can be taken out before `at_ms`, together with others."""
        is_first = self.head is None or at_ms < self.head
        has_namesake = run.id in self._runs  # whose place it takes
        self._runs[run.id] = run
        heapq.heappush(self._heap, (at_ms, next(self._order), run, may_leave))
        if is_first or has_namesake:
            self._find_head()
        if is_first:
            self._wake.set()

    def pop(self, now_us: int, leaves_us: int = 0) -> ClaimedRun | None:
        """The first run, if its instant has come; or if it may leave before, and that instant has."""
        head = self.head
        if head is None or (head * 1000 > now_us and not (self._head_may_leave and head * 1000 <= leaves_us)):
            return None
        run = heapq.heappop(self._heap)[2]
        del self._runs[run.id]
        self._find_head()
        return run

    def remove(self, run_id: str) -> ClaimedRun | None:
        """Recalled or cancelled before its instant."""
        run = self._runs.pop(run_id, None)
        if run is not None and self._heap[0][2] is run:
            self._find_head()
        return run

    def get(self, run_id: str) -> ClaimedRun | None:
        return self._runs.get(run_id)

    def clear(self) -> list[ClaimedRun]:
        runs = list(self._runs.values())
        self._runs.clear()
        self._heap.clear()
        self.head = None
        return runs

    def _find_head(self) -> None:
        heap, runs = self._heap, self._runs
        while heap and runs.get(heap[0][2].id) is not heap[0][2]:
            heapq.heappop(heap)
        if heap:
            self.head, _, _, self._head_may_leave = heap[0]
        else:
            self.head = None
