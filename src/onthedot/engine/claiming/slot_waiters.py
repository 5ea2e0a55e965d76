"""Runs whose instant has come and that found no slot, by pool, in the order in which they came due; or no room at their
destination, by what they would require if they waited for it in the store."""

from __future__ import annotations

from onthedot.model.run import ClaimedRun

__all__ = ["SlotWaiters"]


class SlotWaiters(dict[str, dict[str, ClaimedRun]]):
    """By pool and run; a pool that nobody waits for is not in it. Mostly it is empty, and then that is all to know."""

    def add(self, pool: str, run: ClaimedRun) -> None:
        self.setdefault(pool, {})[run.id] = run

    def peek(self, pool: str) -> ClaimedRun:
        """Who waits longest."""
        return next(iter(self[pool].values()))

    def first(self, pool: str) -> ClaimedRun:
        """Who waited longest waits no more."""
        return self._without(pool, next(iter(self[pool])))

    def drop(self, pool: str, run_id: str) -> bool:
        """Whether it was waiting; it does no more."""
        if run_id not in self.get(pool, ()):
            return False
        self._without(pool, run_id)
        return True

    def _without(self, pool: str, run_id: str) -> ClaimedRun:
        waiting = self[pool]
        run = waiting.pop(run_id)
        if not waiting:
            del self[pool]
        return run
