"""How many losses a row counts: those of nodes under which the run may have begun. The third makes it a dead letter."""

from __future__ import annotations

from collections.abc import Iterator

from proof.checker.ledger import Attempt, Entry
from proof.checker.story import JobStory, Story, Violation
from proof.checker.told import KEPT, told

__all__ = ["check_losses"]


def check_losses(story: Story) -> Iterator[Violation]:
    """Of work that goes on without its node, and of what calls back, `outlives` and `completions` know the ends."""
    if not story.ledger.whole:
        return
    for job in story.jobs.values():
        for row in job.entries if not job.later else ():
            attempts = told(row)
            if row.until is not None or len(attempts) >= KEPT:
                continue
            if any(_policy_is_lost(story, job, row, attempt) for attempt in attempts):
                story.excuse("its job was changed before its node was lost: nobody knows by which policy it was sent")
                continue
            counted = sum(_counts(story, job, row, attempt) for attempt in attempts)
            if row.losses != counted:
                names = [attempt.outcome for attempt in attempts]
                yield Violation(kind="tries", text=f"{row.id} counts {row.losses} losses, its attempts are {names}")


def _policy_is_lost(story: Story, job: JobStory, row: Entry, attempt: Attempt) -> bool:
    """Whether its job was changed while it was held: then the record of its send may have been asked for or not."""
    turns = story.lives.turns.get(row.id, {})
    turn = turns.get(attempt.attempt)
    if turn is None or attempt.outcome != "lost":
        return False
    until = min((later.claim.at for token, later in turns.items() if token > turn.token), default=story.ledger.at)
    return story.lives.touched(job.id, turn.claim.at, until)


def _counts(story: Story, job: JobStory, row: Entry, attempt: Attempt) -> bool:
    """What was to be recorded before it is sent, at most once or because it may expire, had not begun without that
    record. All else had not before its instant."""
    turn = story.lives.turns.get(row.id, {}).get(attempt.attempt)
    if turn is None or turn.recorded is not None or attempt.outcome not in ("lost", "unknown"):
        return False
    version = story.lives.in_force(job.id, turn.place)
    if version is None or version.rules.at_most_once:
        return turn.begun
    first = not any(earlier.begun for token, earlier in story.lives.turns[row.id].items() if token < turn.token)
    if version.rules.expires_in is not None and first:
        return turn.begun
    return row.due_at <= attempt.finished_at
