"""Every rule of the model against a history that was played, with one thing told otherwise.

Equal both ways: nothing too few, nothing too many, nothing recorded as another thing."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from proof.checker.events import Claimed, Fault, Stepped, Wrote
from proof.checker.ledger import Attempt, Entry, Job
from proof.checker.verdict import check
from proof.model.rules import Rules
from proof.oracle.slots import is_one_off
from proof.sim.run import play
from tests.proof.retold import SEEDS, Retold, first, first_entry

LATE = 9000
"""ms that no run may be late, even if its job had just been made."""


def done(tale: Retold, entry: Entry) -> bool:
    return entry.status == "done" and entry.tries == 1 and not entry.attempts and entry.kind == "scheduled"


def recurring(tale: Retold, entry: Entry) -> bool:
    """Of an interval that nobody changed, claimed by its time alone."""
    every = tale.job(entry).segments[-1].schedule.get("every")
    return done(tale, entry) and every is not None and tale.untouched(entry) and not tale.rules(entry).laned


def refused(tale: Retold, entry: Entry) -> bool:
    return entry.reason == "not_retryable" and entry.token == 1


def tried_again(tale: Retold, entry: Entry) -> bool:
    return entry.status == "failed" and len(entry.attempts) > 1 and entry.attempts[0].outcome == "error"


def out_of_tries(tale: Retold, entry: Entry) -> bool:
    return entry.reason == "attempts" and tried_again(tale, entry) and tale.untouched(entry)


def replaced(tale: Retold, entry: Entry) -> bool:
    """By a newer one, and by nobody else."""
    by_user = tale.story.lives.cancels.get(entry.id)
    return entry.reason == "replaced" and entry.token == 1 and entry.kind == "scheduled" and not by_user


@pytest.fixture
def tale() -> Retold:
    return Retold()


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_as_it_was_played(seed):
    assert Retold(seed).kinds() == set()


class TestResults:
    def test_done_though_the_receiver_failed(self):
        tale, entry = first_entry(done)
        assert "result" in tale.rewrite(tale.send_of(entry), answer="error", says="HTTP 500").kinds()

    def test_failed_though_the_receiver_said_yes(self):
        tale, entry = first_entry(refused)
        assert "result" in tale.rewrite(tale.send_of(entry), answer="ok").kinds()

    def test_time_out_that_was_none(self):
        tale, entry = first_entry(tried_again)
        attempts = [msgspec.structs.replace(entry.attempts[0], outcome="timeout"), *entry.attempts[1:]]
        assert "result" in tale.change(entry, attempts=attempts).kinds()

    def test_no_time_out_where_there_must_be_one(self):
        tale, entry = first_entry(lambda tale, one: done(tale, one) and tale.rules(one).timeout is not None)
        assert "result" in tale.rewrite(tale.send_of(entry), took=60_000).kinds()

    def test_attempt_that_is_not_told(self):
        tale, entry = first_entry(tried_again)
        assert "result" in tale.change(entry, attempts=entry.attempts[:-1]).kinds()

    def test_attempts_of_another_node(self):
        tale, entry = first_entry(done)
        assert "result" in tale.change(entry, node="another").kinds()

    def test_another_error_than_the_receiver_gave(self):
        tale, entry = first_entry(refused)
        assert "result" in tale.change(entry, error="something else").kinds()

    def test_tries_that_are_miscounted(self):
        tale, entry = first_entry(tried_again)
        assert "tries" in tale.change(entry, tries=entry.tries - 1).kinds()

    @pytest.mark.parametrize("field", ["started_at", "lateness_ms", "duration_ms", "finished_at"])
    def test_times_that_were_others(self, field):
        tale, entry = first_entry(done)
        assert "time" in tale.change(entry, seen=False, **{field: getattr(entry, field) + 700}).kinds()


class TestRetries:
    def test_too_early(self):
        tale, entry = first_entry(tried_again)
        tale.rewrite(tale.claim_of(entry, entry.attempts[1].attempt), db=entry.attempts[0].finished_at + 1)
        assert "backoff" in tale.kinds()

    def test_too_late(self):
        def wanted(tale: Retold, one: Entry) -> bool:
            return out_of_tries(tale, one) and not tale.rules(one).laned and one.kind in ("scheduled", "manual")

        tale, entry = first_entry(wanted)
        late = entry.attempts[0].finished_at + 60_000
        tale.rewrite(tale.claim_of(entry, entry.attempts[1].attempt), db=late)
        assert "backoff" in tale.kinds()

    def test_without_any_spread(self, monkeypatch):
        monkeypatch.setattr("proof.checker.waits.MANY", 10)
        monkeypatch.setattr("proof.checker.waits.LONG", 100)
        tale, waits = first(self.waits)
        for entry, one, other, middle in waits:
            tale.rewrite(tale.claim_of(entry, other.attempt), db=round(one.finished_at + middle))
        assert "backoff" in tale.kinds()

    def waits(self, tale: Retold) -> list[tuple[Entry, Attempt, Attempt, float]] | None:
        found = [
            (entry, one, other, rules.backoff * rules.factor ** (tries - 1))
            for entry in tale.ledger.entries
            if not tale.job(entry).later
            for tries, (one, other) in enumerate(pairwise(entry.attempts), 1)
            if (rules := self.plain(tale, entry, one)) is not None
        ]
        return found if sum(middle * 1.25 < tale.rules(entry).longest for entry, _, _, middle in found) > 10 else None

    def plain(self, tale: Retold, entry: Entry, attempt: Attempt) -> Rules | None:
        """A wait that chance chooses."""
        turn = tale.turn(entry, attempt.attempt)
        version = tale.story.lives.in_force(entry.job, turn.place)
        asked = turn.send is None or turn.send.retry_after
        if version is None or version.rules.waits or asked or attempt.outcome != "error":
            return None
        return version.rules

    def test_given_up_with_tries_left(self):
        tale, entry = first_entry(out_of_tries)
        assert "policy" in tale.change(entry, attempts=entry.attempts[:1], tries=1).kinds()

    def test_given_up_for_another_reason(self):
        tale, entry = first_entry(out_of_tries)
        assert "policy" in tale.change(entry, reason="max_age").kinds()

    def test_tried_again_though_it_was_refused(self):
        tale, entry = first_entry(tried_again)
        assert "policy" in tale.rewrite(tale.send_of(entry, entry.attempts[0].attempt), answer="refused").kinds()


class TestPolicies:
    def test_fired_though_newer_slots_had_come(self):
        def wanted(tale: Retold, one: Entry) -> bool:
            counted = "count" in tale.job(one).segments[-1].schedule
            return recurring(tale, one) and not counted and tale.rules(one).catch_up != "all"

        tale, entry = first_entry(wanted)
        assert "catch_up" in tale.rewrite(tale.claim_of(entry), db=entry.slot + 3_600_000).kinds()

    def test_given_up_without_need(self):
        tale, entry = first_entry(recurring)
        skipped: dict[str, Any] = {
            "status": "skipped",
            "reason": "coalesced",
            "token": 0,
            "outcome": None,
            "finished_at": entry.slot,
        }
        assert "catch_up" in tale.change(entry, **skipped).kinds()

    def test_sent_after_it_had_expired(self):
        tale, entry = first_entry(recurring)
        wish = tale.story.lives.versions[entry.job][0].spec
        wish = {**wish, "policy": {**wish["policy"], "expires_in": "1s"}}
        tale.rewrite(lambda one: isinstance(one, Wrote) and (one.job, one.verb) == (entry.job, "create"), wish=wish)
        assert "expired" in tale.rewrite(tale.send_of(entry), db=entry.due_at + 5000).kinds()

    def test_jitter_beyond_its_bounds(self):
        tale, entry = first_entry(done)
        assert "jitter" in tale.change(entry, due_at=entry.slot + 10_000).kinds()

    def test_jitter_that_is_none(self):
        def spread(tale: Retold) -> list[Entry] | None:
            runs = [one for one in tale.ledger.entries if one.token and one.kind == "scheduled"]
            return runs if sum(tale.rules(one).jitter >= 100 for one in runs) > 30 else None

        tale, runs = first(spread)
        for entry in runs:
            tale.change(entry, due_at=entry.slot)
        assert "jitter" in tale.kinds()


class TestOverlap:
    def test_given_up_where_overlap_is_allowed(self):
        tale, entry = first_entry(lambda tale, one: done(tale, one) and tale.rules(one).overlap == "allow")
        assert tale.change(entry, status="skipped", reason="overlap").says("and its job allows that")

    def test_given_up_when_nothing_ran(self):
        tale, entry = first_entry(lambda tale, one: one.reason == "overlap" and tale.rules(one).overlap == "skip")
        tale.change(entry, finished_at=entry.finished_at - 3_600_000)
        assert tale.says("and nothing ran")

    def test_given_up_when_nobody_waited(self):
        tale, entry = first_entry(lambda tale, one: one.reason == "overlap" and tale.rules(one).overlap == "queue")
        for one in tale.job(entry).rows:
            if isinstance(one, Entry) and one.id != entry.id and one.kind == "scheduled":
                tale.change(one, due_at=entry.finished_at + 1)  # whoever waited is due only later
        assert tale.says("and nobody waited before it")

    def test_not_replaced(self):
        def wanted(tale: Retold, one: Entry) -> bool:
            if not replaced(tale, one) or (recorded := tale.turn(one).recorded) is None:
                return False
            begin, end = tale.turn(one).claim.at - 5000, recorded.at + 25_000
            return end < tale.ledger.at and not tale.story.lives.touched(one.job, begin, end)

        tale, entry = first_entry(wanted)
        recorded = tale.turn(entry).recorded
        assert recorded is not None
        later = {"at": recorded.at + 20_000, "db": entry.finished_at + 20_000}
        tale.rewrite(lambda one: one is recorded, **later)
        assert tale.says("was to replace it")

    def test_two_at_once(self):
        def followed(tale: Retold, one: Entry) -> Entry | None:
            lane = (two for two in tale.job(one).entries if two.token == 1 and two.started_at and two.slot > one.slot)
            return next(lane, None)

        def wanted(tale: Retold, one: Entry) -> bool:
            lasted = done(tale, one) and (one.duration_ms or 0) > 500 and tale.rules(one).overlap == "queue"
            return lasted and followed(tale, one) is not None

        tale, entry = first_entry(wanted)
        second = followed(tale, entry)
        assert second is not None
        tale.rewrite(tale.claim_of(second), at=tale.turn(entry).claim.at + 100)
        assert "overlap" in tale.kinds()


class TestAnswers:
    def test_run_that_is_shown_as_another(self):
        tale, entry = first_entry(done)
        assert tale.change(entry, seen=False, view=None).kinds() == {"answer"}
        assert tale.change(entry, seen=False, view={**(entry.view or {}), "lateness_ms": 99_999}).kinds() == {"answer"}

    @pytest.mark.parametrize("field", ["claimed_at", "node", "started_at", "outcome"])
    def test_attempt_that_is_shown_as_another(self, field):
        tale, entry = first_entry(tried_again)
        view = entry.view or {}
        attempts = [{**view["attempts"][0], field: "another"}, *view["attempts"][1:]]
        assert tale.change(entry, seen=False, view={**view, "attempts": attempts}).kinds() == {"answer"}

    def test_job_that_is_shown_with_another_next_run(self):
        tale, job = first(lambda tale: next((j for j in tale.ledger.jobs if j.view and j.view["next_run"]), None))
        assert tale.change_job(job, view={**(job.view or {}), "next_run": None}).kinds() == {"answer"}

    def test_version_that_its_changes_do_not_make(self, tale):
        job = next(one for one in tale.ledger.jobs if one.view)
        assert "answer" in tale.change_job(job, version=9, view={**job.view, "version": 9}).kinds()

    def test_spec_that_nobody_asked_for(self, tale):
        job = tale.ledger.jobs[0]
        assert "answer" in tale.change_job(job, spec={**job.spec, "params": {"another": 1}}).kinds()

    def test_called_with_something_else(self):
        tale, entry = first_entry(done)
        send = tale.turn(entry).send
        assert send is not None
        asked = {**(send.asked or {}), "params": {}}
        assert tale.rewrite(lambda one: one is send, asked=asked).kinds() == {"sent"}

    def counted(self, tale: Retold) -> Job | None:
        for job in tale.story.jobs.values():
            once = any(is_one_off(segment.schedule) for segment in job.segments)
            if job.row is not None and not once and job.row.stats is not None and job.row.stats.runs:
                return job.row
        return None

    def test_statistics(self):
        tale, job = first(self.counted)
        stats = job.stats
        assert stats is not None
        assert tale.change_job(job, stats=msgspec.structs.replace(stats, runs=stats.runs + 1)).kinds() == {"stats"}
        assert tale.change_job(job, stats=None).kinds() == {"stats"}

    def test_statistics_of_the_view(self):
        tale, job = first(self.counted)
        assert job.view is not None
        view = {**job.view, "stats": {**job.view["stats"], "failures": 99}}
        assert tale.change_job(job, view=view).kinds() == {"stats"}

    def test_dead_letters(self):
        tale, dead = first(lambda tale: tale.ledger.dead or None)
        tale.ledger = msgspec.structs.replace(tale.ledger, dead=dead[1:])
        assert tale.kinds() == {"dead"}

    def test_change_of_a_version_that_was_not_there(self, tale):
        job = tale.ledger.jobs[0].id
        stale = Wrote(at=tale.ledger.at, db=tale.ledger.now, verb="edit", job=job, wish={}, if_match=99)
        assert "answer" in tale.add(stale).kinds()

    def test_verb_whose_client_had_gone(self, tale):
        job = tale.ledger.jobs[0].id
        ghost = Wrote(at=tale.ledger.at, db=tale.ledger.now, verb="edit", job=job, wish={}, given_up=5)
        assert "ghost" in tale.add(ghost).kinds()


class TestOrders:
    def before(self, verb: str, **more) -> Retold:
        """A verb that was committed right before a run of the job was claimed."""
        tale, entry = first_entry(done)
        claim = tale.turn(entry).claim
        if verb == "cancel":
            more["runs"] = [entry.id]
        return tale.add(Wrote(at=claim.at - 1, db=claim.db - 1, verb=verb, job=entry.job, **more))  # type: ignore[arg-type]

    def test_claimed_after_it_was_cancelled(self):
        assert "after_cancel" in self.before("cancel").kinds()

    def test_claimed_after_the_delete(self):
        assert "after_delete" in self.before("delete").kinds()

    def test_claimed_after_the_pause(self):
        assert "after_pause" in self.before("pause", view={"state": "paused"}).kinds()

    def test_cancelled_and_yet_it_ran_on(self):
        tale, entry = first_entry(done)
        turn = tale.turn(entry)
        assert turn.recorded is not None
        cancel = Wrote(at=turn.recorded.at - 2000, db=1, verb="cancel", job=entry.job, runs=[entry.id])
        tale.rewrite(tale.claim_of(entry), at=turn.recorded.at - 2500)
        assert "after_cancel" in tale.add(cancel).kinds()

    def test_user_who_is_blamed(self):
        tale, entry = first_entry(replaced)
        assert tale.change(entry, reason="cancelled").kinds() == {"blamed"}

    @pytest.mark.parametrize(("reason", "verb"), [("deleted", "delete"), ("rescheduled", "edit")])
    def test_delete_and_edit_that_are_blamed(self, reason, verb):
        tale, entry = first_entry(lambda tale, one: replaced(tale, one) and verb not in tale.verbs(one.job))
        assert "blamed" in tale.change(entry, reason=reason).kinds()


class TestCoverage:
    def test_slot_of_the_old_schedule_right_after_an_edit(self):
        """No grey stretch: what was claimed after the edit is of no schedule."""
        tale, entry = first_entry(recurring)
        claim = tale.turn(entry).claim
        wish = {"schedule": {"cron": "0 0 1 1 *", "tz": "UTC"}}
        edit = Wrote(at=claim.at - 1, db=entry.slot - 500, verb="edit", job=entry.job, wish=wish)
        assert "phantom" in tale.add(edit).kinds()

    def test_slot_that_came_before_the_delete(self):
        """It may have been skipped, cancelled or fired: but it has a row."""

        def last(tale: Retold) -> Entry | None:
            for job in tale.story.jobs.values():
                deletes = [event for _, event in tale.story.lives.wrote.get(job.id, ()) if event.verb == "delete"]
                edited = "edit" in tale.verbs(job.id)
                if job.row is None and not edited and len(deletes) == 1 and len(job.entries) > 3:
                    slots = (one for one in job.entries if one.kind == "scheduled" and one.slot <= deletes[0].db)
                    return max(slots, key=lambda one: one.slot, default=None)
            return None

        tale, lost = first(last)
        entries = [one for one in tale.ledger.entries if one.id != lost.id]
        tale.ledger = msgspec.structs.replace(tale.ledger, entries=entries)
        assert "lost" in tale.kinds()

    def test_slots_given_up_for_a_future_that_has_not_come(self):
        def active(tale: Retold, one: Entry) -> bool:
            job = tale.job(one)
            goes_on = job.row is not None and job.row.state == "active" and not job.one_off
            return goes_on and done(tale, one) and tale.untouched(one) and not tale.story.expires(job)

        tale, entry = first_entry(active)
        tale.add(Stepped(at=1, by_ms=-3_600_000, highest=tale.ledger.now + 3_600_000))
        until = tale.ledger.now + 3_000_000
        ahead: dict[str, Any] = {
            "status": "skipped",
            "reason": "coalesced",
            "until": until,
            "finished_at": tale.ledger.now,
            "token": 0,
        }
        assert "ahead" in tale.change(entry, **ahead).kinds()


class TestExcuses:
    def late(self, node: str | None) -> tuple[bool, int]:
        """Sent late while something was wrong with a node: whether that is told, and how much is excused."""
        tale, entry = first_entry(recurring)
        tale.ledger = msgspec.structs.replace(tale.ledger, lookahead=2000, slots={})
        turn = tale.turn(entry)
        send = turn.send
        assert send is not None
        tale.rewrite(lambda one: one is send, at=send.at + LATE, db=send.db + LATE)
        tale.add(Fault(at=turn.claim.at, until=send.at, what="kill", node=node or turn.claim.node))
        found, excuses = check(tale.history, tale.ledger)
        told = any(one.kind == "late" and one.text.startswith(entry.id) for one in found)
        return told, excuses["it was late while something was wrong"]

    def test_what_happens_to_another_node_excuses_nothing(self):
        assert self.late("another")[0]

    def test_what_happens_to_its_own_does_and_is_counted(self):
        told, excused = self.late(None)
        assert not told
        assert excused > 0


def test_what_is_let_pass_is_counted():
    outcome = play(2, minutes=3, profile="outages")
    assert outcome.excuses
    assert all(times > 0 for times in outcome.excuses.values())


def test_claims_are_part_of_the_history():
    assert any(isinstance(event, Claimed) for event in Retold().history)
