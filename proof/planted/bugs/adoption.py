"""Work that outlives its node, in the simulation: begun once, fenced, and ended by nobody but who may."""

from __future__ import annotations

from proof.planted.focus import Focus
from proof.planted.plant import code, sql

__all__ = ["BUGS"]

_OUTSIDE = Focus(outside=True)
_DIE = ("kill", "stop")

BUGS = (
    sql(
        "adoption: same token",
        "the node that was given up can still record a result",
        "adopt_runs",
        "token = token + 1",
        "token = token",
        faults=_DIE,
        focus=_OUTSIDE,
    ),
    code(
        "adoption: begun again",
        "who adopts a run starts its work a second time",
        "onthedot.engine.running.call:call_of",
        "try_number=run.tries + 1",
        "try_number=run.token",
        faults=_DIE,
        focus=_OUTSIDE,
    ),
    code(
        "adoption: a stop kills",
        "a node that stops in order ends what another could have gone on with",
        "onthedot.engine.running.monitor:Monitor._stop_call",
        "ask_to_stop(handle, self.cause)",
        'ask_to_stop(handle, "cancelled")',
        faults=_DIE,
        focus=_OUTSIDE,
    ),
    sql(
        "adoption: never adopted",
        "work that goes on is left to nobody",
        "adopt_runs",
        "c.open = 'adopt'",
        "c.open = 'never'",
        faults=_DIE,
        focus=_OUTSIDE,
    ),
    sql(
        "adoption: lane freed",
        "the next run of the lane starts beside work that goes on",
        "open_runs",
        "open = 'adopt', claimed_at",
        "open = 'adopt', lane = NULL, claimed_at",
        faults=_DIE,
        focus=Focus(outside=True, policy={"overlap": "queue"}, schedule={"every": 2000}),
    ),
)
