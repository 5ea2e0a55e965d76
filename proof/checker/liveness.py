"""When all is healed, all that was due is finished; and while nothing is wrong, everything is on the dot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proof.checker.destinations import host_called
from proof.checker.events import Received
from proof.checker.groups import same_group
from proof.checker.ledger import Entry, Live
from proof.checker.lives import Version
from proof.checker.story import LOOKAHEAD, JobStory, Story, Violation
from proof.checker.worker_share import had_its_share
from proof.model.rules import Rules, rules_of
from proof.oracle.slots import is_one_off, slots_of

__all__ = ["check_liveness", "lateness"]

STUCK = 15_000
"""ms that a run may be overdue in the end; the slowest target and the longest backoff are shorter."""
ON_TIME = 150
ASKED_FIRST = 700
"""At-most-once: the same, with a question to the database before the send."""
SHORT = 1000
"""ms of LOOKAHEAD: with less, one packet that is sent again makes a run late."""
ROOM = 0.5
"""Of all slots: a node with a free one may not know of the run, another may hold it for a tenth of a second in vain."""
GIVEN_BACK = 250
"""ms after its instant in which a held run that finds no slot is given back."""
PLACE_SOON = 1250
"""ms that it may wait on its node for its destination, if that answered quickly of late, before it is given back."""
POLL = 1500
"""ms within which a new job that is due at once is found without any hint."""
DECIDED = 4000
"""ms before a row is written in which it was decided what to write, beside the simulation."""
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
    if live.open is not None:
        overdue = live.open == "callback" and live.open_until is not None and live.open_until < now - STUCK
        return "its time to be completed was up long ago" if overdue else None
    if live.state == "running":
        return "still running" if live.due_at < now - STUCK and _claimed_long_ago(story, live) else None
    if live.parked is None:
        if not live.cursor and live.ready_at > _waits_until(story, live):
            return f"will not be ready before {live.ready_at}"
        if live.ready_at >= now - STUCK:
            return None
        if had_its_share(story, live, since=story.ledger.at - STUCK):
            story.excuse("its job had its share of the workers all the time")
            return None
        return "overdue"
    if live.parked == "lane":
        others = [other for other in story.ledger.live if other.job == live.job and other.id != live.id]
        held = any(other.state == "running" or (other.parked is None and not other.cursor) for other in others)
        return None if held else "waits for a lane that nobody holds"
    if live.parked == "group":
        others = [
            other for other in story.ledger.live if other.id != live.id and same_group(story, other.job, live.job)
        ]
        held = any(other.state == "running" or (other.parked is None and not other.cursor) for other in others)
        return None if held else "waits for a group of which nothing runs"
    paused = job is not None and job.row is not None and job.row.state == "paused"
    return None if live.parked == "paused" and paused else f"parked ({live.parked}) though its job is not"


def _waits_until(story: Story, live: Live) -> int:
    """For its instant, which lies in the future if the clock once showed it, and then for the backoff of a retry, which
    a plan may make long."""
    now = story.ledger.now
    if not story.ledger.whole:
        return now + HOUR
    shown = max([now, *(step.highest for step in story.steps)])
    planned = [wait for version in story.lives.versions.get(live.job, ()) for wait in version.rules.waits[: live.tries]]
    return max(now, min(live.due_at, shown + LOOKAHEAD)) + STUCK + max(planned, default=0) * 11 // 10


def _claimed_long_ago(story: Story, live: Live) -> bool:
    claims = [claim.at for claim in story.claims if claim.run == live.id]
    return not claims or max(claims) < story.ledger.at - STUCK


def lateness(story: Story, job: JobStory) -> Iterator[tuple[Received, int]]:
    """The first send of each slot that came while nothing was wrong, and how many ms late it was."""
    if job.laned:
        return
    known = [job.made.until, *(change.until for change in job.changes), *story.lives.written(job.id)]
    known += [event.at for _, event in story.lives.wrote.get(job.id, ()) if event.verb in ("undelete", "unskip")]
    known += [event.at for _, event in story.lives.freezes if not event.on]
    for send in job.sends:
        row = story.entries.get(send.run) or story.live.get(send.run)
        if row is None or row.kind != "scheduled" or story.sends[send.run][0] is not send:
            continue
        if job.made.until > send.at:
            continue  # nobody had been told of it yet, perhaps because it was written late: nobody can say when
        late = send.db - row.due_at
        due = send.at - late
        if not story.quiet(min(due, send.at) - 5000, send.at) and not story.untouched(send.run, due - 5000, send.at):
            if story.ledger.whole and late > ON_TIME:
                story.excuse("it was late while something was wrong")
            continue
        touched = [moment for moment in known if due - 3500 <= moment <= send.at]
        if touched:  # made, changed or resumed shortly before, or even after it was due: found by the next poll
            late = send.at - max(due, *touched) - POLL
        yield send, late


def _late(story: Story, job: JobStory) -> Iterator[Violation]:
    for send, late in lateness(story, job):
        if late <= ON_TIME or late <= _allowed(story, job, send):
            continue
        if send.run in story.waits or (late <= PLACE_SOON and _host_had_no_room(story, send, send.at - late)):
            story.excuse("it waited for its destination")
        elif not_enough_slots(story, send, late):
            story.excuse("every node's slots were taken")
        else:
            yield Violation(kind="late", text=f"{send.run} was sent {late} ms late at {send.at}, with nothing wrong")


def _host_had_no_room(story: Story, send: Received, due: int) -> bool:
    """It was ill, or its node had as many calls open to it as one host may have while others wait, left from then."""
    if not story.ledger.hosts:
        return False
    host = host_called(send)
    if any(f.what == "host" and f.node == host and f.at <= send.at and f.until >= due for f in story.faults):
        return True
    holder = next((turn.claim.node for turn in story.lives.turns.get(send.run, {}).values() if turn.send is send), None)
    share = story.ledger.slots.get("webhook", 0) // 4 or 1
    return holder is not None and _open_calls(story, holder, host, due) >= share


def _open_calls(story: Story, node: str, host: str, at: int) -> int:
    """Of this node to this host, at this moment."""
    found = 0
    for turns in story.lives.turns.values():
        for turn in turns.values():
            if turn.send is None or turn.claim.node != node or host_called(turn.send) != host:
                continue
            ended = turn.recorded.at if turn.recorded is not None else turn.send.at + turn.send.took
            found += turn.send.at <= at <= ended
    return found


def _allowed(story: Story, job: JobStory, send: Received) -> int:
    """At most once, and what may expire, asks the database first; what is held for a moment may be claimed late."""
    rules = story.rules_of(job, send)
    if job.outlives:
        return ASKED_FIRST
    asks = job.at_most_once if rules is None else rules.at_most_once or rules.expires_in is not None
    return ASKED_FIRST if asks or story.ledger.lookahead < SHORT else ON_TIME


def not_enough_slots(story: Story, send: Received, late: int) -> bool:
    """Whether the node that held it had no slot when it was due (then it gave it back, and another took it), or so many
    were taken in all that no node can be blamed."""
    kind = (send.asked or {}).get("target", {}).get("type", "webhook")
    each, due = story.ledger.slots.get(kind, 0), send.at - late
    if not each:
        return False
    busy = [node for node, begin, end in story.under_way(kind) if begin <= send.at and end >= due]
    holders = {turn.claim.node for turn in story.lives.turns.get(send.run, {}).values()}
    if late <= POLL + GIVEN_BACK and any(busy.count(node) >= each for node in holders):
        return True
    return len(busy) >= each * story.ledger.nodes * ROOM


def _given_up(story: Story, job: JobStory) -> Iterator[Violation]:
    """While nothing is wrong, no slot is missed; and whatever is wrong, none is given up without a reason."""
    for entry in job.entries:
        if entry.status != "skipped" or entry.reason not in ("coalesced", "late"):
            continue
        ended = story.written(entry)
        if ended is None:
            story.excuse("the database's clock was set: when a slot was given up is not known")
            continue
        began = ended - (entry.finished_at - entry.slot)
        if not story.ledger.whole:  # else the model says what must be given up
            yield from _forsaken(story, job, entry, ended)
        touched = any(change.at <= ended + 3500 and change.until >= began - 3500 for change in job.changes)
        touched = touched or story.lives.touched(job.id, began - 3500, ended + 3500)
        if not story.quiet(began - 5000, ended):
            continue
        if touched or not story.steady(min(began, ended) - 5000, ended):
            story.excuse("its job was changed, or the clock set, while a slot was given up")
        elif entry.reason == "late" and story.expires(job):
            story.excuse("it may have expired")
        else:
            text = f"{entry.id} was given up ({entry.reason}) at {ended}, with nothing wrong"
            yield Violation(kind="given_up", text=text)


def _forsaken(story: Story, job: JobStory, entry: Entry, ended: int) -> Iterator[Violation]:
    """What was due when a user changed the job was given up by that. All else, by a policy that was in force."""
    changed = {event.db for _, event in story.lives.wrote.get(job.id, ())}
    if entry.finished_at in changed | {change.changed_at for change in job.changes}:
        return
    rules = _in_force(story.lives.versions.get(job.id, ()), ended - DECIDED, ended) or [rules_of(job.made.spec)]
    if not any(_may_be_given_up(job, entry, each) for each in rules):
        text = f"{entry.id} was given up ({entry.reason}) at {ended}, though it could still have been fired"
        yield Violation(kind="forsaken", text=text)


def _in_force(versions: Sequence[Version], begin: int, end: int) -> list[Rules]:
    """At any moment between these true times."""
    until = [*(version.at for version in versions), 2**62][1:]
    return [one.rules for one, over in zip(versions, until, strict=False) if one.at <= end and over >= begin]


def _may_be_given_up(job: JobStory, entry: Entry, rules: Rules) -> bool:
    """`latest`: a newer slot had come. `skip`: that, or it was a minute late. `all`: more had come than are wanted. And
    what had expired."""
    last, now = entry.until or entry.slot, entry.finished_at
    if entry.reason == "late" and rules.expires_in is not None and now - entry.due_at >= rules.expires_in:
        return True
    newer = [
        sum(last < slot <= now for slot in slots_of(part.schedule, anchor=part.begin, after=last, until=now))
        for part in job.segments
        if not is_one_off(part.schedule)
    ]
    if entry.reason == "coalesced":
        return rules.catch_up != "all" and max(newer, default=0) > 0
    if rules.catch_up == "all":
        return max(newer, default=0) >= rules.catch_up_limit
    return bool(now - last > (MINUTE if rules.catch_up == "skip" else DAY))
