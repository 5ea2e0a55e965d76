"""The checker on histories written by hand: what is well stays silent, and each broken promise has its name."""

from __future__ import annotations

import msgspec
import pytest

from proof.checker.events import Acted, Completed, Crashed, Made, Received, Stepped
from proof.checker.ledger import Job
from tests.proof.making import BEGIN, Tale, all_well

FOUR = (20_000, 30_000, 40_000, 50_000)


def after_ten(**policy) -> Tale:
    """All is well, but for the first slot: that is for the test to tell."""
    return Tale(**policy).fires(*FOUR).waits(60_000)


def test_all_well():
    assert all_well().kinds() == set()


class TestCoverage:
    def test_slot_without_row(self):
        assert after_ten().kinds() == {"lost"}

    def test_range_covers_what_is_in_it(self):
        tale = Tale().fires(30_000, 40_000, 50_000).waits(60_000).fault("outage", 5000, 28_000)
        tale.entry(10_000, "skipped", until=20_000, slots=2, reason="coalesced", token=0, finished_at=BEGIN + 30_010)
        assert tale.kinds() == set()

    def test_range_that_covers_a_fired_slot(self):
        tale = after_ten().fault("outage", 5000, 28_000)
        tale.entry(10_000, "skipped", until=20_000, slots=2, reason="coalesced", token=0, finished_at=BEGIN + 30_010)
        assert tale.kinds() == {"doubled"}

    def test_range_that_miscounts(self):
        tale = Tale().fires(30_000, 40_000, 50_000).waits(60_000).fault("outage", 5000, 28_000)
        tale.entry(10_000, "skipped", until=20_000, slots=3, reason="coalesced", token=0, finished_at=BEGIN + 30_010)
        assert tale.kinds() == {"miscounted"}

    def test_row_of_no_slot(self):
        assert "phantom" in all_well().fires(35_000).kinds()

    def test_two_cursors(self):
        assert "two_cursors" in all_well().waits(70_000).kinds()

    def test_active_job_without_a_next_run(self):
        assert Tale().fires(10_000, *FOUR).kinds() == {"silent"}

    def test_a_job_that_was_fine_is_put_in_quarantine(self):
        tale = all_well()
        tale.jobs = [Job(id=1, spec=tale.jobs[0].spec, state="quarantined")]
        assert "quarantined" in tale.kinds()

    def test_slots_around_an_edit_may_be_old_or_new(self):
        tale = Tale().fires(10_000, 20_000)
        tale.changed("edit", 20_500, spec={"schedule": {"every": "15s"}}).fires(35_500, 50_500).waits(65_500)
        assert tale.kinds() == set()

    def test_old_slot_long_after_the_edit(self):
        tale = Tale().fires(10_000, 20_000, 30_000)
        tale.changed("edit", 20_500, spec={"schedule": {"every": "15s"}}).fires(35_500, 50_500).waits(65_500)
        assert tale.kinds() == {"phantom"}

    def test_one_off_is_covered_once(self):
        tale = Tale({"in": "5s"}).fires(5000)
        tale.jobs = [Job(id=1, spec=tale.jobs[0].spec, state="ended")]
        assert tale.kinds() == set()
        tale.entries.clear()
        assert {"lost", "phantom"} <= tale.kinds()


