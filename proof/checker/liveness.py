"""When all is healed, all that was due is finished; and while nothing is wrong, everything is on the dot."""

from __future__ import annotations

from collections.abc import Iterator

from proof.checker.events import Received
from proof.checker.ledger import Entry, Live
from proof.checker.story import JobStory, Story, Violation
from proof.oracle.slots import is_one_off, slots_of

__all__ = ["check_liveness", "lateness"]

STUCK = 15_000
"""ms that a run may be overdue in the end; the slowest target and the longest backoff are shorter."""
ON_TIME = 150
ASKED_FIRST = 700
"""At-most-once: the same, with a question to the database before the send."""
POLL = 1500
"""ms within which a new job that is due at once is found without any hint."""
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def check_liveness(story: Story) -> Iterator[Violation]:
    for live in story.ledger.live:
        if (why := _stuck(story, live)) is not None:
            yield Violation(kind="stuck", text=f"{live.id} ({live.state}, node {live.node}): {why}")
    for job in story.jobs.values():
        yield from _late(story, job)
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


def lateness(story: Story, job: JobStory) -> Iterator[tuple[Received, int]]:
    """The first send of each slot that came while nothing was wrong, and how many ms late it was."""
    if job.laned:
        return
    known = [job.made.until, *(change.until for change in job.changes)]
    for send in job.sends:
        row = story.entries.get(send.run) or story.live.get(send.run)
        if row is None or row.kind != "scheduled" or story.sends[send.run][0] is not send:
            continue
        if job.made.until > send.at:
            continue  # nobody had been told of it yet, perhaps because it was written late: nobody can say when
        late = send.db - row.due_at
        due = send.at - late
        if not story.quiet(min(due, send.at) - 5000, send.at):
            continue
        touched = [moment for moment in known if due - 3500 <= moment <= send.at]
        if touched:  # made, changed or resumed shortly before, or even after it was due: found by the next poll
            late = send.at - max(due, *touched) - POLL
        yield send, late


def _late(story: Story, job: JobStory) -> Iterator[Violation]:
    for send, late in lateness(story, job):
        if late > (ASKED_FIRST if job.at_most_once else ON_TIME):
            yield Violation(kind="late", text=f"{send.run} was sent {late} ms late at {send.at}, with nothing wrong")


def _given_up(story: Story, job: JobStory) -> Iterator[Violation]:
    """While nothing is wrong, no slot is missed; and whatever is wrong, none is given up without a reason."""
    for entry in job.entries:
        if entry.status != "skipped" or entry.reason not in ("coalesced", "late") or job.policy.get("expires_in"):
            continue
        ended = story.ledger.at - (story.ledger.now - entry.finished_at)
        began = ended - (entry.finished_at - entry.slot)
        touched = any(change.at <= ended + 3500 and change.until >= began - 3500 for change in job.changes)
        if story.steps or touched:
            continue
        if not _may_be_given_up(job, entry):
            text = f"{entry.id} was given up ({entry.reason}) at {ended}, though it could still have been fired"
            yield Violation(kind="forsaken", text=text)
        elif story.quiet(began - 5000, ended):
            text = f"{entry.id} was given up ({entry.reason}) at {ended}, with nothing wrong"
            yield Violation(kind="given_up", text=text)


def _may_be_given_up(job: JobStory, entry: Entry) -> bool:
    """`latest`: a newer slot had come. `skip`: that, or it was a minute late. `all`: more had come than are wanted."""
    policy, last, now = job.policy.get("catch_up", "latest"), entry.until or entry.slot, entry.finished_at
    newer = [
        sum(last < slot <= now for slot in slots_of(part.schedule, anchor=part.begin, after=last, until=now))
        for part in job.segments
        if not is_one_off(part.schedule)
    ]
    if entry.reason == "coalesced":
        return policy != "all" and max(newer, default=0) > 0
    if policy == "all":
        return max(newer, default=0) >= int(job.policy.get("catch_up_limit", 100))
    return bool(now - last > (MINUTE if policy == "skip" else DAY))
