"""Rows against the receiver, where chance or a slow way to the database leaves more than one thing to say."""

from __future__ import annotations

from typing import Any

import msgspec

from proof.checker.events import Wrote
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
