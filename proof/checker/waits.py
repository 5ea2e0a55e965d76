"""How long a run waits for its next try: what its receiver asked for, and that waits are spread."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from proof.checker.ledger import Attempt
from proof.checker.lives import Turn
from proof.checker.story import LEASE, MISREAD, Story, Violation
from proof.checker.told import told

__all__ = ["asked_for", "spread"]

LONG, MANY = 500, 40
"""Of so many waits, so many ms long, three in ten are a tenth shorter than the middle: none is no chance."""
READ = 3
"""ms by which a node with a good way to the database may know the time better, or worse, when it has read an answer
than when it made the call."""


def asked_for(story: Story, turn: Turn, attempt: Attempt) -> tuple[int | None, int]:
    """How many ms after the end of this attempt its receiver asked for the next one, if it did, and by how many ms the
    node may be wrong about that. A date is one of the database's time: the machine's own clock may be hours off."""
    send = turn.send
    if send is None or send.retry_after is None or attempt.outcome != "error":
        return None, 0
    if send.retry_at is None:
        return send.retry_after, 0
    end = turn.recorded.at if turn.recorded is not None else story.ledger.at
    unsure = READ + sum(abs(step.by_ms) for step in story.steps if turn.claim.at - LEASE <= step.at <= end)
    if story.slow(turn.claim.node, turn.claim.at - LEASE, end):
        story.excuse("its node was slow to know the time, and was asked for a date")
        unsure += MISREAD
    return max(0, send.retry_at - attempt.finished_at), unsure


def spread(story: Story) -> Iterator[Violation]:
    """What failed together must not come back together: the waits are spread."""
    ratios: list[float] = []
    for job in story.jobs.values():
        for entry in job.entries if not job.later else ():
            turns = story.lives.turns.get(entry.id, {})
            for tries, (one, other) in enumerate(pairwise(told(entry)), 1):
                turn, again = turns.get(one.attempt), turns.get(other.attempt)
                version = None if turn is None else story.lives.in_force(job.id, turn.place)
                if turn is None or again is None or version is None or one.outcome != "error":
                    continue
                middle = version.rules.backoff * version.rules.factor ** (tries - 1)
                plain = turn.send is not None and not turn.send.retry_after and not version.rules.waits
                if plain and middle >= LONG and middle * 1.25 < version.rules.longest:
                    ratios.append((again.claim.db - one.finished_at) / middle)
    early = sum(ratio < 0.9 for ratio in ratios)
    if len(ratios) >= MANY and not story.steps and early == 0:
        yield Violation(kind="backoff", text=f"of {len(ratios)} waits none was a tenth shorter than the middle")