class TestDeliveries:
    def test_early(self):
        tale = after_ten().claimed(10_000).sent(10_000, at=9_990).recorded(10_000).entry(10_000)
        assert tale.kinds() == {"early"}

    def test_early_because_the_clock_was_set_back(self):
        tale = after_ten().claimed(10_000).sent(10_000, at=9_990).recorded(10_000).entry(10_000)
        tale.add(Stepped(at=9000, by_ms=-50, highest=BEGIN + 9000))
        assert "early" not in tale.kinds()

    def test_done_but_never_sent(self):
        assert "unsent" in after_ten().claimed(10_000).recorded(10_000).entry(10_000).kinds()

    def test_done_though_the_receiver_said_no(self):
        tale = after_ten().claimed(10_000).sent(10_000, answer="error").recorded(10_000).entry(10_000)
        assert tale.kinds() == {"unsent"}

    def test_skipped_but_sent(self):
        tale = after_ten().claimed(10_000).sent(10_000).entry(10_000, "skipped", reason="overlap")
        assert tale.kinds() == {"ledger"}

    def test_try_that_was_none(self):
        tale = after_ten().claimed(10_000).sent(10_000).recorded(10_000).entry(10_000, tries=2)
        assert tale.kinds() == {"tries"}

    def test_given_up_before_it_had_its_tries(self):
        tale = after_ten(retry={"attempts": 3}).claimed(10_000).sent(10_000, answer="error").recorded(10_000)
        assert tale.entry(10_000, "failed", reason="attempts").kinds() == {"tries"}

    def test_due_before_its_slot(self):
        tale = all_well()
        tale.entries[0] = msgspec.structs.replace(tale.entries[0], due_at=BEGIN + 9000)
        assert tale.kinds() >= {"early"}

    def test_due_later_than_its_jitter(self):
        tale = after_ten(jitter="300ms").claimed(10_000).sent(10_000, at=10_401).recorded(10_000, at=10_450)
        tale.entry(10_000)
        tale.entries[-1] = msgspec.structs.replace(tale.entries[-1], due_at=BEGIN + 10_400)
        assert tale.kinds() == {"early"}

    def test_unknown_needs_a_lost_node(self):
        tale = after_ten(delivery="at_most_once").claimed(10_000).sent(10_000)
        tale.recorded(10_000).entry(10_000, "failed", reason="unknown")
        assert tale.kinds() == {"unknown"}
        assert tale.lost("a", 55_000).kinds() == set()

    def test_unknown_may_be_the_end_of_a_lease(self):
        """What may not overlap is stopped with it; that takes seconds without a beat."""

        def stopped(until: int, overlap: str = "skip") -> set[str]:
            tale = after_ten(delivery="at_most_once", overlap=overlap).claimed(10_000).sent(10_000)
            tale.recorded(10_000, at=15_900, outcome="interrupted").entry(10_000, "failed", reason="unknown")
            return tale.fault("cut", 10_100, until, "a").kinds()

        assert "unknown" not in stopped(15_500)
        assert "unknown" in stopped(11_500)
        assert "unknown" in stopped(15_500, "allow"), "nobody stops what may overlap"

    def test_unknown_is_for_at_most_once_alone(self):
        tale = after_ten().claimed(10_000).sent(10_000).recorded(10_000).entry(10_000, "failed", reason="unknown")
        assert tale.lost("a", 55_000).kinds() == {"unknown"}

    def test_call_of_a_job_that_nobody_made(self):
        stray = Received(at=5, db=BEGIN + 5, run="7-1", job=7, token=1, answer="ok", took=1, node="a")
        assert all_well().add(stray).kinds() == {"phantom"}

    def test_newer_attempt_than_the_ledger_knows(self):
        tale = after_ten().claimed(10_000).sent(10_000, answer="error").sent(10_000, at=11_000, token=2)
        tale.claimed(10_000, token=2, at=10_900).recorded(10_000, token=2, at=11_100)
        assert "stale" in tale.entry(10_000, token=1).kinds()

    def test_sent_without_any_row(self):
        assert "phantom" in all_well().sent(33_000).kinds()


class TestRepeats:
    def twice(self, tale: Tale, *, first: str = "ok", node: str = "b") -> Tale:
        tale.claimed(10_000).sent(10_000, answer=first)
        tale.claimed(10_000, token=2, node=node, at=16_000).sent(10_000, at=16_005, token=2, node=node)
        return tale.recorded(10_000, token=2, node=node, at=16_020).entry(10_000, token=2, tries=1, losses=1)

    def test_without_a_reason(self):
        assert self.twice(after_ten()).kinds() == {"repeated"}

    def test_after_a_failure(self):
        assert self.twice(after_ten(), first="error").kinds() == set()

    def test_after_its_node_was_lost(self):
        assert (
            self.twice(after_ten()).fault("kill", 10_100, 12_000, "a").lost("a", 15_500).kinds() - {"zombie"} == set()
        )

    def test_another_nodes_loss_explains_nothing(self):
        assert "repeated" in self.twice(after_ten()).fault("kill", 10_100, 12_000, "c").lost("c", 15_500).kinds()

    def test_after_its_lease_ended(self):
        """It was stopped, not to run twice at once; that takes seconds without a beat."""
        cut = self.twice(after_ten(overlap="skip")).recorded(10_000, at=15_900, outcome="interrupted")
        assert "repeated" not in cut.fault("cut", 10_100, 15_500, "a").kinds()
        limited = self.twice(after_ten(max_running=1)).recorded(10_000, at=15_900, outcome="interrupted")
        assert "repeated" not in limited.fault("cut", 10_100, 15_500, "a").kinds()
        allowed = self.twice(after_ten()).recorded(10_000, at=15_900, outcome="interrupted")
        assert "repeated" in allowed.fault("cut", 10_100, 15_500, "a").kinds()
        briefly = self.twice(after_ten(overlap="skip")).recorded(10_000, at=15_900, outcome="interrupted")
        assert "repeated" in briefly.fault("cut", 10_100, 11_500, "a").kinds()
        assert "repeated" in self.twice(after_ten()).fault("cut", 10_100, 15_500, "a").kinds()

    def test_an_old_attempt_after_a_newer_one(self):
        tale = after_ten().claimed(10_000, token=1).claimed(10_000, token=2, node="b", at=9000)
        tale.sent(10_000, token=2, node="b", answer="error").sent(10_000, token=1, at=10_100)
        assert "overtaken" in tale.recorded(10_000, token=2, node="b").entry(10_000, token=2).kinds()

    def test_at_most_once(self):
        assert "at_most_once" in self.twice(after_ten(delivery="at_most_once"), first="error").kinds()

    def test_same_token_twice(self):
        tale = after_ten().claimed(10_000).sent(10_000, answer="error").sent(10_000, at=10_500)
        assert "repeated" in tale.recorded(10_000, at=10_600).entry(10_000).kinds()

    def test_overlap(self):
        tale = Tale(overlap="skip", timeout="60s").claimed(10_000).sent(10_000, took=15_000).recorded(10_000, at=25_000)
        assert "overlap" in tale.entry(10_000).fires(*FOUR).waits(60_000).kinds()


