"""Overlap: who held a job's lane when, from the database's diary, and what became of the others."""

from __future__ import annotations

import bisect
from collections.abc import Iterator

import msgspec

from proof.checker.ledger import Entry, Live
from proof.checker.lives import Turn
from proof.checker.story import SETTLE, JobStory, Story, Violation
from proof.model.rules import rules_of
from proof.oracle.slots import is_one_off, slots_of

__all__ = ["check_overlaps"]

RELEASED = 1600
"""ms after a lane is free until who waits for it is sent, with nothing wrong: found by a look once a second."""
STOPPED = 1250
"""ms within which a replaced run is stopped: its node reads the order, ends it, records it."""


class _Held(msgspec.Struct, frozen=True, kw_only=True):
    """From claim to record. sure: the record is known; else it was given back, or lost, at some time before `end`."""

    run: str
    begin: int
    end: int
    db_begin: int
    db_end: int
    sure: bool
    turn: Turn


def check_overlaps(story: Story) -> Iterator[Violation]:
    for job in story.jobs.values():
        yield from _replaced(story, job)
    for job in story.jobs.values() if story.ledger.whole else ():
        policies = {version.rules.overlap for version in story.lives.versions.get(job.id, ())}
        if len(policies) > 1:
            story.excuse("its overlap policy was changed")
            continue
        if not policies or job.later:
            continue
        yield from _Lane(story, job, policies.pop()).check()


def _replaced(story: Story, job: JobStory) -> Iterator[Violation]:
    """What is said to have been replaced was, by a newer one that had come."""
    for entry in job.entries:
        if entry.status != "cancelled" or entry.reason != "replaced":
            continue
        rules = [version.rules for version in story.lives.versions.get(job.id, ())] or [rules_of(job.made.spec)]
        if not any(each.overlap == "replace" for each in rules):
            yield Violation(kind="overlap", text=f"{entry.id} was replaced, and its job does not ask for that")
        elif any(_takes_the_lane(row, entry, _ended(story, entry)) for row in job.rows):
            continue
        elif _taken_back(story, entry):
            story.excuse("the clock was set back between a run and the one that replaced it")
        else:
            yield Violation(kind="overlap", text=f"{entry.id} was replaced, and no newer one had come")


def _takes_the_lane(row: Entry | Live, entry: Entry, ended: int) -> bool:
    """It had come by then, and is newer. What a user asked for gives way to a slot that waited already, too."""
    if row.id == entry.id or row.due_at > ended:
        return False
    waited = row.kind == "scheduled" and (
        isinstance(row, Live) or row.finished_at >= (entry.started_at or entry.due_at)
    )
    return entry.due_at <= row.due_at or (entry.kind != "scheduled" and waited)


def _taken_back(story: Story, entry: Entry) -> bool:
    """A clock that was ahead was set back: the newer one had come by it and is to come again, or it had fired this one
    before its time, and then those before it come first."""
    newer = str((entry.outcome or {}).get("replaced_by", "")).rpartition("-")[2]
    slots = [entry.due_at, *([int(newer)] if newer.isdigit() else [])]
    return any(
        step.by_ms < 0 and step.db is not None and step.db < slot <= step.highest and entry.finished_at <= step.highest
        for step in story.steps
        for slot in slots
    )


def _ended(story: Story, entry: Entry) -> int:
    """When it was written, at the latest, in the database's time: it may have failed before it was replaced."""
    turn = story.lives.turns.get(entry.id, {}).get(entry.token)
    if turn is None or turn.recorded is None or turn.recorded.db is None:
        return entry.finished_at + SETTLE
    shown = [step.highest for step in story.steps if turn.claim.at < step.at <= turn.recorded.at]
    return max(turn.recorded.db, entry.finished_at, *shown)


