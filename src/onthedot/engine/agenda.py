"""The heap of claimed runs that wait for their instant."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from onthedot.model.run import ClaimedRun

__all__ = ["Agenda"]


class Agenda:
    """Keyed by the instant on the database's clock. A run that becomes the first to fire rings the Timer."""

    def __init__(self, earlier: Callable[[], None] = lambda: None) -> None:
        self._heap: list[tuple[int, int, ClaimedRun]] = []
        self._runs: dict[str, ClaimedRun] = {}
        self._order = itertools.count()
        self._earlier = earlier

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def head(self) -> int | None:
        """The next instant in ms, or None."""
        return self._heap[0][0] if self._heap else None

    def push(self, run: ClaimedRun, at_ms: int) -> None:
        head = self.head
        self._runs[run.id] = run
        heapq.heappush(self._heap, (at_ms, next(self._order), run))
        self._skip_removed()  # it may have taken the place of one with its name
        if head is None or at_ms < head:
            self._earlier()

    def pop(self, now_us: int) -> ClaimedRun | None:
        """The first run whose instant has come, if any."""
        heap = self._heap
        if not heap or heap[0][0] * 1000 > now_us:
            return None
        run = heapq.heappop(heap)[2]
        del self._runs[run.id]
        self._skip_removed()
        return run

    def remove(self, run_id: str) -> ClaimedRun | None:
        """Recalled or cancelled before its instant."""
        run = self._runs.pop(run_id, None)
        self._skip_removed()
        return run

    def get(self, run_id: str) -> ClaimedRun | None:
        return self._runs.get(run_id)

    def clear(self) -> list[ClaimedRun]:
        runs = list(self._runs.values())
        self._runs.clear()
        self._heap.clear()
        return runs

    def _skip_removed(self) -> None:
        """So that the head is always one that will fire: it is asked for more often than it changes."""
        heap, runs = self._heap, self._runs
        while heap and runs.get(heap[0][2].id) is not heap[0][2]:
            heapq.heappop(heap)
