"""Rows against the receiver, where chance or a slow way to the database leaves more than one thing to say."""

from __future__ import annotations

from typing import Any

import msgspec

from proof.checker.events import Received, Wrote
from proof.checker.ledger import Attempt
from proof.checker.results import check_results
from proof.checker.story import Story
from tests.proof.making import BEGIN, Tale


class Attempted(Tale):
    """One run, due at 10 s and claimed then, of a job whose every row is judged."""

    def __init__(self, **policy: Any) -> None:
        super().__init__(None, **policy)
        self.add(Wrote(at=0, db=BEGIN, verb="create", job=1, wish=self.jobs[0].spec))
        self.claimed(10_000, at=10_000)

    def ended(self, outcome: str, *, began: int, at: int, status: str, reason: str | None, **more: Any) -> Attempted:
        self.recorded(10_000, at=at + 10, outcome=outcome)
        times = {"started_at": BEGIN + began, "finished_at": BEGIN + at, "lateness_ms": began - 10_000, "node": "a"}
        told = {"outcome": {"kind": outcome}, "duration_ms": at - began, **times, **more}
        self.entry(10_000, status, reason=reason, **{"tries": 1, **told})
        return self

    def broken(self) -> dict[str, str]:
        story = Story(self.history(), msgspec.structs.replace(self.ledger(), whole=True))
        return {violation.kind: violation.text for violation in check_results(story)}


class TestChance:
    """After 400 ms, with a backoff of 750 to 1,250 ms, `max_age` may be over when it is tried again, or not."""

    def failed(self, overlap: str, backoff: str, status: str, reason: str) -> dict[str, str]:
        retry = {"attempts": 4, "backoff": backoff, "max_age": "1500ms"}
        tale = Attempted(overlap=overlap, retry=retry)
        tale.sent(10_000, at=10_100, answer="error", took=300)
        return tale.ended("error", began=10_100, at=10_400, status=status, reason=reason).broken()

    def test_who_would_be_tried_again_may_be_replaced(self) -> None:
        assert self.failed("replace", "1s", "cancelled", "replaced") == {}
        assert self.failed("replace", "1s", "failed", "max_age") == {}

    def test_not_if_nobody_replaces(self) -> None:
        assert set(self.failed("allow", "1s", "cancelled", "replaced")) == {"policy"}

    def test_not_if_it_is_surely_over(self) -> None:
        assert set(self.failed("replace", "4s", "cancelled", "replaced")) == {"policy"}


class TestStopped:
    """Who stops a run is named: a newer run, or a user."""

    def stopped(self, reason: str | None, *, by_user: bool = False) -> set[str]:
        tale = Attempted(overlap="replace")
        if by_user:
            run = f"1-{BEGIN + 10_000}"
            tale.add(Wrote(at=10_200, db=BEGIN + 10_200, verb="cancel", job=1, runs=[run]))
        tale.sent(10_000, at=10_100, answer="gone", took=400)
        return set(tale.ended("cancelled", began=10_100, at=10_400, status="cancelled", reason=reason).broken())

    def test_by_a_newer_run(self) -> None:
        assert "blamed" not in self.stopped("replaced")
        assert "blamed" in self.stopped(None)

    def test_by_a_user(self) -> None:
        assert "blamed" not in self.stopped(None, by_user=True)


class TestSlowToKnowTheTime:
    """A node takes it to be 220 ms earlier than it is when it begins, and only 30 ms when its time-out is over."""

    def timed_out(self, at: int) -> Attempted:
        tale = Attempted(timeout="3s", retry={"attempts": 1})
        tale.sent(10_000, at=10_300, took=4000)
        return tale.ended(
            "timeout", began=10_080, at=at, status="failed", reason="attempts", duration_ms=3000, error="timed out"
        )

    def slow(self, tale: Attempted) -> Attempted:
        tale.fault("slow", 5000, 20_000)
        return tale

    def test_it_ends_when_it_did(self) -> None:
        assert self.slow(self.timed_out(13_270)).broken() == {}

    def test_nor_later(self) -> None:
        assert set(self.slow(self.timed_out(13_460)).broken()) == {"time"}

    def test_with_nothing_wrong_it_knows(self) -> None:
        assert set(self.timed_out(13_270).broken()) == {"time"}


class TestAskedForADate:
    """Called at 10,010 it says 300 ms later that it wants no call before 14,000: by the database's time."""

    def tried_again(self, at: int, *, slow: bool = False) -> dict[str, str]:
        tale = Attempted(retry={"attempts": 3, "backoff": "1s"})
        answered: dict[str, Any] = {
            "answer": "error",
            "took": 300,
            "retry_after": 3690,
            "retry_at": BEGIN + 14_000,
            "node": "a",
        }
        run = f"1-{BEGIN + 10_000}"
        tale.add(Received(at=10_010, db=BEGIN + 10_010, run=run, job=1, token=1, **answered))
        tale.recorded(10_000, at=10_320, outcome="error")
        tale.claimed(10_000, token=2, at=at)
        tale.sent(10_000, at=at + 5, token=2)
        tale.recorded(10_000, token=2, at=at + 20, outcome="ok")
        times: dict[str, Any] = {
            "started_at": BEGIN + at + 5,
            "finished_at": BEGIN + at + 10,
            "duration_ms": 5,
            "node": "a",
        }
        first = Attempt(attempt=1, node="a", started_at=BEGIN + 10_010, finished_at=BEGIN + 10_310, outcome="error")
        last = Attempt(attempt=2, node="a", started_at=BEGIN + at + 5, finished_at=BEGIN + at + 10, outcome="ok")
        told: dict[str, Any] = {
            "attempts": [first, last],
            "outcome": {"kind": "ok"},
            "tries": 2,
            "token": 2,
            "lateness_ms": 10,
        }
        tale.entry(10_000, **told, **times)
        if slow:
            tale.fault("slow", 5000, 20_000)
        return tale.broken()

    def test_not_before_it(self) -> None:
        assert self.tried_again(14_000) == {}
        assert set(self.tried_again(13_900)) == {"backoff"}

    def test_nor_long_after_it(self) -> None:
        assert set(self.tried_again(3_614_000)) == {"backoff"}

    def test_a_node_that_is_slow_to_know_the_time_may_be_wrong_about_it(self) -> None:
        assert self.tried_again(13_900, slow=True) == {}
        assert set(self.tried_again(13_600, slow=True)) == {"backoff"}
