"""Where the cursor stands after create, edit, pause, resume, cancel."""

from __future__ import annotations

import msgspec
import pytest

from onthedot.model.duration import Duration
from onthedot.model.instant import format_instant
from onthedot.model.schedule import Schedule
from onthedot.plan import Taken, on_cancel, on_delete, on_edit, on_pause, on_resume, opening, same_times, timetable_of
from tests.unit.plan.jobs import DAY, HOUR, MINUTE, NOW, SECOND, every, job, spec

ONE_OFF = Schedule(in_=Duration(MINUTE))


def at(ms: int) -> Schedule:
    return Schedule(at=format_instant(ms))


class TestOpening:
    def test_the_first_slot_is_after_now(self):
        made = opening(spec(every(MINUTE)), NOW)
        assert (made.state, made.anchor_at, made.cursor_slot) == ("active", NOW, NOW + MINUTE)

    def test_a_start_in_the_past_is_no_missed_slot(self):
        made = opening(spec(every(MINUTE, start=format_instant(NOW - HOUR - SECOND))), NOW)
        assert made.cursor_slot == NOW + MINUTE - SECOND

    def test_a_paused_job_has_its_cursor_too(self):
        made = opening(spec(every(MINUTE), paused=True), NOW)
        assert (made.state, made.cursor_slot) == ("paused", NOW + MINUTE)

    def test_a_one_off_that_came_due_on_its_way_still_fires(self):
        assert opening(spec(at(NOW - 5)), NOW).cursor_slot == NOW - 5

    def test_a_schedule_that_is_over_has_ended(self):
        made = opening(spec(every(MINUTE, end=format_instant(NOW - SECOND))), NOW)
        assert (made.state, made.cursor_slot) == ("ended", None)


class TestSameTimes:
    def test_the_target_does_not_matter(self):
        assert same_times(spec(every(MINUTE)), spec(every(MINUTE), url="http://b/"))

    def test_but_it_does_for_a_hash_without_a_key(self):
        hashed = Schedule(cron="H * * * *")
        assert not same_times(spec(hashed), spec(hashed, url="http://b/"))
        assert same_times(spec(hashed, key="k"), spec(hashed, key="k", url="http://b/"))

    def test_another_schedule_has_other_times(self):
        assert not same_times(spec(every(MINUTE)), spec(every(HOUR)))


