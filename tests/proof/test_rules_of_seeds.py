"""Rules of the checker that a seed of the simulation once showed to be too strict: each told by a small history, with
the neighbour that is still a mistake."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from proof.checker.callbacks import check_callbacks
from proof.checker.destinations import FAILURES, FORGOTTEN, PROBE, check_destinations
from proof.checker.events import Completed, Received, Recorded, Waited, WaitingRow, Wrote
from proof.checker.ledger import Attempt
from proof.checker.liveness import check_liveness
from proof.checker.policies import check_policies
from proof.checker.results import check_results
from proof.checker.story import Story
from tests.proof.making import BEGIN, Tale

RUN = f"1-{BEGIN + 10_000}"


def called(tale: Tale, at: int, answer: Any, outcome: str | None) -> None:
    """A webhook to one host; with no outcome its result was never recorded."""
    slot = at - 2
    tale.claimed(slot, at=at - 500)
    (send,) = Tale().sent(slot, at=at, answer=answer).events[-1:]
    tale.add(msgspec.structs.replace(send, asked={"target": {"url": "http://host1"}}))
    if outcome is not None:
        tale.recorded(slot, at=at + 10, outcome=outcome)


def breakers(tale: Tale) -> set[str]:
    story = Story(tale.history(), msgspec.structs.replace(tale.ledger(), hosts=True, slots={"webhook": 100}))
    return {violation.kind for violation in check_destinations(story)}


class TestForgottenBreakers:
    """Seed 63: ten failures in a row open a breaker, and a minute without calls after its probe was due forgets it."""

    def after(self, gap: int) -> set[str]:
        tale = Tale()
        for number in range(FAILURES):
            called(tale, 1000 * number + 1000, "error", "error")
        last = 1000 * FAILURES
        called(tale, last + gap, "error", "error")
        called(tale, last + gap + 2000, "ok", "ok")
        return breakers(tale)

    def test_two_calls_after_a_long_pause_are_no_probes(self):
        assert self.after(FORGOTTEN + 20) == set()

    def test_before_that_one_call_in_ten_seconds(self):
        assert self.after(PROBE + 100) == {"breaker"}
        assert self.after(2000) == {"breaker"}


class TestAnsweredBeforeItWasRecorded:
    """A call that was answered well closes the breaker, also if its result was never recorded: its callback may have
    overtaken it."""

    @pytest.mark.parametrize(("answer", "found"), [("ok", set()), ("error", {"breaker"})])
    def test_it_closes_the_breaker(self, answer, found):
        tale = Tale()
        for number in range(FAILURES):
            called(tale, 1000 * number + 1000, "error", "error")
        probe = 1000 * FAILURES + PROBE + 100
        called(tale, probe, answer, None if answer == "ok" else "error")
        called(tale, probe + 1000, "ok", "ok")
        assert breakers(tale) == found


class TestTimesAfterTheLastOfACount:
    """Seed 65: `retry.until: next_slot` means the schedule's next time, whether or not `count` lets it fire."""

    def ended(self, reason: str, **schedule: Any) -> set[str]:
        tale = Tale({"every": "10s", **schedule}, retry={"attempts": 5, "backoff": "15s", "until": "next_slot"})
        tale.add(Wrote(at=0, db=BEGIN, verb="create", job=1, wish=tale.jobs[0].spec))
        tale.claimed(10_000, at=10_000).sent(10_000, at=10_100, answer="error", took=300)
        tale.recorded(10_000, at=10_410, outcome="error")
        told = {"started_at": BEGIN + 10_100, "finished_at": BEGIN + 10_400, "lateness_ms": 100, "node": "a"}
        tale.entry(10_000, "failed", reason=reason, outcome={"kind": "error"}, duration_ms=300, **told)
        story = Story(tale.history(), msgspec.structs.replace(tale.ledger(), whole=True))
        return {violation.kind for violation in check_results(story)} & {"policy"}

    def test_the_last_of_a_count_is_given_up_like_the_others(self):
        assert self.ended("next_slot") == set()
        assert self.ended("next_slot", count=1) == set()

    def test_not_for_another_reason(self):
        assert self.ended("max_age", count=1) == {"policy"}


