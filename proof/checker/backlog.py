"""What is over a minute late, backfilled or redriven is the backlog: it has a share of each node's slots, and waits for
that, whoever else has nothing to do. So no retry of it is owed at an instant; but none waits while the share is
free."""

from __future__ import annotations

import functools
from itertools import pairwise

from proof.checker.lives import Turn
from proof.checker.story import Story
from proof.model.rules import MINUTE

__all__ = ["backlog_was_full"]

STRETCH = 1600
"""ms, or a little more: in each such part of the wait the share was in use."""
FULL = 0.5
"""Of the share's time in a stretch: what is on time comes first and may have all slots of a node, and between the end
of one run and the claim of the next lies a look at the database."""


def backlog_was_full(story: Story, turn: Turn, ready: int) -> bool:
    """Whether this claim, which might have been made at `ready`, was one of the backlog, and all that time the backlog
    had no room on any node."""
    kind = _kind_of_run(story, turn)
    each = story.ledger.slots.get(kind, 0)
    share = max(1, each * 3 // 4) * story.ledger.nodes
    if not each or not _late(story, turn):
        return False
    busy, waited = _busy(story, kind), turn.claim.at - ready
    parts = max(1, waited // STRETCH)
    ends = [ready + waited * part // parts for part in range(parts + 1)]
    return all(_used(busy, begin, end) >= FULL * share * (end - begin) for begin, end in pairwise(ends))


def _used(busy: list[tuple[int, int]], begin: int, end: int) -> int:
    """ms of slots, all nodes' together."""
    return sum(max(0, min(end, until) - max(begin, since)) for since, until in busy)


@functools.cache
def _busy(story: Story, kind: str) -> list[tuple[int, int]]:
    """When runs of the backlog had a slot of this kind."""
    found = []
    for turns in story.lives.turns.values():
        for turn in turns.values():
            if turn.send is not None and _kind(turn) == kind and _late(story, turn):
                end = turn.recorded.at if turn.recorded is not None else turn.send.at + turn.send.took
                found.append((turn.claim.at, end))
    return found


def _late(story: Story, turn: Turn) -> bool:
    row = story.entries.get(turn.run) or story.live.get(turn.run)
    return row is not None and (row.kind in ("backfill", "redrive") or turn.claim.db - row.due_at > MINUTE)


def _kind_of_run(story: Story, turn: Turn) -> str:
    """Also of a claim that was given back before it was sent."""
    sent = (one for one in story.lives.turns.get(turn.run, {}).values() if one.send is not None)
    return _kind(turn if turn.send is not None else next(sent, turn))


def _kind(turn: Turn) -> str:
    asked = None if turn.send is None else turn.send.asked
    return str((asked or {}).get("target", {}).get("type", "webhook"))
