"""A clock that was ahead: where a job goes on, and what is left of what was given up for it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from onthedot.model.schedule import Schedule
from onthedot.plan import Taken, cut_off, floor_ahead, on_clock_back, timetable_of, wait_after_clock_back
from tests.unit.plan.jobs import DAY, HOUR, MINUTE, NOW, SECOND, every, job


def one(slot: int) -> tuple[int, int]:
    return slot, slot


class TestWhoIsLookedAt:
    def test_whose_newest_slot_lies_in_the_future(self):
        assert floor_ahead(job(every(MINUTE), claimed_slot=NOW + HOUR), NOW, 2000)

    def test_what_nodes_hold_ahead_is_no_reason(self):
        assert not floor_ahead(job(every(MINUTE), claimed_slot=NOW + 2000), NOW, 2000)
        assert not floor_ahead(job(every(MINUTE)), NOW, 2000)

    def test_the_quarantined_are_left_alone(self):
        assert not floor_ahead(job(every(MINUTE), state="quarantined", claimed_slot=NOW + HOUR), NOW, 2000)

    def test_one_offs_may_have_been_others_but_stay_where_they_are(self):
        once = Schedule(at="2030-01-01T00:00:00Z")
        assert floor_ahead(job(once, claimed_slot=NOW + HOUR), NOW, 2000)
        assert on_clock_back(job(once), None, NOW) is None


class TestWhereItGoesOn:
    def test_at_the_first_slot_that_has_no_row(self):
        before = job(every(MINUTE), claimed_slot=NOW + HOUR, slots_used=60)
        back = on_clock_back(before, NOW + HOUR + MINUTE, NOW + SECOND, Taken.of([one(NOW + MINUTE)]))
        assert back is not None
        assert (back.state, back.cursor_slot) == ("active", NOW + 2 * MINUTE)

    def test_a_cursor_that_is_right_stays(self):
        cancelled = Taken.of([one(NOW + MINUTE)])
        assert on_clock_back(job(every(MINUTE), claimed_slot=NOW + MINUTE), NOW + 2 * MINUTE, NOW, cancelled) is None
        assert on_clock_back(job(every(MINUTE)), NOW, NOW + HOUR) is None, "it is due"

    def test_a_paused_job_stays_paused(self):
        back = on_clock_back(job(every(MINUTE), state="paused", claimed_slot=NOW + HOUR), NOW + 2 * HOUR, NOW)
        assert back is not None
        assert back.state == "paused"

    def test_slots_that_are_due_after_all_are_not_used_up(self):
        before = job(every(MINUTE, count=10), state="ended", claimed_slot=NOW + 10 * MINUTE, slots_used=10)
        assert on_clock_back(before, None, NOW) is None, "the tenth was cancelled, say"
        back = on_clock_back(before, None, NOW, Taken.of([one(NOW + 10 * MINUTE)]), given_back=9)
        assert back is not None
        assert (back.state, back.slots_used, back.cursor_slot) == ("active", 1, NOW + MINUTE)

    def test_what_was_made_in_the_future_begins_as_it_was_told(self):
        minutes = job(Schedule(cron="* * * * *"), claimed_slot=NOW + HOUR)
        first = timetable_of(minutes.spec, NOW).next_after(NOW)
        assert on_clock_back(minutes, first, NOW - HOUR) is None
        back = on_clock_back(minutes, NOW + 2 * HOUR, NOW - HOUR)
        assert back is not None
        assert back.cursor_slot == first


@given(first=st.integers(0, 500), length=st.integers(0, 500), now=st.integers(-DAY, DAY), step=st.integers(1, 300))
def test_what_is_left_of_a_range(first, length, now, step):
    before = structs.replace(job(every(step * SECOND)), anchor_at=NOW - 2 * DAY)
    low = timetable_of(before.spec, before.anchor_at).next_after(NOW + first * SECOND)
    assert low is not None
    last = low + length * step * SECOND
    cut = cut_off(before, low, last, NOW + now)
    left = [slot for slot in range(low, last + 1, step * SECOND) if slot <= NOW + now]
    assert cut.given_back == length + 1 - len(left)
    assert (cut.last, cut.slots or 0) == (left[-1] if left else None, len(left))
    assert not cut.replaced


class TestWhatIsLeftOfAScheduleThatIsNoMore:
    NEW = structs.replace(job(every(MINUTE)), anchor_at=NOW + HOUR)

    def test_it_ends_now_and_nobody_knows_how_many_it_had(self):
        cut = cut_off(self.NEW, NOW, NOW + HOUR, NOW + 90 * SECOND)
        assert (cut.last, cut.slots, cut.given_back, cut.replaced) == (NOW + 90 * SECOND, None, 0, True)

    def test_of_one_slot_it_is_known(self):
        cut = cut_off(self.NEW, NOW, NOW + HOUR, NOW)
        assert (cut.last, cut.slots) == (NOW, 1)

    def test_nothing_is_left_of_what_has_not_come(self):
        cut = cut_off(self.NEW, NOW + SECOND, NOW + HOUR, NOW)
        assert (cut.last, cut.slots, cut.given_back, cut.replaced) == (None, None, 0, True)

    def test_after_the_new_one_was_given_its_slots_tell_them_apart(self):
        first = NOW + HOUR + MINUTE
        assert not cut_off(self.NEW, first, first + MINUTE, NOW).replaced
        assert cut_off(self.NEW, first + 1, first + MINUTE, NOW).replaced
        assert cut_off(self.NEW, first, first + MINUTE + 1, NOW).replaced


class TestWhatWaits:
    """(earliest, ready_at, ended, now)"""

    def test_a_retry_comes_as_long_after_now_as_after_the_try_that_ended_in_the_future(self):
        assert wait_after_clock_back(NOW - DAY, NOW + HOUR + MINUTE, NOW + HOUR, NOW) == NOW + MINUTE
        assert wait_after_clock_back(NOW - DAY, NOW + HOUR, NOW + HOUR, NOW) == NOW

    def test_not_before_its_own_time_has_come(self):
        assert wait_after_clock_back(NOW + HOUR, NOW + HOUR + MINUTE, NOW + HOUR, NOW) == NOW + HOUR

    def test_one_whose_try_ended_in_time_comes_in_time(self):
        assert wait_after_clock_back(NOW - DAY, NOW + HOUR, NOW - SECOND, NOW) is None
        assert wait_after_clock_back(NOW - DAY, NOW + HOUR, NOW + SECOND, NOW) is None, "clocks are set by so much"

    def test_it_is_done_once(self):
        assert wait_after_clock_back(NOW - DAY, NOW + MINUTE, NOW + HOUR, NOW) is None

    def test_what_was_never_tried_comes_when_it_is_due(self):
        assert wait_after_clock_back(NOW - DAY, NOW + HOUR, None, NOW) == NOW
        assert wait_after_clock_back(NOW + MINUTE, NOW + HOUR, None, NOW) == NOW + MINUTE
        assert wait_after_clock_back(NOW + HOUR, NOW + HOUR, None, NOW) is None
