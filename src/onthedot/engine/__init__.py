"""The engine: actors around the store that fire each run at its instant, and survive what happens meanwhile.

    hints → [Timer] ─Tick, Look→ [Scheduler] ═ one per run ⇒ [Monitor] ═ awaits ⇒ [Task] ─Result→ [Recorder]
                                     ↑ Orders ── [OrderReader]       (at-most-once: through the [Gate] first)
    [Heart] beats, [ClockReader] asks the time, [Watchman] declares the lost and takes back their runs, [Duties] keeps
    house, [LogFiles] writes logs

Each actor is a mailbox, private state and one loop that calls `step()`. Time, randomness, threads, the store and the
targets come from outside, so that all of it runs under a fake clock or a virtual-time loop.

Measured with a target that does nothing (Python 3.11, a 2-core machine that had other work): the engine itself takes
18-24 µs of a core a run; draining 20,000 due timers takes 75-80 µs of the process a run on PostgreSQL and 115 µs on
SQLite, store included. Timers and every-second cron fired 0.3-1.2 ms late in the median, never early.
"""

from __future__ import annotations

from onthedot.engine.node import Node
from onthedot.engine.settings import EngineSettings
from onthedot.engine.task import Sender

__all__ = ["EngineSettings", "Node", "Sender"]