class TestFences:
    def test_result_of_an_old_owner(self):
        tale = after_ten().claimed(10_000).claimed(10_000, token=2, node="b", at=9000).sent(10_000, token=2, node="b")
        assert "stale" in tale.recorded(10_000, token=1, node="a").entry(10_000, token=2).kinds()

    def test_acceptance_that_its_callback_overtook(self):
        """The call was answered and its try ended by a callback; the acceptance is recorded after the next claim."""

        def overtaken(outcome: str) -> Tale:
            tale = after_ten(completion="callback").claimed(10_000)
            (accepted,) = after_ten().sent(10_000).events[-1:]
            tale.add(msgspec.structs.replace(accepted, of=1))
            told = Completed(
                at=10_500,
                db=BEGIN + 10_500,
                run="1-" + str(BEGIN + 10_000),
                of=1,
                told="failed",
                standing="current",
                wrote=True,
            )
            tale.add(told).claimed(10_000, token=2, at=11_000)
            return tale.recorded(10_000, at=11_100, outcome=outcome)

        assert "stale" not in overtaken("accepted").kinds()
        assert "stale" in overtaken("ok").kinds()

    def test_token_given_twice(self):
        assert "token" in all_well().claimed(20_000, node="b", at=19_000).kinds()

    def test_recorded_twice(self):
        assert "stale" in all_well().recorded(20_000, at=25_000).kinds()

    def test_robbed(self):
        assert "robbed" in all_well().lost("z", 30_000, silent=2000).kinds()

    def test_robbed_after_an_outage(self):
        assert "robbed" in all_well().lost("z", 30_000, silent=9000).fault("outage", 21_000, 29_500).kinds()
        assert "robbed" not in all_well().lost("z", 40_000, silent=15_000).fault("outage", 25_000, 33_000).kinds()

    def test_outages_that_overlap_are_counted_once(self):
        tale = all_well().lost("z", 40_000, silent=15_000).fault("outage", 25_000, 33_000)
        assert "robbed" not in tale.fault("outage", 26_000, 32_000).kinds()

    @pytest.mark.parametrize("what", ["short_outage", "db_restart"])
    def test_robbed_after_a_short_outage(self, what):
        assert "robbed" in all_well().lost("z", 30_000, silent=5100).fault(what, 26_500, 29_900).kinds()

    def test_sent_by_a_lost_node(self):
        assert all_well().lost("a", 45_000).kinds() == {"zombie"}


class TestVerbs:
    def test_sent_long_after_the_pause(self):
        assert all_well().changed("pause", 35_000).changed("resume", 45_000).kinds() == {"after_pause"}

    def test_sent_after_the_pause_by_a_node_in_trouble(self):
        """What it held when it last read what users want; and no longer."""
        for told, kinds in ((38_000, set()), (37_400, {"after_pause"})):
            tale = all_well().changed("pause", told).changed("resume", 45_000).fault("freeze", told - 500, 39_900, "a")
            assert tale.kinds() & {"after_pause"} == kinds

    def test_paused_after_it_had_ended(self):
        told = [all_well().changed("pause", 35_000, state=state).kinds() for state in ("paused", "ended")]
        assert ["after_pause" in kinds for kinds in told] == [True, False]

    def test_sent_long_after_the_delete(self):
        tale = all_well().changed("delete", 35_000)
        tale.jobs.clear()
        tale.live.clear()
        assert tale.kinds() == {"after_delete"}

    def test_run_by_hand_that_nobody_was_told_of(self):
        tale = all_well().waits(55_000, kind="manual", cursor=False, ready_at=BEGIN + 55_000)
        assert tale.kinds() == {"doubled"}

    def test_sent_right_after_the_pause(self):
        assert "after_pause" not in all_well().changed("pause", 39_900).changed("resume", 45_000).kinds()

    def test_acknowledged_job_is_gone(self):
        tale = all_well()
        tale.jobs.clear()
        assert "lost" in tale.kinds()

    def test_one_request_two_jobs(self):
        tale = all_well()
        tale.jobs.append(Job(id=2, spec=tale.jobs[0].spec, state="active"))
        assert tale.kinds() == {"doubled"}

    def test_same_request_answered_with_two_jobs(self):
        tale = all_well()
        made = tale.events[0]
        assert isinstance(made, Made)
        tale.add(Made(at=1, until=2, mark=1, job=2, spec=made.spec, created_at=BEGIN))
        assert "doubled" in tale.kinds()

    def test_promised_run_has_no_row(self):
        tale = all_well().add(Acted(at=30_000, until=30_001, job=1, verb="run", runs=["1-1700000030000-m1"]))
        assert tale.kinds() == {"lost"}


