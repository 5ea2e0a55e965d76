"""What the receiver got against what the ledger says: never early, never unknown, nothing recorded that was not."""

from __future__ import annotations

from collections.abc import Iterator

from proof.checker.events import Received
from proof.checker.lease import ended_with_its_lease
from proof.checker.ledger import Entry
from proof.checker.story import LEASE, SLACK, JobStory, Story, Violation
from proof.model.rules import rules_of

__all__ = ["check_deliveries"]


def check_deliveries(story: Story) -> Iterator[Violation]:
    for stray in story.strays:
        yield Violation(kind="phantom", text=f"{stray.run} was sent, and nobody made job {stray.job}")
    for job in story.jobs.values():
        for send in job.sends:
            yield from _early(story, job, send)
        for entry in job.entries:
            yield from _ledger_against_receiver(story, job, entry)
            yield from _unknown(story, job, entry)
    for run, sends in story.sends.items():
        if run not in story.entries and run not in story.live:
            yield Violation(kind="phantom", text=f"{run} was sent at {sends[0].at} and has no row")


def _early(story: Story, job: JobStory, send: Received) -> Iterator[Violation]:
    row = story.entries.get(send.run) or story.live.get(send.run)
    if row is None:
        return
    if row.kind == "scheduled" and not 0 <= row.due_at - row.slot <= _jitter(story, job):
        yield Violation(kind="early", text=f"{send.run} is due at {row.due_at}, its slot is {row.slot}")
    early = row.due_at - send.db
    if early > 0 and not _set_back(story, send.at, early):
        yield Violation(kind="early", text=f"{send.run} was sent {early} ms early, at {send.at}")


def _jitter(story: Story, job: JobStory) -> int:
    """The widest that it ever had."""
    rules = [version.rules for version in story.lives.versions.get(job.id, ())] or [rules_of(job.made.spec)]
    return max(each.jitter for each in rules)


def _set_back(story: Story, at: int, early: int) -> bool:
    """The database's clock was set back and the node has not heard of it: it may trust what it knew for a lease."""
    back = sum(-step.by_ms for step in story.steps if step.by_ms < 0 and 0 <= at - step.at <= LEASE + SLACK)
    return early <= back and story.excuse("early, because the database's clock was set back and its node did not know")


def _ledger_against_receiver(story: Story, job: JobStory, entry: Entry) -> Iterator[Violation]:
    sends = story.sends.get(entry.id, [])
    tokens = {send.token for send in sends}
    if (
        entry.status == "done"
        and not job.later
        and not any(send.token == entry.token and send.answer == "ok" for send in sends)
    ):
        yield Violation(kind="unsent", text=f"{entry.id} is done by token {entry.token}; received: {sorted(tokens)}")
    if entry.status == "skipped" and sends:
        yield Violation(kind="ledger", text=f"{entry.id} is skipped ({entry.reason}) and was sent {len(sends)} times")
    if (
        entry.tries > len(tokens) + (entry.reason == "unknown") and not job.later
    ):  # unknown: begun, and perhaps never sent
        yield Violation(kind="tries", text=f"{entry.id} counts {entry.tries} tries; received: {sorted(tokens)}")
    if tokens and max(tokens) > entry.token:
        text = f"{entry.id} ended with token {entry.token}, but {max(tokens)} was sent"
        yield Violation(kind="stale", text=text)
    if entry.reason == "attempts" and not story.ledger.whole and entry.tries < _attempts(story, job, entry):
        yield Violation(kind="tries", text=f"{entry.id} was given up after {entry.tries} tries")


def _attempts(story: Story, job: JobStory, entry: Entry) -> int:
    """As many as it was to have by what its last claim read."""
    turn = story.lives.turns.get(entry.id, {}).get(entry.token)
    version = None if turn is None else story.lives.in_force(job.id, turn.place)
    return (rules_of(job.made.spec) if version is None else version.rules).attempts


def _unknown(story: Story, job: JobStory, entry: Entry) -> Iterator[Violation]:
    """Nobody may say "unknown" of a run unless it is at most once and its node was lost, or stopped, in the middle."""
    if entry.reason != "unknown" or job.outlives:
        return
    owner = story.owners.get((entry.id, entry.token))
    gone = owner is not None and (
        story.lost(owner.node, owner.at, 2**62)
        or story.fault_on(owner.node, owner.at, 2**62, "stop")
        or ended_with_its_lease(story, entry.id, entry.token, owner.node, owner.at)
    )
    if not _at_most_once(story, job, entry) or (story.claims and not gone):
        yield Violation(
            kind="unknown", text=f"{entry.id} ended as unknown by token {entry.token}, and nothing was wrong"
        )


def _at_most_once(story: Story, job: JobStory, entry: Entry) -> bool:
    turn = story.lives.turns.get(entry.id, {}).get(entry.token)
    version = None if turn is None else story.lives.in_force(job.id, turn.place)
    return job.at_most_once if version is None else version.rules.at_most_once
