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
    code(
        "adoption: begins with its adoption",
        "work that was adopted is said to have begun when it was",
        "onthedot.engine.running.monitor:Monitor.begins",
        "context.time.at_us(at)",
        "context.time.at_us(context.clock.monotonic() if run.work else at)",
        faults=_DIE,
        focus=_OUTSIDE,
        shows=("time",),
    ),
    code(
        "adoption: ends when it began",
        "work that goes on without its node is said to have taken no time",
        "onthedot.engine.running.monitor:Monitor._finished",
        "finished_at = context.time.at_us(now) // 1000",
        "finished_at = (self._is_outside and started) or context.time.at_us(now) // 1000",
        focus=_OUTSIDE,
        shows=("time",),
    ),
    code(
        "adoption: as late as it was adopted",
        "work is said to have been late because its node died",
        "onthedot.engine.running.run_context:RunContext.finished",
        "lateness = first - run.due_at if first > run.due_at else 0",
        "lateness = max(0, (finished_at if run.work else first) - run.due_at)",
        faults=_DIE,
        focus=_OUTSIDE,
        shows=("time",),
    ),
    sql(
        "adoption: counts as a try",
        "each node that dies leaves its work a try less",
        "open_runs",
        "open = 'adopt', claimed_at",
        "open = 'adopt', tries = tries + 1, claimed_at",
        faults=_DIE,
        focus=_OUTSIDE,
        shows=("tries",),
    ),
    code(
        "adoption: of no node",
        "attempts are told as those of nobody, whoever recorded them",
        "onthedot.store.runs.finish_rows:Item._attempted_by",
        "self.node in (OPEN, CALLBACK)",
        "self.node",
        focus=Focus(outside=True, policy={"timeout": 800}),
        shows=("result",),
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
