"""When all is healed, all that was due is finished; and while nothing is wrong, everything is on the dot."""

from __future__ import annotations

from collections.abc import Iterator

from proof.checker.events import Received
from proof.checker.ledger import Live
from proof.checker.story import JobStory, Story, Violation

__all__ = ["check_liveness"]

STUCK = 15_000
"""ms that a run may be overdue in the end; the slowest target and the longest backoff are shorter."""
ON_TIME = 150
ASKED_FIRST = 700
"""At-most-once: the same, with a question to the database before the send."""
POLL = 1500
"""ms within which a new job that is due at once is found without any hint."""
HOUR = 3_600_000


def check_liveness(story: Story) -> Iterator[Violation]:
    for live in story.ledger.live:
        if (why := _stuck(story, live)) is not None:
            yield Violation(kind="stuck", text=f"{live.id} ({live.state}, node {live.node}): {why}")
    for job in story.jobs.values():
        if not job.laned:
            for send in job.sends:
                yield from _late(story, job, send)
        yield from _given_up(story, job)


def _stuck(story: Story, live: Live) -> str | None:
    now = story.ledger.now
    job = story.jobs.get(live.job)
    if live.state == "running":
        return "still running" if live.due_at < now - STUCK and _claimed_long_ago(story, live) else None
    if live.parked is None:
        if not live.cursor and live.ready_at > now + HOUR:
            return "will never be ready"
        return "overdue" if live.ready_at < now - STUCK else None
    if live.parked == "lane":
        others = [other for other in story.ledger.live if other.job == live.job and other.id != live.id]
        held = any(other.state == "running" or (other.parked is None and not other.cursor) for other in others)
        return None if held else "waits for a lane that nobody holds"
    paused = job is not None and job.row is not None and job.row.state == "paused"
    return None if live.parked == "paused" and paused else f"parked ({live.parked}) though its job is not"


def _claimed_long_ago(story: Story, live: Live) -> bool:
    claims = [claim.at for claim in story.claims if claim.run == live.id]
    return not claims or max(claims) < story.ledger.at - STUCK


def _late(story: Story, job: JobStory, send: Received) -> Iterator[Violation]:
    """The first send of a slot that came while nothing was wrong."""
    row = story.entries.get(send.run) or story.live.get(send.run)
    if row is None or row.kind != "scheduled" or story.sends[send.run][0] is not send:
        return
    late = send.db - row.due_at
    due = send.at - late
    if not story.quiet(min(due, send.at) - 5000, send.at):
        return
    known = [job.made.until, *(change.until for change in job.changes)]
    touched = [moment for moment in known if due - 3500 <= moment <= send.at]
    if touched:  # made, changed or resumed shortly before, or even after it was due: found by the next poll
        late = send.at - max(due, *touched)
    if late > (POLL if touched else ASKED_FIRST if job.at_most_once else ON_TIME):
        yield Violation(kind="late", text=f"{send.run} was sent {late} ms late at {send.at}, with nothing wrong")


def _given_up(story: Story, job: JobStory) -> Iterator[Violation]:
    """While nothing is wrong, no slot is missed."""
    for entry in job.entries:
        if entry.status != "skipped" or entry.reason not in ("coalesced", "late") or job.policy.get("expires_in"):
            continue
        ended = story.ledger.at - (story.ledger.now - entry.finished_at)
        began = ended - (entry.finished_at - entry.slot)
        touched = any(began - 3500 <= change.until <= ended + 3500 for change in job.changes)
        if not story.steps and not touched and story.quiet(began - 5000, ended):
            text = f"{entry.id} was given up ({entry.reason}) at {ended}, with nothing wrong"
            yield Violation(kind="given_up", text=text)
