"""What happens when this machine has run out of something (file descriptors, processes, memory) and a run goes back
unsent: fewer of its kind at a time, for a while, and no claims for a moment. Other nodes may have room for it."""

from __future__ import annotations

from onthedot.clock import Clock
from onthedot.engine.look_times import LookTimes
from onthedot.engine.running.slot_pool import SlotPool
from onthedot.engine.tuning import PAUSE_WHEN_SHORT
from onthedot.telemetry import emit

__all__ = ["Shortage"]


class Shortage:
    def __init__(self, clock: Clock, look_times: LookTimes) -> None:
        self._clock = clock
        self._look_times = look_times

    def of(self, pool: SlotPool, what: str) -> None:
        if pool.squeeze(self._clock.monotonic(), what):
            emit("node.short", kind=pool.name, what=what, capacity=pool.capacity)
        self._look_times.pause(PAUSE_WHEN_SHORT)
