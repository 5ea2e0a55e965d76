"""P1: each slot of a schedule is covered by exactly one row, its own or a range's; and no row is of no slot.

What the slots are is decided by the oracle. An edit parts the old schedule from the new one to the millisecond: of the
old one only what was claimed, or cancelled, before it may have a row of a later slot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from proof.checker.ledger import Entry, Live
from proof.checker.story import LOOKAHEAD, SETTLE, JobStory, Segment, Story, Violation
from proof.oracle.slots import is_one_off, slots_of

__all__ = ["check_coverage"]

HOUR = 3_600_000
EXACT = 10_000


def check_coverage(story: Story) -> Iterator[Violation]:
    for job in story.jobs.values():
        horizon = _horizon(story, job)
        possible = [_possible(story, job, place, horizon) for place in range(len(job.segments))]
        covered = _covered(job, possible)
        yield from _phantoms(job, possible, horizon)
        yield from _miscounted(story, job, possible)
        for slot, times in covered.items():
            if times > 1:
                yield Violation(kind="doubled", text=f"job {job.id}: slot {slot} is covered {times} times")
        for slot in _required(story, job, possible):
            if not covered[slot]:
                yield Violation(kind="lost", text=f"job {job.id}: slot {slot} has no row ({_state(job)})")
        yield from _ahead(story, job)
        yield from _cursors(job)


def _state(job: JobStory) -> str:
    return "deleted" if job.row is None else job.row.state


def _horizon(story: Story, job: JobStory) -> int:
    """Up to where slots are looked for. A job's next run may lie farther ahead still: that one is believed."""
    return max([story.ledger.now, *(step.highest for step in story.steps)]) + HOUR


def _possible(story: Story, job: JobStory, place: int, horizon: int) -> list[int]:
    segment = job.segments[place]
    until, extra = horizon, list[int]()
    if place + 1 < len(job.segments) and not is_one_off(segment.schedule):
        following = job.segments[place + 1]
        until, extra = following.begin, _decided_before(story, job, segment, following)
    after = segment.begin if not is_one_off(segment.schedule) else segment.begin - HOUR
    return slots_of(segment.schedule, anchor=segment.begin, after=after, until=until) + extra


def _decided_before(story: Story, job: JobStory, segment: Segment, following: Segment) -> list[int]:
    """Slots of a schedule that lie after the next one was given: claimed ahead of their time, cancelled by a user, or,
    while they waited for their lane, by the change; or given up before, and then the clock was set back."""
    rows = {row.slot: row for row in job.rows if row.kind == "scheduled" and row.slot > following.begin}
    decided = []
    for slot, row in sorted(rows.items()):
        turns = story.lives.turns.get(row.id, {}).values()
        replaced = isinstance(row, Entry) and row.reason == "rescheduled"
        claimed = any(turn.place < following.place for turn in turns)
        by_user = story.lives.cancels.get(row.id) or story.lives.skips.get(row.id)
        if replaced or claimed or by_user or _given_up_before(story, row, following):
            decided += slots_of(segment.schedule, anchor=segment.begin, after=slot - 1, until=slot)
    return decided


def _given_up_before(story: Story, row: Entry | Live, following: Segment) -> bool:
    """By a clock that showed a later time then than when the next schedule was given."""
    if not isinstance(row, Entry) or row.slot > row.finished_at:
        return False
    if row.status != "skipped" and row.reason != "deleted":  # what waited for its lane, and its job was restored since
        return False
    written = story.written(row)
    return written is not None and written < following.at


def _covered(job: JobStory, possible: list[list[int]]) -> Counter[int]:
    covered: Counter[int] = Counter()
    known = sorted({slot for slots in possible for slot in slots})
    for entry in job.entries:
        if entry.kind != "scheduled":
            continue
        if entry.until is None or entry.until == entry.slot:
            covered[entry.slot] += 1
        else:
            covered.update(slot for slot in known if entry.slot <= slot <= entry.until)
    covered.update(live.slot for live in job.live if live.kind == "scheduled")
    return covered


def _phantoms(job: JobStory, possible: list[list[int]], horizon: int) -> Iterator[Violation]:
    known = {slot for slots in possible for slot in slots}
    for row in job.rows:
        if row.kind == "scheduled" and row.slot not in known and row.slot <= horizon:
            yield Violation(kind="phantom", text=f"job {job.id}: {row.id} is of no slot of its schedule")


