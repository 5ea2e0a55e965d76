"""No job has all workers of a node (ADR 0034). What goes beyond its share waits, however long that takes, but only
while the job has its share of each node all the time."""

from __future__ import annotations

from itertools import pairwise

from proof.checker.ledger import Live
from proof.checker.story import Story

__all__ = ["had_its_share"]

STRETCH = 5000
"""ms: in each such part of the time the share was in use."""
FULL = 0.9
"""Of the share's time in a stretch: between the end of one call and the next lies a look at the database."""


def had_its_share(story: Story, live: Live, *, since: int) -> bool:
    """Whether this run was turned away because its job had its share of the workers, and the job has had that on all
    nodes from this true time until the end."""
    if not any(wait.host == f"job:{live.job}" for wait in story.waits.get(live.id, ())):
        return False
    workers, end = story.ledger.slots.get("function", 0), story.ledger.at
    share = (workers - max(1, workers // 4)) * story.ledger.nodes
    calls = [
        (turn.send.at, turn.send.at + turn.send.took if turn.recorded is None else turn.recorded.at)
        for turns in story.lives.turns.values()
        for turn in turns.values()
        if turn.send is not None and turn.send.job == live.job
    ]
    parts = max(1, (end - since) // STRETCH)
    ends = [since + (end - since) * part // parts for part in range(parts + 1)]
    return all(
        sum(max(0, min(over, until) - max(begun, begin)) for begun, over in calls) >= FULL * share * (until - begin)
        for begin, until in pairwise(ends)
    )