class TestLateWordOfAnAcceptance:
    """Seed 35: who was given up after the send may still say that its call was accepted. The time to complete it counts
    from the send then."""

    def waited(self, *, lost: bool, finished: int) -> list[str]:
        tale = Tale(completion="callback", completion_timeout="10s", retry={"attempts": 1})
        tale.add(Wrote(at=0, db=BEGIN, verb="create", job=1, wish=tale.jobs[0].spec))
        tale.claimed(10_000, at=10_000)
        tale.add(
            Received(at=10_100, db=BEGIN + 10_100, run=RUN, job=1, token=1, answer="ok", took=5, node="a", of=1),
            Recorded(at=18_000, node="a", run=RUN, token=1, outcome="accepted", db=BEGIN + 18_000),
        )
        if lost:
            tale.lost("a", 16_000)
        attempt = Attempt(
            attempt=1,
            node="a",
            started_at=BEGIN + 10_100,
            finished_at=BEGIN + finished,
            outcome="timeout",
            completion="timeout",
            try_number=1,
        )
        tale.entry(10_000, "failed", reason="attempts", attempts=[attempt], finished_at=BEGIN + finished)
        story = Story(tale.history(), msgspec.structs.replace(tale.ledger(), whole=True))
        return [violation.text for violation in check_callbacks(story) if "to be completed" in violation.text]

    def test_it_counts_from_the_send(self):
        assert self.waited(lost=True, finished=20_150) == []
        assert len(self.waited(lost=True, finished=15_000)) == 1

    def test_of_a_live_node_from_the_acceptance(self):
        assert len(self.waited(lost=False, finished=20_150)) == 1
        assert self.waited(lost=False, finished=28_050) == []


class TestCancelledAhead:
    """Seed 473: a slot that a user cancelled before it came is not one that a late claim fires instead."""

    def fired(self, *, cancelled_at: int, token: int = 0) -> set[str]:
        tale = Tale(catch_up="latest")
        tale.add(Wrote(at=0, db=BEGIN, verb="create", job=1, wish=tale.jobs[0].spec))
        run = f"1-{BEGIN + 20_000}"
        tale.add(Wrote(at=cancelled_at, db=BEGIN + cancelled_at, verb="cancel", job=1, runs=[run]))
        tale.claimed(10_000, at=22_000).sent(10_000, at=22_010).recorded(10_000, at=22_100).entry(10_000)
        tale.entry(20_000, "cancelled", reason="cancelled", token=token)
        return policies(tale)

    def test_the_slot_before_it_is_the_newest(self):
        assert self.fired(cancelled_at=5000) == set()

    def test_not_if_it_was_cancelled_after_the_claim(self):
        assert self.fired(cancelled_at=25_000) == {"catch_up"}

    def test_not_if_it_had_been_claimed(self):
        assert self.fired(cancelled_at=5000, token=1) == {"catch_up"}

    def test_what_is_given_up_is_judged_without_it(self):
        """Both slots that are left have expired, the cancelled one had not: they are late, not coalesced."""
        assert self.given_up("late", cancelled_at=5000) == set()
        assert self.given_up("coalesced", cancelled_at=5000) == {"catch_up"}
        assert self.given_up("late", cancelled_at=35_000) == {"catch_up"}

    def given_up(self, reason: str, *, cancelled_at: int) -> set[str]:
        tale = Tale(catch_up="latest", expires_in="5s")
        tale.add(Wrote(at=0, db=BEGIN, verb="create", job=1, wish=tale.jobs[0].spec))
        run = f"1-{BEGIN + 30_000}"
        tale.add(Wrote(at=cancelled_at, db=BEGIN + cancelled_at, verb="cancel", job=1, runs=[run]))
        range_of = {"until": 20_000, "slots": 2, "token": 0, "finished_at": BEGIN + 32_000}
        tale.entry(10_000, "skipped", reason=reason, **range_of)
        tale.entry(30_000, "cancelled", reason="cancelled", token=0)
        return policies(tale)


class TestPassedWhilePaused:
    """A resume goes on with the next slot. What passed before is one range, whatever the job's catch-up is."""

    def resumed(self, fired: int, *, claimed: int | None = None) -> set[str]:
        tale = Tale(catch_up="latest")
        tale.add(Wrote(at=0, db=BEGIN, verb="create", job=1, wish=tale.jobs[0].spec))
        tale.add(Wrote(at=15_000, db=BEGIN + 15_000, verb="pause", job=1, view={"state": "paused"}))
        if claimed is not None:
            tale.claimed(fired, at=claimed)
        tale.add(Wrote(at=35_000, db=BEGIN + 35_000, verb="resume", job=1, view={"state": "active"}))
        if claimed is None:
            tale.claimed(fired, at=max(36_000, fired - 2000))
        at = max(36_100, fired + 2)
        return policies(tale.sent(fired, at=at).recorded(fired, at=at + 10).entry(fired))

    def test_the_next_slot_fires(self):
        assert self.resumed(40_000) == set()

    def test_the_last_slot_of_the_pause_does_not(self):
        assert self.resumed(30_000) == {"catch_up"}

    def test_one_that_came_while_the_resume_was_written_may(self):
        """Seed 682: the resume had asked for the time before, on a slow way to the database."""
        assert self.resumed(34_000) == set()

    def test_one_that_was_claimed_before_the_pause_may(self):
        assert self.resumed(16_000, claimed=14_000) == set()


def policies(tale: Tale) -> set[str]:
    story = Story(tale.history(), msgspec.structs.replace(tale.ledger(), whole=True))
    return {violation.kind for violation in check_policies(story)}


