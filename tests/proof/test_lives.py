"""What the database's diary makes of a job: its versions, also those that no user was told of."""

from __future__ import annotations

from typing import Any

import pytest

from proof.checker.events import Wrote
from proof.checker.lives import Lives
from tests.proof.making import BEGIN, Tale

COUNTED = {"every": "3s", "count": 26}


class Diary:
    def __init__(self, schedule: dict[str, Any]) -> None:
        self.history: list[Any] = []
        self.wrote("create", wish={"schedule": schedule, "target": {"type": "webhook"}, "paused": False})

    def wrote(self, verb: Any, state: str | None = None, version: int | None = None, **more: Any) -> Diary:
        at = len(self.history) * 1000
        view = None if state is None else {"state": state, "version": version}
        self.history.append(Wrote(at=at, db=BEGIN + at, verb=verb, job=1, view=view, **more))
        return self

    def versions(self) -> list[tuple[int, str, bool]]:
        return [(one.number, one.verb, one.spec["paused"]) for one in Lives(self.history).versions[1]]


class TestResumeOfWhatHasEnded:
    def paused(self, schedule: dict[str, Any]) -> Diary:
        return Diary(schedule).wrote("pause", "paused", 2)

    def test_last_slot_passed_in_the_pause(self):
        diary = self.paused(COUNTED).wrote("resume", "ended", 3)
        assert diary.versions() == [(1, "create", False), (2, "pause", True), (3, "resume", False)]

    def test_nothing_is_left_to_pause_or_to_resume_after_that(self):
        diary = self.paused(COUNTED).wrote("resume", "ended", 3).wrote("pause", "ended", 3).wrote("resume", "ended", 3)
        assert len(diary.versions()) == 3
        assert diary.wrote("edit", "active", 4, wish={"schedule": {"every": "1s"}}).versions()[-1] == (4, "edit", False)

    def test_not_to_resume_it_without_a_reason_is_no_excuse(self):
        assert self.paused(COUNTED).wrote("resume", "ended", 2).versions()[-1] == (3, "resume", False)

    def test_only_firing_ended_in_the_pause(self):
        assert self.paused({"in": "5s"}).wrote("resume", "ended", 2).versions()[-1] == (2, "pause", True)

    @pytest.mark.parametrize(("version", "last"), [(2, (2, "pause", True)), (3, (3, "resume", False))])
    def test_slot_was_cancelled_in_the_pause(self, version, last):
        """Perhaps its last one: then it had ended before, and the answer says so."""
        diary = self.paused(COUNTED).wrote("cancel", runs=["1-1"]).wrote("resume", "ended", version)
        assert diary.versions()[-1] == last

    def test_edited_in_the_pause_to_times_that_passed(self):
        diary = self.paused(COUNTED).wrote("edit", "ended", 3, wish={"schedule": {"every": "3s", "end": "2020-01-01"}})
        assert diary.wrote("resume", "ended", 3).versions()[-1] == (3, "edit", True)

    def test_job_without_an_end_has_not_ended(self):
        diary = self.paused({"every": "3s"}).wrote("resume", "ended", 3)
        assert Lives(diary.history).mistaken == ["job 1 is resumed and told that it has ended"]


def test_late_after_an_edit_that_no_user_was_told_of():
    """The store alone gives no hints: a slot that is near when its schedule is committed is found by the next look."""
    tale = Tale({"cron": "*/10 * * * * *"}).fires(10_000, 20_000)
    tale.add(Wrote(at=2, db=BEGIN, verb="create", job=1, wish=tale.jobs[0].spec))
    wish = {"schedule": {"cron": "*/5 * * * * *"}}
    tale.add(Wrote(at=24_600, db=BEGIN + 24_600, verb="edit", job=1, wish=wish))
    tale.claimed(25_000, at=25_340).sent(25_000, at=25_348).recorded(25_000, at=25_360).entry(25_000)
    assert "late" not in tale.kinds()
    tale.claimed(30_000).sent(30_000, at=30_348).recorded(30_000, at=30_360).entry(30_000)
    assert "late" in tale.kinds()
