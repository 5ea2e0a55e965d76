"""Runs whose instant has come and that can't start: there is no slot, or their destination has no room. They wait here
for a moment, each in the due heap too, until its wait is over.

It starts nothing: it says who is next, and the Dispatcher starts them one by one, because each start changes what room
there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

from onthedot.engine.claiming.capacity import Capacity, pool_of
from onthedot.engine.claiming.due_heap import DueHeap
from onthedot.engine.claiming.slot_waiters import SlotWaiters
from onthedot.engine.running.destinations import Admission, CallPlace, Destinations
from onthedot.engine.running.slot_pool import SlotPool
from onthedot.engine.tuning import NO_SLOT_MS, PLACE_SOON_MS
from onthedot.model.run import ClaimedRun

__all__ = ["WaitState", "WaitingRuns"]

Next = tuple[ClaimedRun, CallPlace | None, Admission]
"""Who waits no more, whom it calls, and whether it may: GO, then it has a slot if it takes it now; or SHUT."""


class WaitState(Enum):
    """Of a run that the due heap brings."""

    NOT_WAITING = auto()  # it has just come due
    WAITS_ON = auto()
    NO_SLOT = auto()  # it waited in vain, and not for its destination: another node may have a slot
    NO_ROOM = auto()  # its destination does not get through those that wait for it


class WaitingRuns:
    def __init__(self, due_heap: DueHeap, slots: Capacity, destinations: Destinations) -> None:
        self._due_heap = due_heap
        self._slots = slots
        self._destinations = destinations
        self._waiters = SlotWaiters()  # by the name of the pool, or what they would require in the store

    def __bool__(self) -> bool:
        return bool(self._waiters)

    def add(self, run: ClaimedRun, pool: SlotPool, now: int, place: CallPlace | None = None) -> None:
        """It waits for a slot, or for room at `place`."""
        self._waiters.add(pool.name if place is None else place.requires, run)
        wait_ms = NO_SLOT_MS
        if place is not None and self._destinations.keeps_up(place, len(self._waiters[place.requires]), sure=True):
            wait_ms = PLACE_SOON_MS
        self._due_heap.push(run, now + wait_ms)

    def drop(self, run: ClaimedRun, pool: SlotPool) -> None:
        """Nobody wants it to start any more."""
        if self._waiters and not self._waiters.drop(pool.name, run.id):
            place = self._destinations.of(run)
            if place is not None:
                self._waiters.drop(place.requires, run.id)

    def clear(self) -> None:
        self._waiters.clear()

    def due_again(self, run: ClaimedRun, pool: SlotPool, now: int) -> WaitState:
        """The heap has brought it. If it waits and may wait on, it is in the heap again; else it waits no more."""
        if self._waiters.drop(pool.name, run.id):
            pool.stuck()
            return WaitState.NO_SLOT
        place = self._destinations.of(run)
        if place is None or run.id not in (waiting := self._waiters.get(place.requires, {})):
            return WaitState.NOT_WAITING
        has_room = self._destinations.admits(place, pool) is Admission.GO
        if not has_room and place.breaker.since is None and self._destinations.keeps_up(place, len(waiting)):
            self._due_heap.push(run, now + NO_SLOT_MS)
            return WaitState.WAITS_ON
        self._waiters.drop(place.requires, run.id)
        if has_room:  # what it lacks is a slot
            pool.stuck()
            return WaitState.NO_SLOT
        return WaitState.NO_ROOM

    def all_next(self) -> Iterator[tuple[SlotPool, Next]]:
        """Those of every pool and destination."""
        for key in list(self._waiters):
            pool = self._slots.of(pool_of(key))
            place = None if key == pool.name else self._destinations.of(self._waiters.peek(key))
            for found in self._for_slot(pool) if place is None else self._for_room(place, pool):
                yield pool, found

    def next(self, pool: SlotPool, place: CallPlace | None) -> Iterator[tuple[SlotPool, Next]]:
        """A slot of this pool, and room at this destination, came free: those who wait for the destination first."""
        if place is not None and place.requires in self._waiters:
            for found in self._for_room(place, pool):
                yield pool, found
        for found in self._for_slot(pool):
            yield pool, found

    def _for_slot(self, pool: SlotPool) -> Iterator[Next]:
        """In the order in which they came due, as many as there are slots. If its destination has no room, it waits
        for that."""
        while pool.name in self._waiters and pool.has_slot:
            run = self._waiters.first(pool.name)
            place = self._destinations.of(run)
            if place is None or self._destinations.admits(place, pool) is Admission.GO:
                self._due_heap.remove(run.id)
                yield run, place, Admission.GO
            else:
                self._waiters.add(place.requires, run)

    def _for_room(self, place: CallPlace, pool: SlotPool) -> Iterator[Next]:
        """If its breaker has opened meanwhile, they all go."""
        while place.requires in self._waiters:
            admission = self._destinations.admits(place, pool)
            if admission is Admission.FULL or (admission is Admission.GO and not pool.has_slot):
                break
            run = self._waiters.first(place.requires)
            self._due_heap.remove(run.id)
            yield run, place, admission
