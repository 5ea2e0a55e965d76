"""The engine: actors around the store that fire each run at its instant, and survive what happens meanwhile.

    hints → [Timer] ─Tick, Look→ [Scheduler] ═ one per run ⇒ [Monitor] ═ awaits ⇒ [Task] ─Result→ [Recorder]
                                     ↑ Orders ── [NewsReader]        (at-most-once: through the [Gate] first)
    [Heart] beats, [NewsReader] asks for orders and the time, [Watchman] declares the lost and takes back their runs,
    [Duties] keeps house, [LogFiles] writes logs

Each actor is a mailbox, private state and one loop that calls `step()`. Time, randomness, threads, the store and the
targets come from outside, so that all of it runs under a fake clock or a virtual-time loop.

`python -m bench.engine` measures what it costs without a store; docs/adr/0008 says what it was and what was left out.
"""

from __future__ import annotations

from onthedot.engine.node import Node
from onthedot.engine.running.task import Sender
from onthedot.engine.settings import EngineSettings

__all__ = ["EngineSettings", "Node", "Sender"]