class TestEdit:
    def test_another_target_keeps_cursor_anchor_and_count(self):
        before = job(every(MINUTE, count=9), claimed_slot=NOW + MINUTE, slots_used=1)
        change = on_edit(before, NOW + 2 * MINUTE, spec(every(MINUTE, count=9), url="http://b/"), NOW + 61_000)
        assert (change.moved, change.cursor_slot, change.anchor_at) == (False, NOW + 2 * MINUTE, NOW)
        assert (change.slots_used, change.claimed_slot, change.state) == (1, NOW + MINUTE, "active")

    def test_it_does_not_drop_a_slot_that_is_due_this_moment(self):
        change = on_edit(job(every(MINUTE)), NOW + MINUTE, spec(every(MINUTE), url="http://b/"), NOW + MINUTE + 3)
        assert (change.moved, change.cursor_slot, change.skipped) == (False, NOW + MINUTE, ())

    def test_another_schedule_starts_anew(self):
        before = job(every(MINUTE, count=9), slots_used=4)
        change = on_edit(before, NOW + MINUTE, spec(every(HOUR, count=9)), NOW + SECOND)
        assert (change.moved, change.cursor_slot) == (True, NOW + SECOND + HOUR)
        assert (change.slots_used, change.anchor_at, change.skipped) == (0, NOW + SECOND, [])

    def test_a_slot_that_was_claimed_is_never_fired_again(self):
        """A node holds 12:00:02 ahead at 12:00:00; the edit to each second begins before it, and passes it over."""
        before, held = job(every(2000), claimed_slot=NOW + 2000), Taken.of([(NOW + 2000, NOW + 2000)])
        assert on_edit(before, NOW + 4000, spec(every(1000)), NOW, held).cursor_slot == NOW + 1000
        assert on_edit(before, NOW + 4000, spec(every(1000)), NOW + 1000, held).cursor_slot == NOW + 3000

    def test_a_cancelled_slot_of_next_year_silences_nothing(self):
        year = Schedule(cron="0 0 1 1 *")
        january = timetable_of(spec(year), NOW).next_after(NOW)
        assert january is not None
        cancelled = on_cancel(job(year), january)
        before = job(year, claimed_slot=cancelled.claimed_slot, slots_used=1)
        taken = Taken.of([(january, january)])
        change = on_edit(before, cancelled.cursor_slot, spec(Schedule(cron="* * * * * *")), NOW, taken)
        assert change.cursor_slot == NOW + SECOND
        same = on_edit(before, cancelled.cursor_slot, spec(year, url="http://b/"), NOW, taken)
        assert same.cursor_slot == cancelled.cursor_slot

    def test_slots_that_were_due_but_not_claimed_get_their_row(self):
        change = on_edit(job(every(MINUTE)), NOW + MINUTE, spec(every(HOUR)), NOW + 3 * MINUTE + 1)
        assert (change.skipped[0].first, change.skipped[0].last) == (NOW + MINUTE, NOW + 3 * MINUTE)
        assert (change.skipped[0].slots, change.skipped[0].reason) == (3, "late")
        assert change.claimed_slot == NOW + 3 * MINUTE

    def test_a_one_off_moves(self):
        change = on_edit(job(at(NOW + HOUR)), NOW + HOUR, spec(at(NOW + MINUTE)), NOW)
        assert (change.moved, change.cursor_slot, change.state) == (True, NOW + MINUTE, "active")

    def test_a_one_off_that_is_held_ahead_moves_back_as_well(self):
        """Its claim left no trace in the job: that the cursor is gone says it. An earlier `at` must still fire."""
        change = on_edit(job(at(NOW + 2000)), None, spec(at(NOW + 1000)), NOW)
        assert (change.cursor_slot, change.state, change.claimed_slot) == (NOW + 1000, "active", NOW + 2000)

    def test_a_one_off_under_way_is_not_fired_twice(self):
        change = on_edit(job(at(NOW + 2000)), None, spec(at(NOW + 2000), url="http://b/"), NOW)
        assert (change.cursor_slot, change.moved, change.state) == (None, False, "active")

    def test_a_one_off_that_becomes_recurring_passes_the_claimed_slot_over(self):
        held = Taken.of([(NOW + 2000, NOW + 2000)])
        assert on_edit(job(at(NOW + 2000)), None, spec(every(2000)), NOW, held).cursor_slot == NOW + 4000
        assert on_edit(job(at(NOW + 2000)), None, spec(every(1000)), NOW, held).cursor_slot == NOW + 1000

    def test_an_instant_that_was_cancelled_before_is_not_fired_by_coming_back_to_it(self):
        cancelled = Taken.of([(NOW + HOUR, NOW + HOUR)])
        change = on_edit(job(at(NOW + DAY)), NOW + DAY, spec(at(NOW + HOUR)), NOW, cancelled)
        assert change.cursor_slot is None

    def test_an_ended_one_off_with_a_new_time_lives_again(self):
        change = on_edit(job(at(NOW), state="ended"), None, spec(at(NOW + HOUR)), NOW + MINUTE)
        assert (change.state, change.cursor_slot) == ("active", NOW + HOUR)

    def test_an_ended_one_off_with_another_target_stays_ended(self):
        change = on_edit(job(at(NOW), state="ended"), None, spec(at(NOW), url="http://b/"), NOW + MINUTE)
        assert (change.state, change.cursor_slot) == ("ended", None)

    def test_even_if_the_clock_was_set_back(self):
        change = on_edit(job(at(NOW), state="ended"), None, spec(at(NOW), url="http://b/"), NOW - HOUR)
        assert (change.state, change.cursor_slot) == ("ended", None)

    def test_a_dead_one_off_with_the_same_time_is_driven_again(self):
        ended, other = job(at(NOW), state="ended"), spec(at(NOW), url="http://b/")
        change = on_edit(ended, None, other, NOW + HOUR, dead=True)
        assert (change.state, change.driven, change.cursor_slot, change.moved) == ("active", True, None, False)
        assert on_edit(ended, None, spec(at(NOW), paused=True), NOW + HOUR, dead=True).state == "paused"
        assert not on_edit(ended, None, other, NOW + HOUR).driven
        moved = on_edit(ended, None, spec(at(NOW + DAY)), NOW + HOUR, dead=True)
        assert (moved.driven, moved.cursor_slot) == (False, NOW + DAY), "another time is another firing"

    def test_a_quarantined_job_lives_again(self):
        before = job(every(MINUTE), state="quarantined", reason="x")
        change = on_edit(before, NOW + MINUTE, spec(every(MINUTE), url="http://b/"), NOW + 90_000)
        assert (change.state, change.cursor_slot) == ("active", NOW + 2 * MINUTE)
        assert change.skipped[0].first == NOW + MINUTE

    def test_a_schedule_that_can_not_be_computed_any_more_can_be_replaced(self):
        broken = job(Schedule(cron="0 0 * * *", tz="Gone/Zone"), state="quarantined")
        change = on_edit(broken, NOW + MINUTE, spec(every(MINUTE)), NOW + HOUR)
        assert change.state == "active"
        assert (change.skipped[0].first, change.skipped[0].last, change.skipped[0].slots) == (
            NOW + MINUTE,
            NOW + MINUTE,
            1,
        )

    def test_pausing_by_edit_parks(self):
        change = on_edit(job(every(MINUTE)), NOW + MINUTE, spec(every(MINUTE), paused=True), NOW + 1)
        assert (change.state, change.parked, change.cursor_slot) == ("paused", True, NOW + MINUTE)

    def test_an_edit_of_a_job_paused_by_hand_leaves_it_paused(self):
        before = job(every(MINUTE), state="paused", paused=False)
        change = on_edit(before, NOW + MINUTE, spec(every(MINUTE), url="http://b/"), NOW + HOUR)
        assert (change.state, change.parked, change.moved) == ("paused", True, False)

    def test_a_new_schedule_of_a_paused_job_waits_for_the_resume(self):
        change = on_edit(job(every(MINUTE), state="paused"), NOW + MINUTE, spec(every(HOUR), paused=True), NOW + 1)
        assert (change.state, change.parked, change.cursor_slot) == ("paused", True, NOW + 1 + HOUR)

    def test_a_new_schedule_without_slots_ends_the_job(self):
        over = every(MINUTE, end=format_instant(NOW - HOUR))
        assert on_edit(job(every(MINUTE)), NOW + MINUTE, spec(over), NOW).state == "ended"


