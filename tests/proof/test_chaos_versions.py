"""Several users on one job: the order of what they did, the schedules that were in force, requests that nobody waited
for any more; and what the verdict says of Retry-After, of ids given twice, and of a standby that was behind."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from proof.chaos.diary import JobNote
from proof.chaos.harm import Harm
from proof.chaos.verdict import judge
from proof.chaos.versions import Request, cancelled_ahead, carried_out_late, in_order, schedules_in_force
from proof.checker.events import Changed, Made, Received
from proof.checker.story import Story
from tests.proof.making import BEGIN, Tale


def change(verb: Any, version: int, at: int, until: int) -> Changed:
    return Changed(at=at, until=until, job=1, verb=verb, version=version, changed_at=BEGIN + at)


def note(version: int, at: int, schedule: dict[str, Any] | None = None, what: str = "update") -> JobNote:
    spec = msgspec.json.encode({"schedule": schedule or {"every": "10s", "tz": "UTC", "cron": None}}).decode()
    return JobNote(
        id=version, db=(BEGIN + at) * 1000, what=what, job=1, version=version, updated_at=BEGIN + at, spec=spec, at=at
    )


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
    story = story_of(Tale())
    schedules_in_force(story, [note(2, 15_000, {"every": "1s500ms"}), note(3, 25_000, {"cron": "* * * * * *"})])
    assert [segment.begin - BEGIN for segment in story.jobs[1].segments] == [0, 15_000, 25_000]


def test_the_same_schedule_in_other_words_begins_nothing_anew():
    story = story_of(Tale({"every": "1500ms"}))
    schedules_in_force(story, [note(2, 15_000, {"every": "1s500ms", "tz": "UTC", "count": None})])
    assert len(story.jobs[1].segments) == 1


@pytest.mark.parametrize(("cancelled_at", "fine"), [(14_000, True), (17_000, False)])
def test_a_slot_of_the_old_schedule_that_was_cancelled_in_time_is_no_phantom(cancelled_at, fine):
    tale = Tale().entry(50_000, "cancelled", reason="cancelled", finished_at=BEGIN + cancelled_at)
    story = story_of(tale)
    schedules_in_force(story, [note(2, 15_000, {"every": "7s"})])
    assert cancelled_ahead(story, f"1-{BEGIN + 50_000}") == fine


# requests that were given up


def late(requests: list[Request], *harms: Harm, at: int = 30_000) -> list[str]:
    story = story_of(Tale())
    found = [violation.kind for violation in carried_out_late(story, [note(2, at)], requests, harms)]
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


def test_a_job_that_nobody_asked_by_its_id_is_not_judged():
    assert late([]) == []


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
