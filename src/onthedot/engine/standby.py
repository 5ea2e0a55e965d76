"""Runs whose instant has come and that found no slot, by pool, in the order in which they came due."""

from __future__ import annotations

from onthedot.model.run import ClaimedRun

__all__ = ["Standby"]


class Standby:
    """False while nobody waits: then there is nothing else to ask it, and mostly nobody does."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[str, ClaimedRun]] = {}

    def __bool__(self) -> bool:
        return bool(self._runs)

    def __contains__(self, pool: str) -> bool:
        return pool in self._runs

    def add(self, pool: str, run: ClaimedRun) -> None:
        self._runs.setdefault(pool, {})[run.id] = run

    def first(self, pool: str) -> ClaimedRun:
        """Who waited longest waits no more."""
        return self._without(pool, next(iter(self._runs[pool])))

    def drop(self, pool: str, run_id: str) -> bool:
        """Whether it was waiting; it does no more."""
        if run_id not in self._runs.get(pool, ()):
            return False
        self._without(pool, run_id)
        return True

    def clear(self) -> None:
        self._runs.clear()

    def _without(self, pool: str, run_id: str) -> ClaimedRun:
        waiting = self._runs[pool]
        run = waiting.pop(run_id)
        if not waiting:
            del self._runs[pool]
        return run
