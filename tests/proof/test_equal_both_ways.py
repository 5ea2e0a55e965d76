"""Every rule of the model against a history that was played, with one thing told otherwise.

Equal both ways: nothing too few, nothing too many, nothing recorded as another thing."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from proof.checker import results
from proof.checker.events import Claimed, Fault, Received, Stepped, Wrote
from proof.checker.ledger import Entry
from proof.checker.verdict import check
from proof.sim.run import play
from tests.proof.retold import Retold

REPLACING = 16
"""A seed whose jobs replace, queue and are tried again."""

JITTERED = 9

RETRIED = 4
"""A seed with many retries and newest slots alone."""


@pytest.fixture
def tale() -> Retold:
    return Retold()


def done(entry: Entry) -> bool:
    return entry.status == "done" and entry.tries == 1 and not entry.attempts and entry.kind == "scheduled"


def tried_again(entry: Entry) -> bool:
    return entry.status == "failed" and len(entry.attempts) > 1 and entry.attempts[0].outcome == "error"


@pytest.mark.parametrize("seed", [3, 7, REPLACING, RETRIED])
def test_as_it_was_played(seed):
    assert Retold(seed).kinds() == set()


class TestResults:
    def test_done_though_the_receiver_failed(self, tale):
        entry = tale.entry(done)
        assert "result" in tale.rewrite(tale.send_of(entry), answer="error", says="HTTP 500").kinds()

    def test_failed_though_the_receiver_said_yes(self, tale):
        entry = tale.entry(lambda one: one.reason == "not_retryable")
        assert "result" in tale.rewrite(tale.send_of(entry), answer="ok").kinds()

    def test_time_out_that_was_none(self, tale):
        entry = tale.entry(tried_again)
        attempts = [msgspec.structs.replace(entry.attempts[0], outcome="timeout"), *entry.attempts[1:]]
        assert "result" in tale.change(entry, attempts=attempts).kinds()

    def test_no_time_out_where_there_must_be_one(self, tale):
        entry = tale.entry(lambda one: done(one) and tale.rules(one).timeout is not None)
        assert "result" in tale.rewrite(tale.send_of(entry), took=60_000).kinds()

    def test_attempt_that_is_not_told(self, tale):
        entry = tale.entry(tried_again)
        assert "result" in tale.change(entry, attempts=entry.attempts[:-1]).kinds()

    def test_attempts_of_another_node(self, tale):
        assert "result" in tale.change(tale.entry(done), node="another").kinds()

    def test_another_error_than_the_receiver_gave(self, tale):
        entry = tale.entry(lambda one: one.reason == "not_retryable")
        assert "result" in tale.change(entry, error="something else").kinds()

    def test_tries_that_are_miscounted(self, tale):
        entry = tale.entry(tried_again)
        assert "tries" in tale.change(entry, tries=entry.tries - 1).kinds()

    @pytest.mark.parametrize("field", ["started_at", "lateness_ms", "duration_ms", "finished_at"])
    def test_times_that_were_others(self, tale, field):
        entry = tale.entry(done)
        assert "time" in tale.change(entry, seen=False, **{field: getattr(entry, field) + 700}).kinds()


class TestRetries:
    def test_too_early(self, tale):
        entry = tale.entry(tried_again)
        tale.rewrite(tale.claim_of(entry, 2), db=entry.attempts[0].finished_at + 1)
        assert "backoff" in tale.kinds()

    def test_too_late(self):
        tale = Retold(RETRIED)
        entry = tale.entry(lambda one: tried_again(one) and tale.only_version(one) and not tale.rules(one).laned)
        tale.rewrite(tale.claim_of(entry, 2), db=entry.attempts[0].finished_at + 60_000)
        assert "backoff" in tale.kinds()

    def test_without_any_spread(self, tale, monkeypatch):
        monkeypatch.setattr(results, "MANY", 10)
        monkeypatch.setattr(results, "LONG", 100)
        for entry in tale.ledger.entries:
            for tries, (one, other) in enumerate(pairwise(entry.attempts), 1):
                version = tale.story.lives.in_force(entry.job, tale.story.lives.turns[entry.id][one.attempt].place)
                assert version is not None
                wait = version.rules.backoff * version.rules.factor ** (tries - 1)
                tale.rewrite(tale.claim_of(entry, other.attempt), db=round(one.finished_at + wait))
        assert "backoff" in tale.kinds()

    def test_given_up_with_tries_left(self):
        tale = Retold(REPLACING)
        entry = tale.entry(lambda one: one.reason == "attempts" and tried_again(one) and tale.only_version(one))
        left = tale.change(entry, attempts=entry.attempts[:1], tries=1)
        assert "policy" in left.kinds()

    def test_given_up_for_another_reason(self, tale):
        entry = tale.entry(lambda one: one.reason == "attempts")
        assert "policy" in tale.change(entry, reason="max_age").kinds()

    def test_tried_again_though_it_was_refused(self, tale):
        entry = tale.entry(tried_again)
        assert "policy" in tale.rewrite(tale.send_of(entry, 1), answer="refused").kinds()


class TestPolicies:
    def recurring(self, tale: Retold) -> Entry:
        def wanted(one: Entry) -> bool:
            every = tale.story.jobs[one.job].segments[-1].schedule.get("every")
            return done(one) and every is not None and tale.only_version(one) and not tale.rules(one).laned

        return tale.entry(wanted)

    def test_fired_though_newer_slots_had_come(self):
        tale = Retold(RETRIED)
        entry = self.recurring(tale)
        assert "catch_up" in tale.rewrite(tale.claim_of(entry), db=entry.slot + 3_600_000).kinds()

    def test_given_up_without_need(self, tale):
        entry = self.recurring(tale)
        skipped = {"status": "skipped", "reason": "coalesced", "token": 0, "outcome": None, "finished_at": entry.slot}
        assert "catch_up" in tale.change(entry, **skipped).kinds()

    def test_sent_after_it_had_expired(self, tale):
        entry = self.recurring(tale)
        wish = tale.story.lives.versions[entry.job][0].spec
        wish = {**wish, "policy": {**wish["policy"], "expires_in": "1s"}}
        tale.rewrite(lambda one: isinstance(one, Wrote) and (one.job, one.verb) == (entry.job, "create"), wish=wish)
        assert "expired" in tale.rewrite(tale.send_of(entry), db=entry.due_at + 5000).kinds()

    def test_jitter_beyond_its_bounds(self, tale):
        entry = tale.entry(done)
        assert "jitter" in tale.change(entry, due_at=entry.slot + 10_000).kinds()

    def test_jitter_that_is_none(self):
        tale = Retold(JITTERED)
        for entry in tale.ledger.entries:
            if entry.token and entry.kind == "scheduled":
                tale.change(entry, due_at=entry.slot)
        assert "jitter" in tale.kinds()


class TestOverlap:
    def test_given_up_where_overlap_is_allowed(self, tale):
        entry = tale.entry(lambda one: done(one) and not tale.rules(one).laned)
        assert "overlap" in tale.change(entry, status="skipped", reason="overlap").kinds()

    def test_given_up_when_nothing_ran(self, tale):
        entry = tale.entry(lambda one: one.reason == "overlap" and tale.rules(one).overlap == "skip")
        assert "overlap" in tale.change(entry, finished_at=entry.finished_at - 3_600_000).kinds()

    def test_given_up_when_nobody_waited(self):
        tale = Retold(REPLACING)
        entry = tale.entry(lambda one: one.reason == "overlap" and tale.rules(one).overlap == "queue")
        rows = [one for one in tale.ledger.entries if one.job == entry.job and one.kind == "scheduled"]
        for one in rows:
            if one.id != entry.id:  # whoever waited is due only later
                tale.change(one, due_at=entry.finished_at + 1)
        assert "overlap" in tale.kinds()

    def test_not_replaced(self):
        tale = Retold(REPLACING)
        entry = tale.entry(lambda one: one.reason == "replaced")
        recorded = tale.story.lives.turns[entry.id][entry.token].recorded
        assert recorded is not None
        later = {"at": recorded.at + 20_000, "db": entry.finished_at + 20_000}
        tale.rewrite(lambda one: one is recorded, **later)
        assert "overlap" in tale.kinds()

    def test_two_at_once(self):
        tale = Retold(REPLACING)
        lane = [e for e in tale.ledger.entries if e.token == 1 and e.started_at and tale.rules(e).overlap == "queue"]
        followed = [one for one in lane if any(two.job == one.job and two.slot > one.slot for two in lane)]
        first = max(followed, key=lambda one: one.duration_ms or 0)
        second = next(one for one in lane if one.job == first.job and one.slot > first.slot)
        turn = tale.story.lives.turns[first.id][1]
        tale.rewrite(tale.claim_of(second), at=turn.claim.at + 100)
        assert "overlap" in tale.kinds()


class TestAnswers:
    def test_run_that_is_shown_as_another(self, tale):
        assert tale.change(tale.entry(done), seen=False, view=None).kinds() == {"answer"}
        entry = tale.entry(done)
        view = {**(Retold().entry(done).view or {}), "lateness_ms": 99_999}
        assert tale.change(entry, seen=False, view=view).kinds() == {"answer"}

    def test_job_that_is_shown_with_another_next_run(self, tale):
        job = next(one for one in tale.ledger.jobs if one.view and one.view["next_run"])
        assert tale.change_job(job, view={**job.view, "next_run": None}).kinds() == {"answer"}

    def test_version_that_its_changes_do_not_make(self, tale):
        job = next(one for one in tale.ledger.jobs if one.view)
        assert "answer" in tale.change_job(job, version=9, view={**job.view, "version": 9}).kinds()

    def test_spec_that_nobody_asked_for(self, tale):
        job = tale.ledger.jobs[0]
        assert "answer" in tale.change_job(job, spec={**job.spec, "params": {"another": 1}}).kinds()

    def test_called_with_something_else(self, tale):
        entry = tale.entry(done)
        send = next(one for one in tale.history if tale.send_of(entry)(one))
        assert isinstance(send, Received)
        asked = {**(send.asked or {}), "params": {}}
        assert tale.rewrite(lambda one: one is send, asked=asked).kinds() == {"sent"}

    def test_statistics(self, tale):
        job = next(one for one in tale.ledger.jobs if one.stats is not None)
        stats = msgspec.structs.replace(job.stats, runs=job.stats.runs + 1)
        assert tale.change_job(job, stats=stats).kinds() == {"stats"}
        assert tale.change_job(job, stats=None).kinds() == {"stats"}

    def test_statistics_of_the_view(self, tale):
        job = next(one for one in tale.ledger.jobs if one.stats is not None and one.view)
        view = {**job.view, "stats": {**job.view["stats"], "failures": 99}}
        assert tale.change_job(job, view=view).kinds() == {"stats"}

    def test_dead_letters(self, tale):
        assert tale.ledger.dead
        tale.ledger = msgspec.structs.replace(tale.ledger, dead=tale.ledger.dead[1:])
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
    def verb(self, tale: Retold, verb: str, entry: Entry, **more) -> Retold:
        turn = tale.story.lives.turns[entry.id][1]
        event = Wrote(at=turn.claim.at - 1, db=turn.claim.db - 1, verb=verb, job=entry.job, **more)  # type: ignore[arg-type]
        return tale.add(event)

    def test_claimed_after_it_was_cancelled(self, tale):
        entry = tale.entry(done)
        assert "after_cancel" in self.verb(tale, "cancel", entry, runs=[entry.id]).kinds()

    def test_claimed_after_the_delete(self, tale):
        assert "after_delete" in self.verb(tale, "delete", tale.entry(done)).kinds()

    def test_claimed_after_the_pause(self, tale):
        assert "after_pause" in self.verb(tale, "pause", tale.entry(done), view={"state": "paused"}).kinds()

    def test_cancelled_and_yet_it_ran_on(self):
        tale = Retold(REPLACING)
        entry = max(tale.ledger.entries, key=lambda one: (done(one), one.duration_ms or 0))
        turn = tale.story.lives.turns[entry.id][1]
        assert turn.recorded is not None
        cancel = Wrote(at=turn.recorded.at - 2000, db=1, verb="cancel", job=entry.job, runs=[entry.id])
        tale.rewrite(tale.claim_of(entry), at=turn.recorded.at - 2500)
        assert "after_cancel" in tale.add(cancel).kinds()

    def test_user_who_is_blamed(self):
        tale = Retold(REPLACING)
        entry = tale.entry(lambda one: one.reason == "replaced")
        assert tale.change(entry, reason="cancelled").kinds() == {"blamed"}

    def test_delete_and_edit_that_are_blamed(self):
        tale = Retold(REPLACING)
        entry = tale.entry(lambda one: one.reason == "replaced")
        for reason in ("deleted", "rescheduled"):
            verbs = {event.verb for _, event in tale.story.lives.wrote[entry.job]}
            if reason == "rescheduled" and "edit" in verbs:
                continue
            if reason == "deleted" and "delete" in verbs:
                continue
            assert "blamed" in Retold(REPLACING).change(entry, reason=reason).kinds()


class TestCoverage:
    def test_slot_of_the_old_schedule_right_after_an_edit(self, tale):
        """No grey stretch: what was claimed after the edit is of no schedule."""
        entry = TestPolicies().recurring(tale)
        turn = tale.story.lives.turns[entry.id][1]
        wish = {"schedule": {"cron": "0 0 1 1 *", "tz": "UTC"}}
        edit = Wrote(at=turn.claim.at - 1, db=entry.slot - 500, verb="edit", job=entry.job, wish=wish)
        assert "phantom" in tale.add(edit).kinds()

    def test_slot_that_came_before_the_delete(self, tale):
        """It may have been skipped, cancelled or fired: but it has a row."""
        deleted = next(j for j in tale.story.jobs.values() if j.row is None and len(j.entries) > 3)
        when = next(event.db for _, event in tale.story.lives.wrote[deleted.id] if event.verb == "delete")
        lost = [one for one in deleted.entries if one.kind == "scheduled" and one.slot <= when][-1]
        entries = [one for one in tale.ledger.entries if one.id != lost.id]
        tale.ledger = msgspec.structs.replace(tale.ledger, entries=entries)
        assert "lost" in tale.kinds()

    def test_slots_given_up_for_a_future_that_has_not_come(self, tale):
        job = next(j for j in tale.story.jobs.values() if j.row is not None and j.row.state == "active" and j.entries)
        entry = next(one for one in job.entries if one.kind == "scheduled")
        tale.add(Stepped(at=1, by_ms=-3_600_000, highest=tale.ledger.now + 3_600_000))
        until = tale.ledger.now + 3_000_000
        ahead = {"status": "skipped", "reason": "coalesced", "until": until, "finished_at": tale.ledger.now, "token": 0}
        assert "ahead" in tale.change(entry, **ahead).kinds()


class TestExcuses:
    def late(self, node: str | None) -> tuple[bool, int]:
        """Sent late while something was wrong with a node: whether that is told, and how much is excused."""
        tale = Retold()
        tale.ledger = msgspec.structs.replace(tale.ledger, lookahead=2000)
        entry = TestPolicies().recurring(tale)
        turn = tale.story.lives.turns[entry.id][1]
        send = turn.send
        assert send is not None
        tale.rewrite(lambda one: one is send, at=send.at + 9000, db=send.db + 9000)
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