def _miscounted(story: Story, job: JobStory, possible: list[list[int]]) -> Iterator[Violation]:
    """A range row says how many slots it stands for, up to ten thousand."""
    for entry in job.entries:
        if entry.kind != "scheduled" or entry.until is None:
            continue
        counts = [sum(entry.slot <= slot <= entry.until for slot in slots) for slots in possible]
        if entry.slots is None and (max(counts, default=0) > EXACT or _replaced_ahead(story, job, counts)):
            continue
        if entry.slots not in [count for count in counts if count]:
            text = f"job {job.id}: the range {entry.id} to {entry.until} says {entry.slots} slots, the oracle {counts}"
            yield Violation(kind="miscounted", text=text)


def _replaced_ahead(story: Story, job: JobStory, counts: list[int]) -> bool:
    """The schedule that these are slots of was replaced, and then the clock was set back: what was given up ahead of
    its time is cut off, and nobody knows any more how many slots are left."""
    for place, following in enumerate(job.segments[1:]):
        if counts[place] and any(step.by_ms < 0 and step.at >= following.at for step in story.steps):
            return story.excuse("a range of a schedule that was replaced while the clock was ahead tells no number")
    return False


def _required(story: Story, job: JobStory, possible: list[list[int]]) -> Iterator[int]:
    last = len(job.segments) - 1
    for place, segment in enumerate(job.segments):
        if is_one_off(segment.schedule):
            if place == last:
                yield from possible[place]
            continue
        end = _replaced(story, job.segments[place + 1]) if place < last else _end(story, job)
        yield from (slot for slot in possible[place] if segment.begin < slot <= end)


def _replaced(story: Story, following: Segment) -> int:
    """Up to where a schedule must be covered that another replaced: to that moment; and if the clock was set back
    since, only to where it was set, because what had been given up for a future that did not come was taken back."""
    return min(following.begin, story.lowest_after(following.at))


def _end(story: Story, job: JobStory) -> int:
    """Up to where the newest schedule must be covered: before the cursor; all of it if it ended; up to the moment when
    the job was deleted."""
    if job.row is None:
        deleted = [event.db for _, event in story.lives.wrote.get(job.id, ()) if event.verb == "delete"]
        if deleted:
            return deleted[-1] if not story.steps else min(deleted[-1], story.lowest_after(_deleted_at(story, job)))
        return max((entry.until or entry.slot for entry in job.entries if entry.kind == "scheduled"), default=0)
    cursor = next((live.slot for live in job.live if live.cursor), None)
    if cursor is not None:
        return cursor - 1
    return 2**62 if job.row.state == "ended" else 0


def _deleted_at(story: Story, job: JobStory) -> int:
    return next(event.at for _, event in reversed(story.lives.wrote[job.id]) if event.verb == "delete")


def _ahead(story: Story, job: JobStory) -> Iterator[Violation]:
    """No slot is given up before its time has come; if a clock that was ahead made it so, it is taken back."""
    back = [step.at for step in story.steps if step.by_ms < 0]
    if back and max(back) > story.ledger.at - SETTLE:
        return
    begin = job.segments[-1].begin
    if job.row is None or begin > story.ledger.now or story.expires(job):
        return
    for entry in job.entries:
        last = entry.until or entry.slot
        if story.lives.left_out(entry.id, story.ledger.at):
            continue
        if entry.status != "skipped" or entry.finished_at <= begin or last <= story.ledger.now + LOOKAHEAD:
            continue
        if entry.token:  # its token would be given a second time
            story.excuse("a node had it in its hands when it was given up, and then the clock was set back")
        else:
            text = f"job {job.id}: {entry.id} to {last} is given up ({entry.reason}), and it is {story.ledger.now}"
            yield Violation(kind="ahead", text=text)


def _cursors(job: JobStory) -> Iterator[Violation]:
    """An active or paused recurring job has one next run, an ended or deleted one has none."""
    cursors = [live.id for live in job.live if live.cursor]
    if len(cursors) > 1:
        yield Violation(kind="two_cursors", text=f"job {job.id} has {cursors}")
    state = _state(job)
    if state in ("active", "paused") and not job.one_off and not cursors:
        yield Violation(kind="silent", text=f"job {job.id} is {state} and has no next run")
    if state in ("ended", "deleted") and cursors:
        yield Violation(kind="phantom", text=f"job {job.id} is {state} and has a next run {cursors}")
    if state == "quarantined":
        yield Violation(kind="quarantined", text=f"job {job.id}: its schedule was fine")