class TestReleasedInTheSameMillisecond:
    """Seed 902 of `--profile stops`: a callback was given up, and the next run of the lane was claimed in the same
    millisecond. The first is dated by a row alone."""

    def overlaps(self, claimed: int) -> list[str]:
        tale = Tale(overlap="queue", completion="callback", completion_timeout="10s", retry={"attempts": 1})
        tale.add(Wrote(at=0, db=BEGIN, verb="create", job=1, wish=tale.jobs[0].spec))
        tale.claimed(10_000, at=10_000)
        tale.add(Received(at=10_001, db=BEGIN + 10_001, run=RUN, job=1, token=1, answer="ok", took=5, node="a", of=1))
        tale.add(Recorded(at=10_100, node="a", run=RUN, token=1, outcome="accepted", db=BEGIN + 10_100))
        attempt = Attempt(
            attempt=1,
            node="a",
            started_at=BEGIN + 10_001,
            finished_at=BEGIN + 20_100,
            outcome="timeout",
            completion="timeout",
            try_number=1,
        )
        tale.entry(10_000, "failed", reason="attempts", attempts=[attempt], finished_at=BEGIN + 20_100)
        tale.claimed(20_000, at=claimed).entry(20_000)
        story = Story(tale.history(), msgspec.structs.replace(tale.ledger(), whole=True))
        return [violation.kind for violation in check_callbacks(story) if violation.kind == "overlap"]

    def test_it_is_no_overlap(self):
        assert self.overlaps(20_100) == self.overlaps(20_099) == []

    def test_before_that_it_is(self):
        assert self.overlaps(20_098) == ["overlap"]


class TestLateForItsDestination:
    """Seed 545: a run may wait on its node for up to a second while its destination hangs, before it is given back."""

    @pytest.mark.parametrize(
        ("ill", "late", "told"),
        [
            ("http://host1", 400, False),
            ("http://host1", 1400, True),  # by then it has been given back
            ("http://host2", 400, True),  # another one
        ],
    )
    def test_only_its_own_and_not_for_long(self, ill: str, late: int, told: bool):
        tale = Tale().fires(20_000, 30_000, 40_000, 50_000).waits(60_000).claimed(10_000)
        (send,) = Tale().sent(10_000, at=10_000 + late).events[-1:]
        tale.add(msgspec.structs.replace(send, asked={"target": {"url": "http://host1"}}))
        tale.recorded(10_000, at=10_010 + late).entry(10_000).fault("host", 9_000, 12_000, ill)
        story = Story(tale.history(), msgspec.structs.replace(tale.ledger(), hosts=True))
        assert ("late" in {violation.kind for violation in check_liveness(story)}) is told


class TestWaitingForItsLane:
    """Seed 985: twenty runs of a job that may not overlap had waited for a host. When it was well they ran one after
    the other. Each keeps those behind it waiting until its callback comes."""

    def waited(self, until: int, *, before: int = 10_000, over: int = 40_000, **policy: Any) -> tuple[set[str], int]:
        """One run waits for its host from 20 s on, which is well; another one holds the lane from 21 s on."""
        policy = {"overlap": "skip", "completion": "callback", **policy}
        tale = Tale(**policy)
        tale.add(Wrote(at=0, db=BEGIN, verb="create", job=1, wish=tale.jobs[0].spec))
        row = WaitingRow(token=1, due=BEGIN + 20_000, tries=0)
        run = f"1-{BEGIN + 20_000}"
        tale.claimed(20_000, at=20_000).entry(20_000, "failed", reason="attempts").entry(before)
        tale.add(
            Waited(at=20_001, db=BEGIN, node="a", run=run, token=1, host="http://host1", before=row, now=row),
        )
        tale.claimed(before, at=21_000, token=2)
        (send,) = Tale().sent(before, at=21_002, token=2).events[-1:]
        tale.add(msgspec.structs.replace(send, of=1)).recorded(before, at=21_010, token=2, outcome="accepted")
        other = f"1-{BEGIN + before}"
        tale.add(Completed(at=over, db=BEGIN, run=other, of=1, told="done", standing="current", wrote=True))
        tale.claimed(20_000, at=until, token=2)
        ledger = msgspec.structs.replace(tale.ledger(), at=200_000, hosts=True, slots={"webhook": 100})
        story = Story(tale.history(), ledger)
        return {violation.kind for violation in check_destinations(story)}, sum(story.excuses.values())

    def test_the_time_in_which_it_was_held_does_not_count(self):
        assert self.waited(60_000) == (set(), 0)
        assert self.waited(79_000) == (set(), 1), "its lane was held for 19 s, and free for 40"
        assert self.waited(79_100) == ({"waiting"}, 0)

    def test_before_the_callback_and_after_it(self):
        assert self.waited(79_000, over=30_000) == ({"waiting"}, 0)

    def test_who_was_due_later_must_not_keep_it_waiting(self):
        assert self.waited(79_000, before=25_000) == ({"waiting"}, 0)

    def test_runs_that_may_overlap_wait_for_no_lane(self):
        assert self.waited(79_000, overlap="allow") == ({"waiting"}, 0)
