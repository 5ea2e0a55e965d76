"""Catch-up, expiry and jitter: what each claim found due decides which slots fire, and the model says which.

All of it is in the database's own time, so that a clock that was set changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from proof.checker.ledger import Entry
from proof.checker.lives import Turn, Version
from proof.checker.story import JobStory, Story, Violation
from proof.model.attempts import ON_ITS_WAY
from proof.model.catch_up import Caught, caught_up
from proof.model.rules import DAY, MINUTE, Rules
from proof.oracle.slots import is_one_off, slots_of

__all__ = ["check_policies"]

JUST_SET = 30_000
JUST_NOW = 2000
"""ms before a resume in which a slot may be the next: on a slow way, the time is asked so long before the commit."""
DECIDED = 4000
"""ms before a claim is noted in which it was decided, beside the simulation: its transaction may take so long."""
SLOW_SEND = 1000
"""ms that a call may take to the receiver's clock there, with all processes on two cores."""
SLOW_CLOCK = 1000
"""ms by which a node whose way to the database is slow may think that it is earlier than it is."""


def check_policies(story: Story) -> Iterator[Violation]:
    for job in story.jobs.values():
        for run, turns in _first_claims(story, job).items():
            yield from _fired(story, job, run, turns)
        for entry in job.entries if story.ledger.whole else ():
            if entry.status == "skipped" and entry.kind == "scheduled" and entry.reason in ("coalesced", "late"):
                yield from _given_up(story, job, entry)
        yield from _fired_after_pause(story, job)
        yield from _expired(story, job)
    yield from _jittered(story)


def _first_claims(story: Story, job: JobStory) -> dict[str, Turn]:
    found = {}
    for row in job.rows:
        # without a token it was claimed only to be passed over for a newer one
        if row.kind == "scheduled" and row.token and (turn := story.lives.turns.get(row.id, {}).get(1)) is not None:
            found[row.id] = turn
    return found


def _fired(story: Story, job: JobStory, run: str, turn: Turn) -> Iterator[Violation]:
    """At its first claim: nothing newer had come, nor was it too late; `all`: no more newer ones than are wanted."""
    version, slot, now = story.lives.in_force(job.id, turn.place), int(run.partition("-")[2]), _decided(story, turn)
    if version is None or is_one_off(version.spec["schedule"]) or version.rules.laned:
        return
    rules, begin = version.rules, job.segment_begin(turn.place)
    if slot <= begin:  # of the schedule before: it was claimed, given back, and the new one has it too
        return
    newer = slots_of(version.spec["schedule"], anchor=begin, after=slot, until=now)
    newer = [one for one in newer if not _cancelled_ahead(story, f"{job.id}-{one}", turn.claim.at)]
    if newer and not story.steady(turn.claim.at - JUST_SET, turn.claim.at):
        story.excuse("the database's clock had just been set when it was claimed")
        return
    if newer and story.steps:  # fired before, while the clock was ahead
        newer = [one for one in newer if not _claimed_before(story, f"{job.id}-{one}", turn.place)]
    if (text := _not_to_fire(story, job, rules, slot, now, newer)) is None:
        return
    policies = {one.rules.catch_up for one in story.lives.versions.get(job.id, ()) if one.place <= turn.place}
    if rules.catch_up != "all" and "all" in policies:
        story.excuse("it may have been in the backlog before its job's catch-up was changed")
    else:
        yield Violation(kind="catch_up", text=f"{run} was fired ({rules.catch_up}) at {now}, {text}")


def _not_to_fire(story: Story, job: JobStory, rules: Rules, slot: int, now: int, newer: list[int]) -> str | None:
    """Why a slot was to be given up; None: it was not."""
    if rules.catch_up != "all" and newer:
        return f"when {len(newer)} newer slots had come"
    if rules.catch_up == "all" and len(newer) >= rules.catch_up_limit and _with_its_job(story, job, slot, rules):
        return f"when {len(newer)} newer slots had come and {rules.catch_up_limit} are wanted"
    bound = {"latest": DAY, "skip": MINUTE}.get(rules.catch_up)
    return f"{now - slot} ms late" if bound is not None and now - slot - rules.jitter > bound else None


