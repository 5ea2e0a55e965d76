"""The bugs, made systematically: what each of them breaks, and who must see it.

engine                   what somebody who built a scheduler made, or nearly made
claim cursor times       every branch of the decisions before a run begins
outcome                  … and after it; policies that are not followed
records                  results recorded as something else than what happened
claim_sql finish_sql verbs_sql   every clause of the statements (of SQLite, which the simulation runs on)
promises                 what was broken once, put back
clients                  what is done for nobody, answered twice, dated wrongly; skips, undeletes, pauses of everything
chains                   which jobs the end of a run starts
alerts                   who is told of what, once and within seconds
notes                    what the end of a run causes elsewhere
labels                   who takes what requires labels, and mailboxes
destinations             what waits for a destination, limits and breakers
groups                   what waits for its concurrency group
worker_shares            how many workers one job or tenant may have
open_runs outlives       work that goes on without a node: in the store, in the engine
queue intake             messages to brokers, and from them
callbacks                results that come later
commands                 what a killed node leaves behind
scripts                  holes in the sandbox of scripts
containers               containers that are run twice, found by nobody, or not allowed
kubernetes               the same for Jobs of a cluster
workflows                executions that are started twice, taken from others, or not stopped
adoption                 work that goes on without a node, in the simulation
postgres                 locks and fences that only PostgreSQL has
"""

from __future__ import annotations

from proof.planted.bugs import (
    adoption,
    alerts,
    callbacks,
    chains,
    claim,
    claim_sql,
    clients,
    commands,
    containers,
    cursor,
    destinations,
    engine,
    finish_sql,
    groups,
    intake,
    kubernetes,
    labels,
    notes,
    open_runs,
    outcome,
    outlives,
    postgres,
    promises,
    queue,
    records,
    scripts,
    times,
    verbs_sql,
    worker_shares,
    workflows,
)
from proof.planted.plant import Bug

__all__ = ["BUGS"]

BUGS: tuple[Bug, ...] = (
    *engine.BUGS,
    *claim.BUGS,
    *cursor.BUGS,
    *times.BUGS,
    *outcome.BUGS,
    *records.BUGS,
    *claim_sql.BUGS,
    *finish_sql.BUGS,
    *verbs_sql.BUGS,
    *notes.BUGS,
    *alerts.BUGS,
    *chains.BUGS,
    *labels.BUGS,
    *destinations.BUGS,
    *groups.BUGS,
    *worker_shares.BUGS,
    *open_runs.BUGS,
    *outlives.BUGS,
    *callbacks.BUGS,
    *commands.BUGS,
    *containers.BUGS,
    *kubernetes.BUGS,
    *workflows.BUGS,
    *adoption.BUGS,
    *promises.BUGS,
    *clients.BUGS,
    *queue.BUGS,
    *intake.BUGS,
    *scripts.BUGS,
    *postgres.BUGS,
)
