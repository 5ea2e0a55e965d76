"""P1 as a property: whatever the schedule, the policy and the moments of claims, each slot is covered exactly once."""

from __future__ import annotations

from itertools import islice

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from onthedot.model.instant import format_instant
from onthedot.model.schedule import Schedule
from onthedot.plan import on_cancel, on_claim, on_edit, on_pause, on_resume, timetable_of
from tests.unit.plan.jobs import DAY, HOUR, MINUTE, NOW, SECOND, every, job, spec

schedules = st.one_of(
    st.integers(1, 5000).map(lambda n: every(n * 100)),
    st.integers(1, 100).map(lambda n: every(n * SECOND, count=n)),
    st.integers(1, 50).map(lambda n: every(MINUTE, end=format_instant(NOW + n * 90 * SECOND))),
    st.sampled_from(["* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "*/20 * * * * *"]).flatmap(
        lambda cron: st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]).map(
            lambda tz: Schedule(cron=cron, tz=tz)
        )
    ),
)
policies = st.fixed_dictionaries(
    {"catch_up": st.sampled_from(["latest", "skip", "all"]), "catch_up_limit": st.integers(1, 20)}
)
waits = st.lists(
    st.one_of(st.integers(0, 2 * MINUTE), st.integers(0, 3 * HOUR), st.sampled_from([DAY, DAY + HOUR])),
    min_size=1,
    max_size=8,
)


LONG = 2000  # slots that are walked one by one; of a longer gap the ends are looked at, and that it is counted or not


class Ledger:
    """What was fired and what was given up, as ranges of slots: they must follow one another without gap or overlap."""

    def __init__(self, times, start):
        self.times = times
        self.start = start
        self.covered: list[tuple[int, int]] = []
        self.slots = 0

    def fire(self, *slots):
        self.covered.extend((slot, slot) for slot in slots)
        self.slots += len(slots)

    def skip(self, gaps):
        for gap in gaps:
            self._skip(gap)

    def _skip(self, skipped):
        slots = list(islice(walk(self.times, skipped.first - 1, skipped.last), LONG))
        assert slots[0] == skipped.first
        assert self.times.latest_until(skipped.last) == skipped.last
        if len(slots) < LONG:
            assert slots[-1] == skipped.last
            assert skipped.slots == len(slots)
        else:
            assert skipped.slots is None or skipped.slots >= LONG
        self.covered.append((skipped.first, skipped.last))
        self.slots += len(slots)

    def check(self, until):
        at = self.start
        for first, last in sorted(self.covered):
            assert first == self.times.next_after(at)
            at = last
        assert at == self.times.latest_until(until)


def walk(times, after, until):
    slot = times.next_after(after)
    while slot is not None and slot <= until:
        yield slot
        slot = times.next_after(slot)


@settings(max_examples=200)
@given(schedule=schedules, policy=policies, waits=waits)
def test_claims_cover_each_slot_once(schedule, policy, waits):
    record = job(schedule, **policy)
    times = timetable_of(record.spec, NOW)
    ledger, cursor, now = Ledger(times, NOW), times.next_after(NOW), NOW
    for wait in waits:
        if cursor is None:
            break
        now = max(now + wait, cursor - 2000)
        plan = on_claim(record, cursor, now)
        ledger.skip(plan.skipped)
        ledger.fire(*([plan.fire] if plan.fire is not None else []), *plan.backlog)
        assert len(plan.backlog) < policy["catch_up_limit"]
        record = msgspec.structs.replace(record, claimed_slot=plan.claimed_slot, slots_used=plan.slots_used)
        assert plan.successor is None or plan.successor > max(plan.claimed_slot, min(now, plan.claimed_slot))
        cursor = plan.successor
    if record.claimed_slot is not None:
        ledger.check(record.claimed_slot)
    if schedule.count is not None:
        assert ledger.slots <= schedule.count
        assert (cursor is None) == (ledger.slots == schedule.count)


verbs = st.lists(
    st.tuples(st.sampled_from(["claim", "pause", "resume", "retarget", "cancel"]), st.integers(0, 10 * MINUTE)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=200)
@given(schedule=schedules, policy=policies, verbs=verbs)
def test_verbs_between_claims_lose_no_slot_and_double_none(schedule, policy, verbs):
    record = job(schedule, **policy)
    times = timetable_of(record.spec, NOW)
    ledger, cursor, now = Ledger(times, NOW), times.next_after(NOW), NOW
    for verb, wait in verbs:
        now += wait
        if cursor is None:
            break
        if verb == "claim":
            if record.state != "active" or cursor - 2000 > now:
                continue
            plan = on_claim(record, cursor, now)
            ledger.skip(plan.skipped)
            ledger.fire(*([plan.fire] if plan.fire is not None else []), *plan.backlog)
            record = msgspec.structs.replace(record, claimed_slot=plan.claimed_slot, slots_used=plan.slots_used)
            cursor = plan.successor
            continue
        if verb == "cancel":
            ledger.fire(cursor)
            change = on_cancel(record, cursor)
        elif verb == "pause":
            change = on_pause(record, cursor)
        elif verb == "resume":
            change = on_resume(record, cursor, now)
        else:
            new = msgspec.structs.replace(record.spec, target=spec(schedule, url=f"http://{now}/").target)
            change = on_edit(record, cursor, new, now)
            record = msgspec.structs.replace(record, spec=new)
        ledger.skip(change.skipped)
        assert change.moved or change.cursor_slot == cursor
        cursor = change.cursor_slot
        record = msgspec.structs.replace(
            record, state=change.state, claimed_slot=change.claimed_slot, slots_used=change.slots_used
        )
    if record.claimed_slot is not None:
        ledger.check(record.claimed_slot)
    if cursor is not None:
        assert cursor == times.next_after(record.claimed_slot if record.claimed_slot is not None else NOW)
