"""The engine: actors around the store that fire each run at its instant, and survive what happens meanwhile.

    hints → [Timer] ─tick, look→ [Dispatcher] ═ one per run ⇒ [Monitor] ═ starts ⇒ a call ─result→ [Recorder]
                                      ↑ orders, the end of the lease ── Keeper  (at-most-once: through the [BeginGate])

Who is who in the words of the design: the Timer is `claiming.Timer`, the Scheduler is `claiming.Dispatcher` (a class
`Scheduler` is what embedding programs use), the Task Monitor is `running.Monitor`, the Task is one call of a target.
The Recorder is `recording.Recorder`. The Keeper is the loops of `membership`: Heartbeat, OrderPoller (orders and the
time), FailureDetector (declares nodes lost and takes back their runs), LeaseEnd, Duties (maintenance).

Imports and messages go right only. What an actor on the left must know, it reads from a value that others write: the
due heap's head, the lease, the look times, the room of a pool; or it passed a function down, which is called back: a
kind asks its Monitor whether it may begin and tells it how the call ended, and a Monitor tells the Dispatcher that its
slot is free. docs/architecture.md lists all of those calls. Each actor is a mailbox or a signal, private state and one
loop that calls `step()`. Time, randomness, threads, the store and the targets come from outside, so that all of it runs
under a fake clock or a virtual-time loop. The numbers it is tuned by are in `tuning`.

`python -m bench.engine` measures what it costs without a store; docs/adr/0008 says what it was and what was left out.
"""

from __future__ import annotations

from onthedot.engine.node import Node
from onthedot.engine.settings import EngineSettings

__all__ = ["EngineSettings", "Node"]