def _decided(story: Story, turn: Turn) -> int:
    """When a claim was decided, at the earliest."""
    return turn.claim.db - (0 if story.ledger.whole else DECIDED)


def _claimed_before(story: Story, run: str, place: int) -> bool:
    return any(turn.place <= place for turn in story.lives.turns.get(run, {}).values())


def _cancelled_ahead(story: Story, run: str, when: int) -> bool:
    """Or left out by a user before anybody claimed it: its row was there, and it is passed over when its time comes."""
    if story.lives.left_out(run, when):
        return True
    row = story.entries.get(run)
    if row is None or row.status != "cancelled" or row.token:
        return False
    return any(event.at <= when for event in story.lives.cancels.get(run, ()))


def _with_its_job(story: Story, job: JobStory, slot: int, rules: Rules) -> bool:
    """Whether already the claim that put it into the backlog found too many newer ones."""
    claims = [
        _decided(story, turn)
        for run, turn in _first_claims(story, job).items()
        if int(run.partition("-")[2]) <= slot <= turn.claim.db
    ]
    segment = job.segments[-1]
    newer = slots_of(segment.schedule, anchor=segment.begin, after=slot, until=min(claims, default=slot))
    return len(newer) >= rules.catch_up_limit


def _given_up(story: Story, job: JobStory, entry: Entry) -> Iterator[Violation]:
    """A range says what the model says: these slots, for this reason."""
    written = story.written(entry)
    if written is None:
        story.excuse("the database's clock was set: when a range was written is not known")
        return
    verbs = {event.verb for _, event in story.lives.wrote.get(job.id, ()) if abs(written - event.at) <= 1}
    if verbs & {"edit", "resume", "delete", "undelete"}:
        return  # what was due and unclaimed when the schedule changed
    version = _at(story, job, written)
    if version is None or is_one_off(version.spec["schedule"]) or entry.token:
        return
    expires = version.rules.expires_in
    if version.rules.laned and expires is not None and entry.finished_at - entry.due_at > expires:
        return  # it waited for its lane
    begin = job.segment_begin(version.place)
    arrived = slots_of(version.spec["schedule"], anchor=begin, after=entry.slot - 1, until=entry.finished_at)
    arrived = [slot for slot in arrived if not _cancelled_ahead(story, f"{job.id}-{slot}", written)]
    if story.steps and "count" in version.spec["schedule"]:
        story.excuse("the database's clock was set: which slots were left of a count is not known")
        return
    if story.steps:
        arrived = [slot for slot in arrived if not _fired_before(story, f"{job.id}-{slot}", written)]
    ruled = [_caught(version.rules, arrived, entry.finished_at, late) for late in (0, version.rules.jitter)]
    last = entry.until or entry.slot
    if not any(_fits(caught, entry, last) for caught in ruled):
        text = f"{entry.id} to {last} was given up ({entry.reason}) at {entry.finished_at}; it must be {ruled[0]}"[:600]
        yield Violation(kind="catch_up", text=text)


def _fired_before(story: Story, run: str, when: int) -> bool:
    """By a clock that was ahead: such a slot is passed over when its time comes."""
    return any(turn.claim.at < when - 1 for turn in story.lives.turns.get(run, {}).values())


def _caught(rules: Rules, arrived: list[int], now: int, jitter: int) -> Caught:
    return caught_up(rules, arrived, now, lambda slot: slot + jitter)


def _fits(caught: Caught, entry: Entry, last: int) -> bool:
    given = [slot for slot in caught.given_up if entry.slot <= slot <= last]
    return bool(given) and caught.reason == entry.reason and not any(entry.slot <= slot <= last for slot in caught.fire)


def _fired_after_pause(story: Story, job: JobStory) -> Iterator[Violation]:
    """Slots that passed while a job was paused, everything was, or it was deleted, are one range: they are not made up
    for when it goes on."""
    if any(is_one_off(version.spec["schedule"]) for version in story.lives.versions.get(job.id, ())):
        return
    for begin, end, place in _silences(story, job):
        for run, turn in _first_claims(story, job).items():
            slot = int(run.partition("-")[2])
            if not begin < slot < end - JUST_NOW or turn.place <= place:
                continue
            if story.steps:  # it had come before the pause, and waited for its lane, by a clock that was set back then
                story.excuse("the database's clock was set: when a slot came is not known")
            else:
                text = f"{run} was fired, though its job was paused or deleted from {begin} until {end}"
                yield Violation(kind="catch_up", text=text)