class TestLiveness:
    def test_overdue(self):
        tale = Tale().fires(10_000, 20_000, 30_000).waits(40_000)
        assert "stuck" in tale.kinds()

    def test_still_running(self):
        tale = Tale().fires(10_000, 20_000, 40_000, 50_000).waits(60_000).claimed(30_000)
        assert "stuck" in tale.waits(30_000, cursor=False, state="running", node="a", token=1).kinds()

    def test_parked_for_nobody(self):
        tale = Tale().fires(10_000, 20_000, 40_000, 50_000).waits(60_000)
        assert "stuck" in tale.waits(30_000, cursor=False, parked="lane", ready_at=2**63 - 1).kinds()

    def test_late_with_nothing_wrong(self):
        tale = after_ten().claimed(10_000).sent(10_000, at=10_400).recorded(10_000, at=10_500).entry(10_000)
        assert tale.kinds() == {"late"}

    def test_late_with_a_reason(self):
        tale = after_ten().claimed(10_000).sent(10_000, at=10_400).recorded(10_000, at=10_500).entry(10_000)
        assert tale.fault("slow", 9000, 10_300).kinds() == set()

    def test_retry_that_never_comes(self):
        tale = Tale().fires(10_000, 20_000, 40_000, 50_000).waits(60_000)
        assert "stuck" in tale.waits(30_000, cursor=False, ready_at=2**62).kinds()

    def test_parked_for_a_pause_that_is_over(self):
        tale = Tale().fires(10_000, 20_000, 40_000, 50_000).waits(60_000)
        assert "stuck" in tale.waits(30_000, cursor=False, parked="paused", ready_at=2**62).kinds()

    def test_given_up_with_nothing_wrong(self):
        tale = after_ten().entry(10_000, "skipped", reason="coalesced", token=0, finished_at=BEGIN + 20_050)
        assert tale.kinds() == {"given_up"}

    def test_given_up_though_no_newer_slot_had_come(self):
        tale = after_ten().fault("outage", 5000, 15_000)
        tale.entry(10_000, "skipped", reason="coalesced", token=0, finished_at=BEGIN + 19_000)
        assert tale.kinds() == {"forsaken"}

    @pytest.mark.parametrize(("catch_up", "after", "well"), [("skip", 59_000, False), ("skip", 61_000, True)])
    def test_skip_gives_up_after_a_minute(self, catch_up, after, well):
        tale = after_ten(catch_up=catch_up).fault("outage", 5000, 15_000)
        tale.entry(10_000, "skipped", reason="late", token=0, finished_at=BEGIN + 10_000 + after)
        assert ("forsaken" in tale.kinds()) != well

    @pytest.mark.parametrize(("limit", "well"), [(3, True), (4, False)])
    def test_all_gives_up_what_is_over_its_limit(self, limit, well):
        tale = after_ten(catch_up="all", catch_up_limit=limit).fault("outage", 5000, 15_000)
        tale.entry(10_000, "skipped", reason="late", token=0, finished_at=BEGIN + 40_000)
        assert ("forsaken" in tale.kinds()) != well

    def test_what_an_edit_passes_over(self):
        tale = Tale().fires(10_000).fault("outage", 5000, 24_000)
        tale.entry(20_000, "skipped", reason="late", token=0, finished_at=BEGIN + 24_500)
        tale.changed("edit", 24_500, spec={"schedule": {"every": "15s"}}).fires(39_500, 54_500).waits(69_500)
        assert tale.kinds() == set()

    def test_crash(self):
        assert all_well().add(Crashed(at=5, node="a", error="boom")).kinds() == {"crashed"}
