"""Several users on one job: the order of what they did, the schedules that were in force, requests that nobody waited
for any more; and what the verdict says of Retry-After, of ids given twice, and of a standby that was behind."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from proof.chaos.harm import Harm
from proof.chaos.orders import claimed_after, gave_up_early
from proof.chaos.verdict import judge
from proof.chaos.versions import Request, carried_out_late, in_order, not_as_asked
from proof.checker.events import Changed, Made, Received, Wrote
from proof.checker.story import Story
from tests.proof.making import BEGIN, Tale


def change(verb: Any, version: int, at: int, until: int) -> Changed:
    return Changed(at=at, until=until, job=1, verb=verb, version=version, changed_at=BEGIN + at)


SPEC: dict[str, Any] = {"schedule": {"every": "10s"}, "target": {"type": "webhook"}, "params": {"mark": 1}}


def wrote(version: int, at: int, verb: Any = "edit", **parts: Any) -> Wrote:
    """What the database's diary has of a version: all of the spec, whoever asked for it."""
    wish = None if verb == "delete" else SPEC | parts
    return Wrote(at=at, db=BEGIN + at, verb=verb, job=1, number=version, wish=wish)


def story_of(tale: Tale) -> Story:
    return Story(tale.history(), tale.ledger())


# order


def test_verbs_are_in_the_order_of_their_versions_whoever_was_answered_first():
    late, early = change("pause", 2, 10, 120), change("resume", 3, 90, 100)
    first, second = (event for event in in_order([early, late]) if isinstance(event, Changed))
    assert (first.verb, second.verb) == ("pause", "resume")
    assert first.until == second.until == 100, "it was done before the other one was answered"


def test_a_delete_comes_last():
    gone, edited = Changed(at=5, until=20, job=1, verb="delete"), change("edit", 2, 6, 25)
    changes = [event for event in in_order([gone, edited]) if isinstance(event, Changed)]
    assert {change.verb: change.until for change in changes} == {"edit": 20, "delete": 20}


# schedules


def test_a_schedule_nobody_was_told_of_is_in_force():
    every, cron = {"every": "1s500ms"}, {"cron": "* * * * * *"}
    tale = Tale().add(wrote(1, 1, "create"), wrote(2, 15_000, schedule=every), wrote(3, 25_000, schedule=cron))
    assert [segment.begin - BEGIN for segment in story_of(tale).jobs[1].segments] == [1, 15_000, 25_000]


def test_an_edit_of_something_else_begins_no_schedule_anew():
    tale = Tale().add(wrote(1, 1, "create"), wrote(2, 15_000, policy={"timeout": "7s"}))
    assert len(story_of(tale).jobs[1].segments) == 1


# answers


def answers(kept: dict[str, Any], **change: Any) -> list[str]:
    """What is said when version 2 is `kept` and its user was told of it."""
    told = Changed(at=15_000, until=15_010, job=1, version=2, changed_at=BEGIN + 15_000, **change)
    tale = Tale().add(wrote(1, 1, "create"), wrote(2, 15_005, **kept), told)
    return [violation.kind for violation in not_as_asked(story_of(tale))]


def test_an_edit_stands_in_the_version_that_its_user_was_told_of():
    asked = {"schedule": {"every": "1500ms"}}
    assert answers({"schedule": {"every": "1s500ms", "tz": "UTC"}}, verb="edit", spec=asked) == [], "in other words"
    assert answers({"schedule": {"every": "10s"}}, verb="edit", spec=asked) == ["answer"]
    policy = {"policy": {"timeout": "7s"}}
    assert answers(policy, verb="edit", spec=policy) == []
    assert answers({}, verb="edit", spec=policy) == ["answer"], "answered with 200, and not followed"


def test_a_job_that_was_said_to_be_paused_is():
    assert answers({"paused": True}, verb="pause", state="paused") == []
    assert answers({}, verb="pause", state="paused") == ["answer"]


def test_who_asked_twice_may_be_told_of_what_another_did_meanwhile():
    assert answers({}, verb="pause", state="paused", sent=2) == []


# what a verb forbids


@pytest.mark.parametrize(("claimed_at", "kinds"), [(14_900, []), (15_200, []), (16_000, ["after_pause"])])
def test_nothing_is_claimed_after_a_pause_that_was_answered(claimed_at, kinds):
    told = Changed(at=14_990, until=15_100, job=1, verb="pause", version=2, changed_at=BEGIN + 15_000)
    tale = Tale().fires(10_000).add(wrote(1, 1, "create"), wrote(2, 15_000, "pause", paused=True), told)
    story = story_of(tale.claimed(20_000, at=claimed_at).sent(20_000).entry(20_000))
    assert [violation.kind for violation in claimed_after(story)] == kinds