def _silences(story: Story, job: JobStory) -> Iterator[tuple[int, int, int]]:
    """From when until when it fired nothing, in the database's time, and at which place of the history that ended."""
    paused: Version | None = None
    for version in story.lives.versions.get(job.id, ()):
        if not version.spec.get("paused"):
            if paused is not None:
                yield paused.db, version.db, version.place
            paused = None
        elif paused is None:
            paused = version
    deleted: int | None = None
    for place, event in story.lives.wrote.get(job.id, ()):
        if event.verb == "delete":
            deleted = event.db
        elif deleted is not None:
            yield deleted, event.db, place
            deleted = None
    for (_, froze), over in story.lives.frozen():
        if over is not None:
            yield froze.db, over[1].db, over[0]


def _at(story: Story, job: JobStory, written: int) -> Version | None:
    """What was in force when the row was written."""
    found = None
    for version in story.lives.versions.get(job.id, ()):
        if version.at > written:
            break
        found = version
    return found


def _expired(story: Story, job: JobStory) -> Iterator[Violation]:
    """Asked right before the first send, always: later than `expires_in` nothing begins."""
    for row in job.rows:
        turns = sorted(story.lives.turns.get(row.id, {}).items())
        first = next((turn for _, turn in turns if turn.send is not None), None)
        version = None if first is None else story.lives.in_force(job.id, first.place)
        if first is None or first.send is None or version is None or version.rules.expires_in is None:
            continue
        late = first.send.db - row.due_at - version.rules.expires_in
        late -= ON_ITS_WAY if story.ledger.whole else SLOW_SEND
        if late <= 0:
            continue
        if any(turn.begun and turn.token < first.token for _, turn in turns):
            story.excuse("it had begun in time, and nobody can say that it was not sent")
        elif any(_changed_and_lost(story, job, turn, first) for _, turn in turns if turn.token < first.token):
            story.excuse("its job was changed before its node was lost: nobody knows by which policy it was sent")
        elif not story.steady(first.claim.at - 5000, first.send.at):
            story.excuse("the database's clock was set before a run expired")
        elif late <= SLOW_CLOCK and story.slow(first.claim.node, first.claim.at - 5000, first.send.at):
            story.excuse("its node was slow to know that a run had expired")
        else:
            text = (
                f"{row.id} was sent {first.send.db - row.due_at} ms late, it expires after {version.rules.expires_in}"
            )
            yield Violation(kind="expired", text=text)


def _changed_and_lost(story: Story, job: JobStory, turn: Turn, following: Turn) -> bool:
    """By a user, before the run was taken back from the lost node: at the latest when it was claimed again."""
    loss = story.losses.get(turn.claim.node)
    if loss is None or loss.at < turn.claim.at:
        return False
    return story.lives.touched(job.id, turn.claim.at, max(loss.at, following.claim.at))


def _jittered(story: Story) -> Iterator[Violation]:
    """Each run within its bounds, and all together spread over them."""
    parts: list[float] = []
    for job in story.jobs.values():
        versions = story.lives.versions.get(job.id, [])
        widths = {version.rules.jitter for version in versions}
        for row in job.rows:
            if row.kind != "scheduled" or not row.token or not widths:
                continue
            if not 0 <= row.due_at - row.slot < max(max(widths), 1):
                text = f"{row.id} is due {row.due_at - row.slot} ms after its slot, jitter {sorted(widths)}"
                yield Violation(kind="jitter", text=text)
            turn = story.lives.turns.get(row.id, {}).get(1)
            version = None if turn is None else story.lives.in_force(job.id, turn.place)
            if version is not None and version.rules.jitter >= 100:
                parts.append((row.due_at - row.slot) / version.rules.jitter)
    at_once = sum(part < 0.02 for part in parts)
    if len(parts) >= 20 and (at_once > len(parts) / 2 or max(parts) - min(parts) < 0.5):
        text = f"of {len(parts)} runs with jitter {at_once} are due at their slot, the last at {max(parts):.2f} of it"
        yield Violation(kind="jitter", text=text)
