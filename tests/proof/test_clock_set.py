"""The database's clock is set back and passes the same times again: what the rules make of that, each alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from proof.checker.coverage import check_coverage
from proof.checker.events import Claimed, Recorded, Stepped, Wrote
from proof.checker.ledger import Ledger
from proof.checker.liveness import check_liveness
from proof.checker.overlaps import check_overlaps
from proof.checker.policies import check_policies
from proof.checker.story import Story, Violation
from proof.sim.run import record
from tests.proof.making import BEGIN, END, Tale

Rule = Callable[[Story], Iterator[Violation]]
BACK = 15_000


class Played(Tale):
    """One whose diary is known: every row is judged to the millisecond. The clock is set back at 30 s, by 15 s."""

    def __init__(self, schedule: dict[str, Any] | None = None, **policy: Any) -> None:
        super().__init__(schedule, **policy)
        self.wrote("create", 0, wish=self.jobs[0].spec)
        self.add(Stepped(at=30_000, by_ms=-BACK, highest=BEGIN + 30_000, db=BEGIN + 15_000))

    @staticmethod
    def shown(at: int) -> int:
        return BEGIN + (at if at <= 30_000 else at - BACK)

    def wrote(self, verb: Any, at: int, **more: Any) -> Played:
        self.add(Wrote(at=at, db=self.shown(at), verb=verb, job=1, **more))
        return self

    def ran(self, slot: int, begin: int, end: int) -> Played:
        run = f"1-{BEGIN + slot}"
        self.add(Claimed(at=begin, db=self.shown(begin), node="a", run=run, token=1))
        self.add(Recorded(at=end, db=self.shown(end), node="a", run=run, token=1))
        self.entry(slot)
        return self

    def ledger(self) -> Ledger:
        shown = msgspec.structs.replace(super().ledger(), now=BEGIN + END - BACK)
        return msgspec.structs.replace(shown, whole=True)

    def given_up(self, slot: int, *, clock: int = 0, reason: str = "overlap", token: int = 0) -> Played:
        """clock: 0 before it was set back, 1 after that."""
        self.entry(slot, "skipped", reason=reason, token=token, slots=1, finished_at=BEGIN + slot + 1, clock=clock)
        return self

    def story(self) -> Story:
        return Story(self.history(), self.ledger())

    def breaks(self, rule: Rule) -> set[str]:
        return {violation.kind for violation in rule(self.story())}


def clock_set_often() -> tuple[Ledger, dict[str, int]]:
    """A played history with rows from before, between and after times at which the clock was set; and how often it had
    been set when each run was recorded, as the diary knows by itself."""
    for seed in range(1, 20):
        history, ledger, _, _ = record(seed, minutes=2.0, kinds=("clock_ahead",))
        story = Story(history, ledger)
        known = {}
        for entry in ledger.entries:
            turn = story.lives.turns.get(entry.id, {}).get(entry.token)
            if turn is not None and turn.recorded is not None:
                known[entry.id] = sum(step.at < turn.recorded.at for step in story.steps)
        if len(set(known.values())) > 2:
            return ledger, known
    pytest.fail("with none of the seeds the clock is set between runs")


class TestWhenARowWasWritten:
    @pytest.mark.parametrize(("clock", "at"), [(0, 20_001), (1, 35_001)])
    def test_before_the_clock_was_set_or_after_it(self, clock: int, at: int) -> None:
        tale = Played().given_up(20_000, clock=clock)
        assert tale.story().written(tale.entries[0]) == at

    def test_nobody_knows_if_nobody_noted_it(self) -> None:
        tale = Played().given_up(20_000)
        assert tale.story().written(msgspec.structs.replace(tale.entries[0], clock=None)) is None

    def test_the_simulation_notes_it(self) -> None:
        ledger, known = clock_set_often()
        assert all(entry.clock is not None for entry in ledger.entries)
        noted = {entry.id: entry.clock for entry in ledger.entries if entry.id in known}
        assert noted == known


class TestSlotsOfASchedule:
    """Each 10 s, and from 35 s (20 s by the clock) on each 7 s."""

    def edited(self) -> Played:
        tale = Played().wrote("edit", 35_000, wish={"schedule": {"every": "7s"}})
        tale.entry(10_000).entry(20_000).entry(27_000).entry(34_000).entry(41_000).waits(48_000)
        return tale

    def test_given_up_before_the_clock_was_set_back_behind_the_change(self) -> None:
        assert self.edited().given_up(30_000, clock=0).breaks(check_coverage) == set()

    def test_given_up_after_the_change(self) -> None:
        assert self.edited().given_up(30_000, clock=1).breaks(check_coverage) == {"phantom"}

    @pytest.mark.parametrize(
        ("reason", "clock", "broken"), [("deleted", 0, set()), ("deleted", 1, {"phantom"}), (None, 0, {"phantom"})]
    )
    def test_cancelled_because_its_job_was_deleted_in_that_future(
        self, reason: str | None, clock: int, broken: set[str]
    ) -> None:
        """It waited for its lane, and its job was restored and changed since."""
        tale = self.edited()
        tale.entry(30_000, "cancelled", reason=reason, token=0, finished_at=BEGIN + 30_001, clock=clock)
        assert tale.breaks(check_coverage) == broken

    @pytest.mark.parametrize(("edited", "broken"), [(25_000, False), (35_000, True), (None, True)])
    def test_a_range_tells_its_number_unless_its_schedule_was_replaced_in_that_future(
        self, edited: int | None, broken: bool
    ) -> None:
        tale = Played()
        if edited is not None:
            tale.wrote("edit", edited, wish={"schedule": {"cron": "0 0 1 1 *"}})
        tale.entry(10_000, "skipped", until=20_000, reason="late", slots=None, token=0, clock=0)
        assert ("miscounted" in tale.breaks(check_coverage)) == broken

    @pytest.mark.parametrize("token", [0, 1])
    def test_given_up_for_a_future_that_has_not_come(self, token: int) -> None:
        """Unless a node had it in its hands: its token would be given again."""
        tale = Played()
        tale.entry(10_000).entry(20_000).entry(30_000).entry(40_000).waits(50_000)
        far = {"reason": "paused", "token": token, "slots": 1, "clock": 0, "finished_at": BEGIN + 29_000}
        tale.entry(60_000, "skipped", **far)
        story = tale.story()
        found = {violation.kind for violation in check_coverage(story)}
        assert found == (set() if token else {"ahead"})
        assert sum(story.excuses.values()) == token


class TestLanes:
    """Who holds one from 25 s on until 40 s, which is 25 s again by the clock."""

    def held(self, overlap: str) -> Played:
        return Played(overlap=overlap).ran(20_000, 25_000, 40_000)

    @pytest.mark.parametrize(("slot", "clock", "broken"), [(29_000, 0, False), (16_000, 1, False), (16_000, 0, True)])
    def test_given_up_while_somebody_ran(self, slot: int, clock: int, broken: bool) -> None:
        tale = self.held("skip").given_up(slot, clock=clock)
        assert tale.breaks(check_overlaps) == ({"overlap"} if broken else set())

    def test_given_up_while_another_waited_whose_time_came_twice(self) -> None:
        """It was due at 27 s, is claimed at 45 s (30 s by the clock), and waited at 29 s as at 36 s (21 s)."""
        for slot, clock in ((29_000, 0), (21_000, 1)):
            tale = self.held("queue").given_up(slot, clock=clock)
            assert tale.breaks(check_overlaps) == {"overlap"}, "nobody waits"
            assert tale.ran(27_000, 45_000, 46_000).breaks(check_overlaps) == set()

    def test_replaced_by_a_slot_that_was_fired_before(self) -> None:
        """The slot of 29 s is fired before the clock is set back: when its time comes again, who runs goes on."""
        tale = Played(overlap="replace").ran(26_000, 41_000, 46_000)
        assert tale.ran(29_000, 29_000, 29_500).breaks(check_overlaps) == set()
        assert tale.ran(28_000, 47_000, 48_000).breaks(check_overlaps) == {"overlap"}, (
            "one that was not does replace it"
        )

    @pytest.mark.parametrize(
        ("given_up", "clock", "edited", "excused"),
        [
            (20_001, 0, 25_000, True),
            (20_001, 0, 35_000, True),
            (20_001, 0, None, False),  # its schedule still has the newer one
            (20_001, 0, 12_000, False),  # it had it no more
            (20_001, 1, 40_000, False),  # the clock was right
            (19_999, 0, 25_000, False),  # the newer one had not come
        ],
    )
    def test_replaced_by_a_slot_that_was_taken_back(
        self, given_up: int, clock: int, edited: int | None, excused: bool
    ) -> None:
        """That of 20 s replaced that of 10 s and was given up itself. Then the clock is set back to 15 s, and its
        schedule was replaced: it has no row any more, and does not come again."""
        tale = Played(overlap="replace").ran(0, 15_000, 21_000).ran(0, 33_000, 39_000)
        if edited is not None:
            tale.wrote("edit", edited, wish={"schedule": {"cron": "0 0 1 1 *"}})
        tale.entry(10_000, "skipped", reason="overlap", token=0, slots=1, finished_at=BEGIN + given_up, clock=clock)
        story = tale.story()
        assert [violation.kind for violation in check_overlaps(story)] == ["overlap"] * (not excused)
        assert (
            story.excuses["the clock was set back, and the row of a slot that had replaced another is gone"] == excused
        )

    @pytest.mark.parametrize("deleted", [True, False])
    def test_replaced_by_a_slot_that_was_taken_back_and_does_not_come_without_its_job(self, deleted: bool) -> None:
        tale = Played(overlap="replace").ran(0, 15_000, 21_000)
        tale.entry(10_000, "skipped", reason="overlap", token=0, slots=1, finished_at=BEGIN + 20_001, clock=0)
        if deleted:
            tale.wrote("delete", 32_000).jobs.clear()
        assert tale.breaks(check_overlaps) == (set() if deleted else {"overlap"})

    def test_replaced_by_a_slot_that_lies_before_what_the_clock_was_set_to(self) -> None:
        """Nobody takes that back."""
        tale = Played({"every": "7s"}, overlap="replace").ran(0, 11_000, 16_000)
        tale.wrote("edit", 25_000, wish={"schedule": {"cron": "0 0 1 1 *"}})
        tale.entry(7_000, "skipped", reason="overlap", token=0, slots=1, finished_at=BEGIN + 14_001, clock=0)
        assert tale.breaks(check_overlaps) == {"overlap"}


class TestWhatWaits:
    def test_a_retry_that_comes_in_an_hour(self) -> None:
        tale = Played()
        tale.waits(20_000, cursor=False, tries=1, ready_at=BEGIN + 3_600_000)
        assert "stuck" in tale.breaks(check_liveness)

    @pytest.mark.parametrize(("slot", "stuck"), [(30_000, False), (90_000, True)])
    def test_a_slot_whose_time_the_clock_has_shown_waits_for_it(self, slot: int, stuck: bool) -> None:
        tale = Played()
        tale.add(Stepped(at=31_000, by_ms=-BACK, highest=BEGIN + 30_000, db=BEGIN + 1000))
        tale.waits(slot, cursor=False, ready_at=BEGIN + slot)
        story = Story(tale.history(), msgspec.structs.replace(tale.ledger(), now=BEGIN + 10_000))
        assert [violation.kind for violation in check_liveness(story)] == ["stuck"] * stuck


def test_what_was_due_when_the_schedule_changed_is_told_from_what_else_happened_then() -> None:
    """A cancel and an edit in one millisecond: the edit gave it up."""
    tale = Tale({"every": "10s"}, catch_up="skip")
    spec = tale.jobs[0].spec
    tale.add(Wrote(at=0, db=BEGIN, verb="create", job=1, wish=spec))
    tale.add(Wrote(at=24_999, db=BEGIN + 24_999, verb="cancel", job=1, runs=["1-1"]))
    late = {"reason": "late", "token": 0, "slots": 1, "finished_at": BEGIN + 25_000}
    tale.entry(20_000, "skipped", **late)

    def broken() -> list[Violation]:
        return list(check_policies(Story(tale.history(), msgspec.structs.replace(tale.ledger(), whole=True))))

    assert [violation.kind for violation in broken()] == ["catch_up"]
    tale.add(Wrote(at=25_000, db=BEGIN + 25_000, verb="edit", job=1, wish={"schedule": {"every": "7s"}}))
    assert broken() == []
