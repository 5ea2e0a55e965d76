"""What a first claim does: fire, coalesce, skip, backlog, successor, end."""

from __future__ import annotations

import pytest

from onthedot.errors import Invalid
from onthedot.model.duration import Duration
from onthedot.model.instant import format_instant
from onthedot.model.policy import Policy
from onthedot.model.schedule import Schedule
from onthedot.plan import EXACT, expired, on_claim
from tests.unit.plan.jobs import DAY, HOUR, MINUTE, NOW, SECOND, every, job

FIRST = NOW + MINUTE


class TestOnTime:
    def test_the_slot_fires_and_the_next_is_the_cursor(self):
        plan = on_claim(job(every(MINUTE)), FIRST, FIRST)
        assert (plan.fire, plan.successor, plan.skipped, plan.backlog) == (FIRST, FIRST + MINUTE, [], [])
        assert (plan.claimed_slot, plan.slots_used) == (FIRST, 1)

    def test_ahead_of_its_instant(self):
        plan = on_claim(job(every(SECOND)), NOW + SECOND, NOW - SECOND)
        assert (plan.fire, plan.successor) == (NOW + SECOND, NOW + 2 * SECOND)

    def test_the_last_slot_ends_the_job(self):
        plan = on_claim(job(every(MINUTE, end=format_instant(FIRST))), FIRST, FIRST)
        assert (plan.fire, plan.successor) == (FIRST, None)

    def test_the_last_of_a_count_ends_the_job(self):
        plan = on_claim(job(every(MINUTE, count=3), slots_used=2), FIRST, FIRST)
        assert (plan.fire, plan.successor, plan.slots_used) == (FIRST, None, 3)

    def test_a_slot_that_new_zone_data_does_not_know_fires_once(self):
        """The cursor was written with other rules; it is what was promised."""
        plan = on_claim(job(Schedule(cron="0 * * * *")), NOW + 17, NOW + 20)
        assert plan.fire == NOW + 17
        assert not plan.skipped


class TestLatest:
    def test_the_newest_fires_the_older_are_one_row(self):
        plan = on_claim(job(every(MINUTE)), FIRST, FIRST + 10 * MINUTE + 7)
        assert (plan.fire, plan.successor) == (FIRST + 10 * MINUTE, FIRST + 11 * MINUTE)
        assert (plan.skipped[0].first, plan.skipped[0].last) == (FIRST, FIRST + 9 * MINUTE)
        assert (plan.skipped[0].slots, plan.skipped[0].reason) == (10, "coalesced")
        assert plan.slots_used == 11

    def test_a_day_late_still_fires(self):
        assert on_claim(job(every(3 * DAY)), NOW + 3 * DAY, NOW + 4 * DAY).fire == NOW + 3 * DAY

    def test_more_than_a_day_late_does_not(self):
        plan = on_claim(job(every(3 * DAY)), NOW + 3 * DAY, NOW + 4 * DAY + 1)
        assert plan.fire is None
        assert (plan.skipped[0].reason, plan.skipped[0].slots) == ("late", 1)
        assert plan.successor == NOW + 6 * DAY

    def test_an_exact_count_up_to_the_limit(self):
        exactly = on_claim(job(every(SECOND)), NOW + SECOND, NOW + EXACT * SECOND)
        assert exactly.skipped[0].slots == EXACT - 1

    def test_beyond_it_none(self):
        beyond = on_claim(job(every(SECOND)), NOW + SECOND, NOW + 3 * EXACT * SECOND)
        assert beyond.skipped[0].slots is None
        assert beyond.fire == NOW + 3 * EXACT * SECOND

    def test_a_year_of_seconds_is_decided_at_once(self):
        plan = on_claim(job(Schedule(cron="* * * * * *")), NOW + SECOND, NOW + 365 * DAY)
        assert (plan.fire, plan.successor) == (NOW + 365 * DAY, NOW + 365 * DAY + SECOND)