def test_a_pause_that_nobody_was_told_of_forbids_once_it_is_committed():
    tale = Tale().add(wrote(1, 1, "create"), wrote(2, 15_000, "pause", paused=True))
    late_claim = tale.claimed(40_000, at=26_000).sent(40_000).entry(40_000)
    assert [violation.kind for violation in claimed_after(story_of(late_claim))] == ["after_pause"]


def test_a_resumed_job_may_be_claimed():
    tale = Tale().add(wrote(1, 1, "create"), wrote(2, 15_000, "pause", paused=True), wrote(3, 25_000, "resume"))
    story = story_of(tale.claimed(40_000, at=38_000).sent(40_000).entry(40_000))
    assert list(claimed_after(story)) == []


@pytest.mark.parametrize(("lasted", "kinds"), [(7000, []), (3000, ["policy"])])
def test_an_attempt_gets_the_time_that_its_job_gives(lasted, kinds):
    tale = Tale().add(wrote(1, 1, "create", policy={"timeout": "7s"})).fires(10_000)
    timeouts = {(f"1-{BEGIN + 10_000}", 1): (10_002, 10_002 + lasted)}
    assert [violation.kind for violation in gave_up_early(story_of(tale), timeouts)] == kinds


# requests that were given up


def late(requests: list[Request], *harms: Harm, at: int = 30_000) -> list[str]:
    story = story_of(Tale().add(wrote(1, 1, "create"), wrote(2, at)))
    made = Request(job=0, began=0, ended=5, status=201, marks=[1])
    found = [violation.kind for violation in carried_out_late(story, [made, *requests], harms)]
    assert bool(story.excuses) == bool(harms and not found)
    return found


def request(began: int, ended: int, status: int = 0) -> Request:
    return Request(job=1, began=began, ended=ended, status=status)


def test_what_is_written_while_somebody_waits_was_asked_for():
    assert late([request(29_000, 30_100, 200)]) == []
    assert late([request(29_000, 29_900)]) == [], "its client hung up while it was carried out"


def test_what_is_written_long_after_its_client_has_gone_is_a_violation():
    assert late([request(10_000, 16_000), request(17_000, 17_100, 200)]) == ["unasked"]


def test_a_statement_that_was_held_up_on_its_way_is_excused_and_counted():
    silence = Harm(at=14_000, until=29_900, what="silence", name="api0")
    assert late([request(10_000, 16_000)], silence) == []
    assert late([request(10_000, 16_000)], msgspec.structs.replace(silence, what="freeze")) == ["unasked"]


def test_what_nobody_asked_for_is_a_violation():
    assert late([]) == ["unasked"]
    story = story_of(Tale().add(wrote(1, 1, "create")))
    assert [violation.kind for violation in carried_out_late(story, [], [])] == ["unasked"], "the first version, too"


# the verdict


def answered(token: int, at: int, **more: Any) -> Received:
    slot = 10_000
    return Received(
        at=at,
        db=BEGIN + at,
        run=f"1-{BEGIN + slot}",
        job=1,
        token=token,
        took=10,
        node="a",
        **{"answer": "error"} | more,
    )


def kinds(tale: Tale, **more: Any) -> set[str]:
    return {violation.kind for violation in judge(tale.history(), tale.ledger(), **more)[1]}


@pytest.mark.parametrize(("second_at", "too_soon"), [(10_300, True), (11_100, False)])
def test_who_asks_for_time_gets_it(second_at, too_soon):
    tale = Tale().add(answered(1, 10_002, retry_after=1000), answered(2, second_at, answer="ok"))
    assert ("too_soon" in kinds(tale)) == too_soon


def test_an_id_that_is_given_twice_is_a_violation_also_after_a_failover():
    again = Made(at=7000, until=7005, mark=2, job=1, spec={"schedule": {"every": "10s"}}, created_at=BEGIN + 7000)
    failover = Harm(at=7000, until=8000, what="short_outage", detail="failover to an asynchronous standby")
    assert "reused" in kinds(Tale().add(again))
    assert "reused" in kinds(Tale().add(again), lossy=True, harms=[failover])


def test_what_a_standby_had_not_received_is_excused_and_counted():
    tale = Tale().fires(10_000).sent(20_000).fires(30_000, 40_000, 50_000).waits(60_000)  # the row of 20 s is lost
    failover = Harm(at=21_000, until=22_000, what="short_outage", detail="failover to an asynchronous standby")
    assert kinds(tale)
    story, found = judge(tale.history(), tale.ledger(), lossy=True, harms=[failover])
    assert not found
    assert any("lost with an asynchronous primary" in why for why in story.excuses)
    long_ago = msgspec.structs.replace(failover, at=5500, until=6000)
    assert judge(tale.history(), tale.ledger(), lossy=True, harms=[long_ago])[1], "nothing happened to it then"