class _Lane:
    def __init__(self, story: Story, job: JobStory, overlap: str) -> None:
        self.story, self.job, self.overlap = story, job, overlap
        self.held = sorted((one for row in job.rows for one in self._spans(row.id)), key=lambda one: one.begin)

    def _spans(self, run: str) -> Iterator[_Held]:
        turns = sorted(self.story.lives.turns.get(run, {}).items())
        for place, (_, turn) in enumerate(turns):
            end, db_end = self.story.ledger.at, 2**62
            if turn.recorded is not None:
                end, db_end = turn.recorded.at, turn.recorded.db or 2**62
            elif place + 1 < len(turns):
                end, db_end = turns[place + 1][1].claim.at, turns[place + 1][1].claim.db
            yield _Held(
                run=run,
                begin=turn.claim.at,
                end=end,
                db_begin=turn.claim.db,
                db_end=db_end,
                sure=turn.recorded is not None,
                turn=turn,
            )

    def check(self) -> Iterator[Violation]:
        for entry in self.job.entries:
            if entry.reason == "overlap":
                yield from self._skipped(entry)
        if self.overlap == "allow":
            return
        yield from self._at_once()
        if self.overlap == "replace":
            yield from self._not_replaced()
        for row in self.job.rows:
            first = self.story.lives.turns.get(row.id, {}).get(1)
            if row.kind == "scheduled" and first is not None and first.send is not None:
                yield from self._waited(row.id, row.due_at, first)

    def _at_once(self) -> Iterator[Violation]:
        """One after the other: what was claimed was recorded before the next was claimed."""
        sure: _Held | None = None
        for one in self.held:
            if sure is not None and one.run != sure.run and one.begin < sure.end and one.turn.place < _place(sure):
                text = f"{one.run} was claimed at {one.begin} while {sure.run} ran until {sure.end}"
                yield Violation(kind="overlap", text=text)
            if one.sure and (sure is None or one.end > sure.end):
                sure = one

    def _skipped(self, entry: Entry) -> Iterator[Violation]:
        """Given up because another one ran (skip), ran and one waited (queue), or a newer one came (replace)."""
        when, written = entry.finished_at, self.story.written(entry)
        if self.overlap == "allow":
            yield Violation(kind="overlap", text=f"{entry.id} was given up for an overlap, and its job allows that")
            return
        if written is None:
            self.story.excuse("the database's clock was set: when a run was given up is not known")
        elif not any(one.run != entry.id and one.begin - 1 <= written <= one.end + 1 for one in self.held):
            yield Violation(kind="overlap", text=f"{entry.id} was given up for an overlap at {when}, and nothing ran")
        elif self.overlap == "queue" and not self._somebody_waited(entry, written):
            yield Violation(kind="overlap", text=f"{entry.id} was given up at {when}, and nobody waited before it")
        elif self.overlap == "replace" and not self._newer_had_come(entry):
            if any(version.rules.catch_up == "all" for version in self.story.lives.versions.get(self.job.id, ())):
                self.story.excuse("an older slot of the backlog replaced a newer one")
                return
            if self._newer_taken_back(entry, written):
                self.story.excuse("the clock was set back, and the row of a slot that had replaced another is gone")
                return
            yield Violation(kind="overlap", text=f"{entry.id} was replaced at {when}, and no newer one had come")

    def _somebody_waited(self, entry: Entry, when: int) -> bool:
        """Another one that had come was claimed, or given up, only after this true time. (It waits on if the clock is
        set back behind its time.)"""
        come = max([entry.finished_at, *(step.highest for step in self.story.steps if step.at <= when)])
        others = [row for row in self.job.rows if row.id != entry.id and row.kind == "scheduled"]
        return any(self._decided_after(row, when - 1) for row in others if row.due_at <= come)

    def _decided_after(self, row: Entry | Live, when: int) -> bool:
        """Whether it was claimed for the first time, or given up, after this true time."""
        first = self.story.lives.turns.get(row.id, {}).get(1)
        if first is not None:
            return first.claim.at >= when
        written = self.story.written(row) if isinstance(row, Entry) else None
        return not isinstance(row, Entry) or (written is not None and written >= when)

    def _newer_had_come(self, entry: Entry) -> bool:
        return any(
            row.kind == "scheduled" and entry.slot < row.slot and row.due_at <= entry.finished_at
            for row in self.job.rows
        )

    def _newer_taken_back(self, entry: Entry, written: int) -> bool:
        """Given up itself by a clock that was ahead, a slot that has not come has no row any more once the clock is
        right; and with another schedule since, or without its job, it does not come again."""
        lowest, job = self.story.lowest_after(written), self.job
        known = [place for place, segment in enumerate(job.segments) if segment.at <= written]
        if not known or (known[-1] == len(job.segments) - 1 and job.row is not None):
            return False
        segment = job.segments[known[-1]]
        if lowest >= entry.finished_at or is_one_off(segment.schedule):
            return False
        after = max(entry.slot, lowest)
        return bool(slots_of(segment.schedule, anchor=segment.begin, after=after, until=entry.finished_at))

    def _waited(self, run: str, due: int, first: Turn) -> Iterator[Violation]:
        """skip: it never waits. queue: until the lane is free. replace: until who holds it is stopped."""
        story, send = self.story, first.send
        assert send is not None
        due_at = send.at - (send.db - due)
        if not story.steady(due_at - 5000, send.at):
            story.excuse("the database's clock was set while it waited for its lane")
            return
        begin = max(due_at, self.job.made.until)
        ends = [one.end for one in self.held if one.run != run and begin < one.end <= first.claim.at]
        free = max([begin, *ends]) if self.overlap != "skip" else begin
        if send.at - free <= RELEASED or story.lives.touched(self.job.id, due_at - 3500, send.at):
            return
        if story.quiet(due_at - 5000, send.at):
            text = f"{run} ({self.overlap}) was sent {send.at - due_at} ms late, {send.at - free} after it could be"
            yield Violation(kind="overlap", text=text)
        else:
            story.excuse("something was wrong while it waited for its lane")

    def _not_replaced(self) -> Iterator[Violation]:
        """When a slot comes due, who holds the lane is stopped. (Who waited longer, a retry or a run by hand, may come
        before the newest: it is not stopped again for its sake.)"""
        story, now = self.story, self.story.ledger
        slots = sorted(
            (row.due_at, row.id, row)
            for row in self.job.rows
            if row.kind == "scheduled" and row.due_at < now.now - STOPPED and _came(row)
        )
        for held in self.held:
            if not held.sure or held.end - held.begin < STOPPED:
                continue
            if not story.steady(held.begin - 5000, held.end):
                story.excuse("the database's clock was set while a run held its lane")
                continue
            first = bisect.bisect_right(slots, (held.db_begin + STOPPED // 5, ""))
            coming = (slot[:2] for slot in slots[first:] if self._decided_after(slot[2], held.begin))
            due, run = next(coming, (2**62, ""))
            if run == held.run or held.db_end <= due + STOPPED:
                continue
            if story.lives.touched(self.job.id, held.begin - 3500, held.end):
                story.excuse("its job was changed while a run held its lane")
            elif not story.quiet(held.begin - 5000, held.end):
                story.excuse("something was wrong while a run held its lane")
            else:
                text = f"{held.run} ran until {held.db_end}, and {run} was to replace it at {due}"
                yield Violation(kind="overlap", text=text)


def _came(row: Entry | Live) -> bool:
    """It was not taken away before its time."""
    return not isinstance(row, Entry) or row.status != "cancelled" or bool(row.token)


def _place(held: _Held) -> int:
    """Records and claims of the same millisecond are in the order of the history: a release comes before a claim."""
    return 2**62 if held.turn.recorded is None else held.turn.place + 2**40
