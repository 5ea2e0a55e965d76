"""Rows of runs whose receivers tell later how they ended, and of work that outlives its node: equal both ways."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from proof.checker.completions import check_completions
from proof.checker.events import Begun, Completed, Killed, Received, Recorded, Wrote
from proof.checker.ledger import Attempt
from proof.checker.outside_rows import check_outside_rows
from proof.checker.story import Story
from tests.proof.making import BEGIN, Tale

RUN = f"1-{BEGIN + 10_000}"


class Row(Tale):
    """One run, due at 10 s, of a job that is read by the whole checker. Times in ms since the beginning."""

    def __init__(self, target: dict[str, Any], **policy: Any) -> None:
        super().__init__(None, **policy)
        spec = {**self.jobs[0].spec, "target": target}
        self.events = [msgspec.structs.replace(self.events[0], spec=spec)]
        self.add(Wrote(at=0, db=BEGIN, verb="create", job=1, wish=spec))
        self.told: list[Attempt] = []

    def called(self, at: int, *, token: int = 1, of: int | None = 1, **more: Any) -> None:
        fields = {"answer": "ok", "took": 100, "node": "a", **more}
        self.add(Received(at=at, db=BEGIN + at, run=RUN, job=1, token=token, of=of, **fields))

    def was(self, outcome: str, *, token: int = 1, of: int | None = None, at: int, recorded: int | None = None) -> None:
        """A node recorded it."""
        self.add(Recorded(at=recorded or at, node="a", run=RUN, token=token, outcome=outcome, db=BEGIN + at))

    def tells(self, outcome: str, *, began: int | None, ended: int, **more: Any) -> Attempt:
        fields = {"attempt": 1, "node": "a", **more}
        started = None if began is None else BEGIN + began
        attempt = Attempt(started_at=started, finished_at=BEGIN + ended, outcome=outcome, **fields)
        self.told.append(attempt)
        return attempt

    def ends(self, status: str = "done", **more: Any) -> Row:
        last, first = self.told[-1], self.told[0]
        assert last.started_at is not None
        assert first.started_at is not None
        fields = {
            "tries": 1,
            "token": last.attempt,
            "node": None if last.completion else last.node,
            "started_at": last.started_at,
            "finished_at": last.finished_at,
            "lateness_ms": first.started_at - BEGIN - 10_000,
            "duration_ms": last.finished_at - last.started_at,
            "outcome": {"kind": last.outcome},
            "attempts": self.told,
            **more,
        }
        self.entry(10_000, status, **fields)
        return self

    def changed_attempt(self, **fields: Any) -> Row:
        """The last attempt, and the row with it, says another thing."""
        entry = self.entries[0]
        told = [*entry.attempts[:-1], msgspec.structs.replace(entry.attempts[-1], **fields)]
        own = {name: value for name, value in fields.items() if name in ("started_at", "finished_at")}
        if own:
            last = told[-1]
            own["duration_ms"] = last.finished_at - (last.started_at or 0)
            own["lateness_ms"] = max(0, (told[0].started_at or 0) - entry.due_at)
        self.entries = [msgspec.structs.replace(entry, attempts=told, **own)]
        return self

    def changed_row(self, **fields: Any) -> Row:
        self.entries = [msgspec.structs.replace(self.entries[0], **fields)]
        return self

    def broken(self) -> set[str]:
        story = Story(self.history(), msgspec.structs.replace(self.ledger(), whole=True))
        return {violation.kind for check in (check_completions, check_outside_rows) for violation in check(story)}


class Accepted(Row):
    def __init__(self, **policy: Any) -> None:
        super().__init__({"type": "webhook"}, completion="callback", completion_timeout="4s", **policy)
        self.claimed(10_000, at=9_000)

    def completed(self, at: int, *, of: int = 1, told: Any = "done", standing: Any = "current") -> None:
        self.add(Completed(at=at, db=BEGIN + at, run=RUN, of=of, told=told, standing=standing, wrote=True))


def completed() -> Accepted:
    """Called at 10,010, accepted 100 ms later, done at 12,000."""
    tale = Accepted()
    tale.called(10_010)
    tale.was("accepted", at=10_110)
    tale.completed(12_000)
    tale.tells("ok", began=10_005, ended=12_000, try_number=1, completion="callback")
    tale.ends()
    return tale


def at_the_second_try() -> Accepted:
    """The first took too long; its callback comes when nobody has the run any more."""
    tale = Accepted(timeout="1s")
    tale.called(10_010, took=5000)
    tale.was("timeout", at=11_010)
    tale.completed(12_000, standing="earlier")
    tale.tells("timeout", began=10_010, ended=11_010, try_number=1)
    tale.tells("ok", began=10_010, ended=12_000, node="", try_number=1, completion="callback")
    tale.ends()
    return tale


class TestCallbacks:
    def test_as_it_was(self) -> None:
        assert completed().broken() == set()

    def test_what_was_given_up_and_came(self) -> None:
        assert at_the_second_try().broken() == set()

    @pytest.mark.parametrize("began", [9_900, 10_012])
    def test_begun_at_another_time(self, began: int) -> None:
        assert completed().changed_attempt(started_at=BEGIN + began).broken() == {"time"}

    @pytest.mark.parametrize("ended", [11_999, 12_001])
    def test_ended_at_another_time(self, ended: int) -> None:
        assert completed().changed_attempt(finished_at=BEGIN + ended).broken() == {"time"}

    @pytest.mark.parametrize("field", ["lateness_ms", "duration_ms", "started_at", "finished_at"])
    def test_row_that_says_another_time(self, field: str) -> None:
        tale = completed()
        assert tale.changed_row(**{field: getattr(tale.entries[0], field) + 1}).broken() == {"time"}

    def test_row_of_a_node_though_nobody_had_it(self) -> None:
        assert completed().changed_row(node="a").broken() == {"time"}

    @pytest.mark.parametrize("node", ["", "b"])
    def test_call_of_another_node(self, node: str) -> None:
        assert completed().changed_attempt(node=node).broken() == {"result"}

    def test_nobody_had_what_was_given_up(self) -> None:
        assert at_the_second_try().changed_attempt(node="a").broken() == {"result"}

    @pytest.mark.parametrize("tries", [0, 2])
    def test_tries_that_are_miscounted(self, tries: int) -> None:
        assert completed().changed_row(tries=tries).broken() == {"tries"}

    def test_an_earlier_try_counts_once(self) -> None:
        assert at_the_second_try().changed_row(tries=2).broken() == {"tries"}

    def test_try_that_was_another(self) -> None:
        assert "tries" in completed().changed_attempt(try_number=2).broken()

    def test_call_for_another_try(self) -> None:
        tale = completed()
        tale.events = [msgspec.structs.replace(e, of=2) if isinstance(e, Received) else e for e in tale.events]
        assert "tries" in tale.broken()

    def test_callback_that_is_not_told(self) -> None:
        tale = at_the_second_try()
        assert "result" in tale.changed_row(attempts=tale.entries[0].attempts[:1]).broken()

    def test_outcome_that_was_another(self) -> None:
        assert completed().changed_attempt(outcome="error").broken() == {"result"}

    def test_record_that_is_not_told(self) -> None:
        tale = at_the_second_try()
        assert "result" in tale.changed_row(attempts=tale.entries[0].attempts[1:]).broken()

    def overtaken(self, began: int, **policy: Any) -> set[str]:
        """Its callback comes before anybody has said that it was accepted."""
        tale = Accepted(**policy)
        if policy:
            tale.add(Begun(at=9_500, db=BEGIN + 10_003, node="a", run=RUN, token=1))
        tale.called(10_010)
        tale.completed(10_020)
        tale.tells("ok", began=began, ended=10_020, try_number=1, completion="callback")
        return tale.ends().broken()

    def test_before_its_acceptance_its_claim_is_its_start(self) -> None:
        assert self.overtaken(10_000) == set()
        assert self.overtaken(10_001) == {"time"}

    def test_or_that_it_was_begun(self) -> None:
        assert self.overtaken(10_003, delivery="at_most_once") == set()
        assert self.overtaken(10_000, delivery="at_most_once") == {"time"}

    def test_lateness_is_that_of_the_first_try(self) -> None:
        tale = Accepted(timeout="1s")
        tale.called(10_010, took=5000)
        tale.was("timeout", at=11_010)
        tale.tells("timeout", began=10_010, ended=11_010, try_number=1)
        tale.claimed(10_000, token=2, at=12_000)
        tale.called(12_005, token=2, of=2)
        tale.was("accepted", token=2, at=12_105)
        tale.completed(13_000, of=2)
        tale.tells("ok", attempt=2, began=12_004, ended=13_000, try_number=2, completion="callback")
        tale.ends(tries=2)
        assert tale.broken() == set()
        assert tale.changed_row(lateness_ms=2004).broken() == {"time"}

    def cancelled(self, at: int, ended: int, *, wanted: bool = True) -> set[str]:
        tale = Accepted()
        tale.called(10_010)
        tale.was("accepted", at=10_110)
        if wanted:
            tale.add(Wrote(at=at, db=BEGIN + at, verb="cancel", job=1, runs=[RUN]))
        tale.tells("cancelled", began=10_010, ended=ended, try_number=1, completion="timeout")
        return tale.ends("cancelled", reason="cancelled").broken()

    def test_cancelled_while_it_waits_it_ends_at_once(self) -> None:
        assert self.cancelled(11_000, 11_000) == set()
        assert self.cancelled(11_000, 11_001) == {"time"}

    def test_cancelled_before_that_at_the_next_look(self) -> None:
        assert self.cancelled(10_050, 11_000) == set()
        assert self.cancelled(10_050, 14_000) == {"time"}

    def test_cancelled_by_nobody(self) -> None:
        assert "result" in self.cancelled(0, 11_000, wanted=False)

    def test_tries_of_one_that_lives(self) -> None:
        tale = at_the_second_try()
        entry, tale.entries = tale.entries[0], []
        tale.events = [event for event in tale.events if not isinstance(event, Completed)]
        tale.waits(10_000, cursor=False, token=1, tries=1, attempts=entry.attempts[:1])
        assert tale.broken() == set()
        tale.live = [msgspec.structs.replace(tale.live[0], tries=0)]
        assert tale.broken() == {"tries"}


def lost_at_its_only_try() -> Row:
    """At most once: its node was lost while the call was made, and the row tells of that itself."""
    tale = Row({"type": "webhook"}, completion="callback", delivery="at_most_once")
    tale.claimed(10_000, at=9_000)
    tale.add(Begun(at=10_009, db=BEGIN + 10_009, node="a", run=RUN, token=1))
    tale.called(10_010, took=6_000)
    tale.fault("kill", 11_000, 11_000, node="a").lost("a", 16_000)
    tale.tells("unknown", began=10_009, ended=16_001)
    tale.ends("failed", reason="unknown", losses=1, attempts=[], lateness_ms=None, duration_ms=None)
    return tale


class TestLostAtItsOnlyTry:
    def test_as_it_was(self) -> None:
        assert lost_at_its_only_try().broken() == set()

    @pytest.mark.parametrize("tries", [0, 2])
    def test_tries_that_are_miscounted(self, tries: int) -> None:
        assert lost_at_its_only_try().changed_row(tries=tries).broken() == {"tries"}


class Outside(Row):
    def __init__(self, **policy: Any) -> None:
        super().__init__({"type": "command", "command": "outside"}, **policy)
        self.claimed(10_000, at=9_000)


def adopted() -> Outside:
    """Begun at 10,010 by a, whose run b adopts at 15,000. It takes ten seconds."""
    tale = Outside()
    tale.called(10_010, took=10_000)
    tale.claimed(10_000, token=2, at=15_000, node="b")
    tale.was("ok", token=2, at=20_012)
    tale.tells("ok", attempt=2, node="b", began=10_009, ended=20_010)
    tale.ends()
    return tale


def killed() -> Outside:
    """At the end of its time-out, by a, which died of it. The next one finds it dead."""
    tale = Outside(timeout="2s")
    tale.called(10_010, took=10_000)
    tale.add(Killed(at=12_010, run=RUN, of=1, why="timeout"))
    tale.claimed(10_000, token=2, at=15_000, node="b")
    tale.was("error", token=2, at=15_020)
    tale.tells("error", attempt=2, node="b", began=10_010, ended=15_010, error="killed")
    tale.ends("failed")
    return tale


class TestOutside:
    def test_as_it_was(self) -> None:
        assert adopted().broken() == set()
        assert killed().broken() == set()

    @pytest.mark.parametrize("began", [10_000, 10_012, 15_003])
    def test_begun_at_another_time(self, began: int) -> None:
        assert adopted().changed_attempt(started_at=BEGIN + began).broken() == {"time"}

    @pytest.mark.parametrize("ended", [19_990, 20_013, 15_003])
    def test_ended_at_another_time(self, ended: int) -> None:
        assert adopted().changed_attempt(finished_at=BEGIN + ended).broken() == {"time"}

    def test_found_before_it_was_looked_for(self) -> None:
        assert killed().changed_attempt(finished_at=BEGIN + 12_010).broken() == {"time"}

    @pytest.mark.parametrize("node", ["a", ""])
    def test_recorded_by_another_node(self, node: str) -> None:
        assert adopted().changed_attempt(node=node).changed_row(node=node).broken() == {"result"}

    @pytest.mark.parametrize("field", ["lateness_ms", "duration_ms", "started_at", "finished_at"])
    def test_row_that_says_another_time(self, field: str) -> None:
        tale = adopted()
        assert tale.changed_row(**{field: getattr(tale.entries[0], field) + 3}).broken() == {"time"}

    @pytest.mark.parametrize("tries", [0, 2])
    def test_tries_that_are_miscounted(self, tries: int) -> None:
        assert adopted().changed_row(tries=tries).broken() == {"tries"}

    def test_begun_in_another_try(self) -> None:
        tale = adopted()
        tale.events = [msgspec.structs.replace(e, of=2) if isinstance(e, Received) else e for e in tale.events]
        assert "tries" in tale.broken()

    def test_outcome_that_was_another(self) -> None:
        assert "result" in adopted().changed_attempt(outcome="error").broken()
        assert "result" in killed().changed_attempt(outcome="ok", error=None).broken()

    def test_record_that_is_not_told(self) -> None:
        tale = adopted()
        assert "result" in tale.changed_row(attempts=[], outcome=None).broken()

    def never_was(self, began: int, *, begun: bool = True) -> set[str]:
        """The node that had said that it begins was lost before it did. The run is cancelled, and then adopted."""
        tale = Outside()
        if begun:
            tale.add(Begun(at=10_000, db=BEGIN + 10_000, node="a", run=RUN, token=1))
        tale.claimed(10_000, token=2, at=15_000, node="b")
        tale.was("cancelled", token=2, at=15_010)
        tale.tells("cancelled", attempt=2, node="b", began=began, ended=15_005)
        return tale.ends("cancelled").broken()

    def test_cancelled_before_it_was(self) -> None:
        assert self.never_was(15_003) == set()
        assert self.never_was(10_000) == {"time"}
        assert self.never_was(15_003, begun=False) == {"result"}

    def test_of_another_target_it_is_judged_as_any_other(self) -> None:
        tale = Outside()
        tale.called(10_010, of=None)
        tale.was("ok", at=10_115)
        tale.tells("ok", began=10_010, ended=10_110)
        tale.ends()
        assert tale.broken() == set()
        assert tale.changed_row(tries=2).broken() == {"tries"}

    def lost_before_it_was_received(self, target: dict[str, Any], node: str) -> set[str]:
        """Its job calls something else since 5 s. At most once: what became of the begun call, nobody knows."""
        tale = Row({"type": "command", "command": "outside"}, delivery="at_most_once")
        tale.add(Wrote(at=5000, db=BEGIN + 5000, verb="edit", job=1, wish={"target": target}))
        tale.claimed(10_000, at=9_000)
        tale.add(Begun(at=10_000, db=BEGIN + 10_000, node="a", run=RUN, token=1))
        tale.fault("freeze", 10_000, 20_000, node="a").lost("a", 15_000)
        tale.tells("unknown", began=10_000, ended=15_000, node=node)
        tale.ends("failed", reason="unknown", losses=1, node=node, lateness_ms=None, duration_ms=None)
        return tale.broken()

    def test_of_another_target_it_need_not_have_been_received(self) -> None:
        function = {"type": "function", "function": "work:task"}
        assert self.lost_before_it_was_received(function, "a") == set()
        assert self.lost_before_it_was_received(function, "b") == {"result"}
        assert self.lost_before_it_was_received({"type": "command", "command": "outside"}, "a") != set()

    def test_nothing_had_begun(self) -> None:
        tale = adopted()
        tale.events = [event for event in tale.events if not isinstance(event, Received)]
        assert tale.broken() == {"result"}