class TestSkip:
    @pytest.mark.parametrize(("late", "fires"), [(60_000, True), (60_001, False)])
    def test_a_minute_late_is_the_limit(self, late, fires):
        plan = on_claim(job(every(HOUR), catch_up="skip"), NOW + HOUR, NOW + HOUR + late)
        assert (plan.fire is not None) == fires
        assert (not plan.skipped) == fires

    def test_after_an_outage_it_waits_for_the_next(self):
        plan = on_claim(job(every(HOUR), catch_up="skip"), NOW + HOUR, NOW + 9 * HOUR + 2 * MINUTE)
        assert plan.fire is None
        assert (plan.skipped[0].slots, plan.skipped[0].reason) == (9, "late")
        assert plan.successor == NOW + 10 * HOUR


class TestAll:
    def test_every_missed_slot_becomes_a_run(self):
        plan = on_claim(job(every(HOUR), catch_up="all"), NOW + HOUR, NOW + 4 * HOUR)
        assert plan.fire == NOW + HOUR
        assert plan.backlog == [NOW + 2 * HOUR, NOW + 3 * HOUR, NOW + 4 * HOUR]
        assert not plan.skipped
        assert plan.successor == NOW + 5 * HOUR

    def test_up_to_its_limit_the_newest(self):
        plan = on_claim(job(every(HOUR), catch_up="all", catch_up_limit=2), NOW + HOUR, NOW + 4 * HOUR)
        assert (plan.fire, plan.backlog) == (NOW + 3 * HOUR, [NOW + 4 * HOUR])
        assert (plan.skipped[0].first, plan.skipped[0].last, plan.skipped[0].slots) == (NOW + HOUR, NOW + 2 * HOUR, 2)

    def test_but_not_what_has_expired(self):
        late = job(every(HOUR), catch_up="all", expires_in=Duration(90 * MINUTE))
        plan = on_claim(late, NOW + HOUR, NOW + 4 * HOUR)
        assert (plan.fire, plan.backlog) == (NOW + 3 * HOUR, [NOW + 4 * HOUR])


class TestCount:
    def test_missed_slots_are_counted(self):
        plan = on_claim(job(every(MINUTE, count=5)), FIRST, FIRST + 2 * MINUTE)
        assert (plan.slots_used, plan.successor) == (3, FIRST + 3 * MINUTE)

    def test_slots_beyond_the_count_do_not_exist(self):
        plan = on_claim(job(every(MINUTE, count=5), slots_used=3), FIRST, FIRST + HOUR)
        assert (plan.fire, plan.successor, plan.slots_used) == (FIRST + MINUTE, None, 5)
        assert plan.skipped[0].slots == 1

    def test_a_long_count_and_a_long_outage(self):
        plan = on_claim(job(Schedule(cron="* * * * * *", count=20_000)), NOW + SECOND, NOW + 365 * DAY)
        assert plan.slots_used == 20_000
        assert plan.successor is None
        assert plan.fire is None, "its newest slot is almost a year late"


class TestExpires:
    def test_a_recurring_slot(self):
        plan = on_claim(job(every(HOUR), expires_in=Duration(SECOND)), NOW + HOUR, NOW + HOUR + 1001)
        assert plan.fire is None

    @pytest.mark.parametrize(("late", "over"), [(0, False), (SECOND, False), (SECOND + 1, True)])
    def test_one_offs_and_runs_by_hand(self, late, over):
        assert expired(Policy(expires_in=Duration(SECOND)), NOW, NOW + late) == over

    def test_without_it_nothing_expires(self):
        assert not expired(Policy(), NOW, NOW + 365 * DAY)


def test_a_schedule_that_can_not_be_computed_says_so():
    with pytest.raises(Invalid, match="unknown time zone"):
        on_claim(job(Schedule(cron="0 0 * * *", tz="Gone/Zone")), NOW, NOW)
