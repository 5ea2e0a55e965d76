"""Slots that have a row already are passed over, whoever asks for the next, the last, or how many there are."""

from __future__ import annotations

from itertools import islice, pairwise

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from onthedot.plan import Free, Taken, on_cancel, on_claim, on_edit, on_resume, timetable_of
from onthedot.plan.slots import Skipped
from onthedot.plan.taken import pieces
from tests.unit.plan.jobs import MINUTE, NOW, SECOND, every, job, spec

spans = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 5)).map(lambda s: (NOW + s[0] * 500, NOW + (s[0] + s[1]) * 500)),
    max_size=12,
)
second = timetable_of(spec(every(SECOND)), NOW)


def slots_between(times, after, until):
    found, slot = [], times.next_after(after)
    while slot is not None and slot <= until:
        found.append(slot)
        slot = times.next_after(slot)
    return found


def is_taken(given, slot):
    return any(first <= slot <= last for first, last in given)


@given(given=spans, after=st.integers(-1, 120), until=st.integers(0, 120))
def test_a_timetable_without_them(given, after, until):
    after, until = NOW + after * SECOND, NOW + until * SECOND
    times = Free(second, Taken.of(given))
    wanted = [slot for slot in slots_between(second, after, until) if not is_taken(given, slot)]
    assert slots_between(times, after, until) == wanted
    assert times.count_between(after, until) == len(wanted)
    assert all(times.is_slot(slot) for slot in wanted)
    if after >= NOW and wanted:
        assert times.latest_until(until) == wanted[-1]


@given(given=spans, first=st.integers(1, 100), length=st.integers(0, 100))
def test_a_range_without_them(given, first, length):
    low, high = NOW + first * SECOND, NOW + (first + length) * SECOND
    cut = pieces(second, Taken.of(given), Skipped(first=low, last=high, slots=length + 1, reason="late"))
    covered = [slot for piece in cut for slot in slots_between(second, piece.first - 1, piece.last)]
    assert covered == [slot for slot in slots_between(second, low - 1, high) if not is_taken(given, slot)]
    assert sum(piece.slots or 0 for piece in cut) == len(covered)
    assert all(one.last < other.first for one, other in pairwise(cut))
    assert not any(
        piece.first <= first and last <= piece.last for piece in cut for first, last in Taken.of(given).spans
    )


verbs = st.lists(
    st.tuples(
        st.sampled_from(["claim", "claim", "claim", "cancel", "cancel", "edit", "pause", "resume"]),
        st.integers(0, 90) | st.integers(0, 3000),
        st.sampled_from([1, 2, 3, 7, 60]),
    ),
    min_size=1,
    max_size=25,
)


class World:
    """A job as the store keeps it: a cursor, and every slot that has a row."""

    def __init__(self, policy):
        self.record = job(every(SECOND), **policy)
        self.cursor: int | None = NOW + SECOND
        self.now = NOW
        self.rows: list[tuple[int, int]] = []

    def taken(self):
        after = self.now if self.cursor is None else min(self.now, self.cursor)
        return Taken.of(span for span in self.rows if span[0] > after)

    def write(self, first, last):
        for low, high in self.rows:
            assert last < low or high < first, f"{(first, last)} is covered already by {(low, high)}"
        self.rows.append((first, last))

    def claim(self):
        if self.record.state != "active" or self.cursor is None or self.cursor - 2000 > self.now:
            return
        plan = on_claim(self.record, self.cursor, self.now, self.taken())
        fired = [slot for slot in (plan.fire, *plan.backlog) if slot is not None]
        for slot in fired:
            self.write(slot, slot)
        for gap in plan.skipped:
            self.write(gap.first, gap.last)
        self.record = msgspec.structs.replace(self.record, claimed_slot=plan.claimed_slot, slots_used=plan.slots_used)
        self.cursor = plan.successor

    def apply(self, change):
        for gap in change.skipped:
            self.write(gap.first, gap.last)
        self.cursor = change.cursor_slot
        self.record = msgspec.structs.replace(
            self.record,
            state=change.state,
            claimed_slot=change.claimed_slot,
            slots_used=change.slots_used,
            anchor_at=change.anchor_at,
        )

    def cancel(self):
        if self.cursor is not None:
            taken, slot = self.taken(), self.cursor
            self.write(slot, slot)
            self.apply(on_cancel(self.record, slot, taken))

    def edit(self, seconds):
        new = spec(every(seconds * SECOND), url=f"http://{self.now}/")
        self.apply(on_edit(self.record, self.cursor, new, self.now, self.taken()))
        self.record = msgspec.structs.replace(self.record, spec=new)


@settings(max_examples=300)
@given(policy=st.fixed_dictionaries({"catch_up": st.sampled_from(["latest", "skip", "all"])}), verbs=verbs)
def test_no_slot_has_two_rows_and_no_job_falls_silent(policy, verbs):
    """Cancels at any distance, edits, pauses: what is far ahead neither fires again nor keeps the rest from firing."""
    world = World(policy)
    for verb, wait, seconds in verbs:
        world.now += wait * 100
        if verb == "claim":
            world.claim()
        elif verb == "cancel":
            world.cancel()
        elif verb == "edit":
            world.edit(seconds)
        elif verb == "pause" and world.record.state == "active":
            world.record = msgspec.structs.replace(world.record, state="paused")
        elif verb == "resume":
            world.apply(on_resume(world.record, world.cursor, world.now, world.taken()))
        assert world.cursor is not None
        times = timetable_of(world.record.spec, world.record.anchor_at)
        assert not is_taken(world.rows, world.cursor)
        between = islice(slots_between(times, world.now, world.cursor - 1), 100)
        assert all(is_taken(world.rows, slot) for slot in between), "a slot before the cursor that nobody has covered"


def test_a_row_of_its_own_is_no_part_of_what_was_missed():
    """Cancelled long ago, in the middle of an outage: it stays cancelled, and stands in no range."""
    cancelled = NOW + 5 * MINUTE
    plan = on_claim(
        job(every(MINUTE), claimed_slot=cancelled), NOW + MINUTE, NOW + 9 * MINUTE, Taken.of([(cancelled, cancelled)])
    )
    assert plan.fire == NOW + 9 * MINUTE
    assert [(gap.first, gap.last, gap.slots) for gap in plan.skipped] == [
        (NOW + MINUTE, NOW + 4 * MINUTE, 4),
        (NOW + 6 * MINUTE, NOW + 8 * MINUTE, 3),
    ]
    assert plan.slots_used == 8
    latest = on_claim(
        job(every(MINUTE), claimed_slot=cancelled), NOW + 4 * MINUTE, cancelled + 1, Taken.of([(cancelled, cancelled)])
    )
    assert (latest.fire, latest.successor, latest.claimed_slot) == (NOW + 4 * MINUTE, NOW + 6 * MINUTE, cancelled)