class TestPauseAndResume:
    def test_pause_keeps_the_cursor_where_it_is(self):
        change = on_pause(job(every(MINUTE)), NOW + MINUTE)
        assert (change.state, change.parked, change.moved) == ("paused", True, False)

    @pytest.mark.parametrize("state", ["ended", "quarantined"])
    def test_there_is_nothing_to_pause(self, state):
        assert on_pause(job(every(MINUTE), state=state), None).state == state

    def test_slots_that_passed_become_one_row(self):
        paused = job(every(MINUTE), state="paused", claimed_slot=NOW + MINUTE)
        change = on_resume(paused, NOW + 2 * MINUTE, NOW + 10 * MINUTE + 5)
        assert (change.skipped[0].first, change.skipped[0].last) == (NOW + 2 * MINUTE, NOW + 10 * MINUTE)
        assert (change.skipped[0].slots, change.skipped[0].reason) == (9, "paused")
        assert (change.state, change.cursor_slot, change.moved) == ("active", NOW + 11 * MINUTE, True)
        assert change.claimed_slot == NOW + 10 * MINUTE

    def test_the_count_goes_on_while_paused(self):
        change = on_resume(job(every(MINUTE, count=3), state="paused"), NOW + MINUTE, NOW + HOUR)
        assert (change.skipped[0].last, change.skipped[0].slots) == (NOW + 3 * MINUTE, 3)
        assert (change.state, change.cursor_slot, change.slots_used) == ("ended", None, 3)

    def test_a_short_pause_skips_nothing(self):
        change = on_resume(job(every(MINUTE), state="paused"), NOW + MINUTE, NOW + SECOND)
        assert (change.skipped, change.moved, change.cursor_slot) == ((), False, NOW + MINUTE)

    def test_a_one_off_fires_however_late(self):
        change = on_resume(job(at(NOW + MINUTE), state="paused"), NOW + MINUTE, NOW + HOUR)
        assert (change.skipped, change.moved, change.cursor_slot) == ((), False, NOW + MINUTE)
        assert (change.state, change.parked) == ("active", False)

    def test_resuming_an_active_job_changes_nothing(self):
        change = on_resume(job(every(MINUTE)), NOW + MINUTE, NOW + HOUR)
        assert (change.skipped, change.moved, change.state) == ((), False, "active")


class TestCancel:
    def test_the_job_goes_on_with_the_next_slot(self):
        change = on_cancel(job(every(MINUTE)), NOW + MINUTE)
        assert (change.cursor_slot, change.claimed_slot, change.slots_used) == (NOW + 2 * MINUTE, NOW + MINUTE, 1)

    def test_a_one_off_has_ended(self):
        assert on_cancel(job(ONE_OFF), NOW + MINUTE).state == "ended"

    def test_the_last_of_a_count_ends_the_job(self):
        assert on_cancel(job(every(MINUTE, count=2), slots_used=1), NOW + MINUTE).state == "ended"

    def test_a_paused_job_stays_paused(self):
        change = on_cancel(job(every(MINUTE), state="paused"), NOW + MINUTE)
        assert (change.state, change.parked) == ("paused", True)


class TestDelete:
    def test_what_came_due_behind_the_cursor_is_one_range(self):
        (gap,) = on_delete(job(every(MINUTE)), NOW + MINUTE, NOW + 5 * MINUTE + 1)
        assert (gap.first, gap.last, gap.slots, gap.reason) == (NOW + 2 * MINUTE, NOW + 5 * MINUTE, 4, "deleted")

    def test_of_a_paused_job_they_passed_while_it_was_paused(self):
        (gap,) = on_delete(job(every(MINUTE), state="paused"), NOW + MINUTE, NOW + 2 * MINUTE)
        assert (gap.slots, gap.reason) == (1, "paused")

    def test_nothing_else_was_due(self):
        assert on_delete(job(every(MINUTE)), NOW + MINUTE, NOW + 2 * MINUTE - 1) == []
        assert on_delete(job(every(MINUTE)), NOW + MINUTE, NOW) == []
        assert on_delete(job(every(MINUTE, count=1)), NOW + MINUTE, NOW + HOUR) == []
        assert on_delete(job(at(NOW)), NOW, NOW + HOUR) == []
        assert on_delete(job(every(MINUTE), state="ended"), None, NOW + HOUR) == []

    def test_a_schedule_that_can_not_be_computed_stops_no_delete(self):
        assert on_delete(job(Schedule(cron="0 0 * * *", tz="Gone/Zone"), state="quarantined"), NOW, NOW + HOUR) == []


def test_decisions_are_data():
    """Equal in, equal out: whoever repeats a transaction decides the same."""
    again = on_resume(job(every(MINUTE), state="paused"), NOW + MINUTE, NOW + HOUR)
    assert again == on_resume(job(every(MINUTE), state="paused"), NOW + MINUTE, NOW + HOUR)
    assert msgspec.json.encode(again)
