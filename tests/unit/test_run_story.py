"""The story of a run: the events of its page, in the order in which they happened."""

from __future__ import annotations

from typing import Any

import pytest

from onthedot.model.run import AttemptView, RefusedResult, RunTrigger, RunView
from onthedot.model.run_request import RunRequest
from onthedot.web.run_story import StoryEvent, story_of, verdict_of

NODES = {"n1": "eu-1", "n2": "eu-2"}
WEBHOOK = RunRequest(type="webhook", what="POST http://h/", method="POST", url="http://h/", headers={}, body=None)
FUNCTION = RunRequest(type="function", what="reports:daily")


def at(seconds: float) -> str:
    return f"2026-03-01T10:00:{seconds:06.3f}Z"


DUE = at(10)


def run(status: Any = "DONE", **more: Any) -> RunView:
    facts: dict[str, Any] = {
        **dict.fromkeys(("key", "reason", "node", "started_at", "finished_at", "lateness_ms", "duration_ms", "error")),
        "kind": "scheduled",
        "scheduled_for": DUE,
        "due_at": DUE,
        "attempt": 1,
        "tries": 1,
        "losses": 0,
        "outcome": {"kind": "ok", "status_code": 200} if status == "DONE" else None,
        "attempts": [],
        "request": WEBHOOK,
    }
    return RunView(**{"id": "7-1", "job_id": 7, "status": status, **facts, **more})


def attempt(n: int, claimed: float | None, started: float | None, finished: float, **more: Any) -> AttemptView:
    times = {"claimed_at": claimed, "started_at": started, "finished_at": finished}
    instants = {name: None if time is None else at(time) for name, time in times.items()}
    return AttemptView(**{"attempt": n, "node": "n1", "outcome": "ok", **instants, **more})


def told(found: RunView) -> list[tuple[str, str | None]]:
    return [(event.title, event.node) for event in story_of(found, NODES)]


def event(found: RunView, title: str) -> StoryEvent:
    (only,) = (each for each in story_of(found, NODES) if each.title == title)
    return only


def test_a_run_that_went_well():
    done = run(attempts=[attempt(1, 8, 10.002, 10.05)], finished_at=at(10.05), duration_ms=48)
    assert told(done) == [
        ("Claimed", "eu-1"),
        ("Scheduled", None),
        ("Attempt 1 sent", "eu-1"),
        ("Answered", None),
        ("Recorded as done", None),
    ]
    assert event(done, "Claimed").text == "2 s ahead of its time"
    assert event(done, "Answered").text == "status 200"
    assert event(done, "Recorded as done").text == "it took 48 ms"
    assert [each.after for each in story_of(done, NODES)] == [None, 2000, 2, 48, 0]


@pytest.mark.parametrize(
    ("request_", "title"), [(WEBHOOK, "Attempt 1 sent"), (FUNCTION, "Attempt 1 started"), (None, "Attempt 1 started")]
)
def test_only_what_leaves_as_a_request_is_sent(request_: RunRequest | None, title: str):
    """None: its job was deleted, and nobody knows any more what it was."""
    assert (title, "eu-1") in told(run(request=request_, attempts=[attempt(1, 8, 10, 10.1)], finished_at=at(10.1)))


def test_each_failure_is_told_and_the_next_attempt_has_its_own_number():
    """Numbers of attempts rise with every claim, so they may skip some."""
    failed = attempt(1, 8, 10, 10.1, outcome="error", error="the receiver returned 500")
    done = run(
        attempts=[failed, attempt(3, 11.1, 11.1, 11.2)], attempt=3, tries=2, finished_at=at(11.2), duration_ms=100
    )
    assert told(done) == [
        ("Claimed", "eu-1"),
        ("Scheduled", None),
        ("Attempt 1 sent", "eu-1"),
        ("Failed", None),
        ("Claimed", "eu-1"),
        ("Attempt 3 sent", "eu-1"),
        ("Answered", None),
        ("Recorded as done", None),
    ]
    assert event(done, "Failed").text == "the receiver returned 500"
    assert [each.text for each in story_of(done, NODES) if each.title == "Claimed"] == ["2 s ahead of its time", ""]
    assert verdict_of(done).text == "It succeeded, at attempt 2."


def test_a_retry_names_the_run_that_it_tries_again_and_who_asked():
    retry = run(
        "PENDING", kind="redrive", trigger=RunTrigger(kind="retry", run_id="7-0", actor="ann"), attempt=0, tries=0
    )
    first = story_of(retry, NODES)[0]
    assert (first.title, first.text, first.run_id) == ("Created", "as a retry, ann", "7-0")
    opened = run("PENDING", kind="manual", trigger=RunTrigger(kind="manual", actor="open"), attempt=0, tries=0)
    assert story_of(opened, NODES)[0].text == "by hand", "a server without keys does not know who"


def test_rows_of_older_releases_have_no_time_of_the_claim():
    old = run(attempts=[attempt(1, None, 10, 10.1)], finished_at=at(10.1), duration_ms=100)
    assert told(old) == [
        ("Scheduled", None),
        ("Attempt 1 sent", "eu-1"),
        ("Answered", None),
        ("Recorded as done", None),
    ]
    never_begun = run("FAILED", attempts=[attempt(1, None, None, 10.1, outcome="lost")], finished_at=at(10.1))
    assert ("Node lost", "eu-1") in told(never_begun), "the node stands where the first event of the attempt is"


def test_a_takeover_says_from_whom():
    lost = attempt(1, 8, 10, 15, outcome="lost")
    taken = run(attempts=[lost, attempt(2, 15.5, 15.6, 15.7, node="n2")], attempt=2, losses=1, finished_at=at(15.7))
    assert told(taken) == [
        ("Claimed", "eu-1"),
        ("Scheduled", None),
        ("Attempt 1 sent", "eu-1"),
        ("Node lost", None),
        ("Taken over", "eu-2"),
        ("Attempt 2 sent", "eu-2"),
        ("Answered", None),
        ("Recorded as done", None),
    ]
    assert event(taken, "Taken over").text == "from eu-1, which was lost"
    assert "is refused" in event(taken, "Node lost").text
    running = run("EXECUTING", attempts=[lost], attempt=2, node="n2", claimed_at=at(15.5), started_at=at(15.6))
    assert told(running)[-2:] == [("Taken over", "eu-2"), ("Attempt 2 runs", "eu-2")]


def test_a_late_result_of_a_lost_node_stands_where_it_came():
    late = RefusedResult(
        attempt=1,
        node="n1",
        started_at=at(10),
        finished_at=at(16),
        outcome="error",
        error="500",
        refused_at=at(20),
    )
    taken = run(
        attempts=[attempt(1, 8, 10, 15, outcome="lost"), attempt(2, 15.5, 15.6, 15.7, node="n2")],
        attempt=2,
        losses=1,
        finished_at=at(15.7),
        refused=[late],
        followers=["8-1-c1"],
    )
    assert told(taken)[-3:] == [("Recorded as done", None), ("Started", None), ("Late result refused", "eu-1")]
    assert event(taken, "Late result refused").text == (
        "it reported attempt 1, which another node had taken over: failed (500), 6 s after its start. "
        "Nothing changed by it"
    )
    never_started = run(
        refused=[RefusedResult(**{**{f: getattr(late, f) for f in late.__struct_fields__}, "started_at": None})]
    )
    assert "after its start" not in event(never_started, "Late result refused").text


@pytest.mark.parametrize(
    ("found", "title", "node"),
    [
        (run("PENDING", attempt=0), "Not started yet", None),
        (run("PENDING", next_attempt_at=at(12), attempts=[attempt(1, 8, 10, 11)]), "Next attempt", None),
        (run("PENDING", waiting="group", waiting_for="db", waiting_since=at(10)), "Waits", None),
        (run("PENDING", reason="paused"), "Waits", None),
        (run("EXECUTING", node="n1", started_at=at(10)), "Attempt 1 runs", "eu-1"),
        (run("EXECUTING", waiting="callback", started_at=at(10)), "Attempt 1 was accepted", None),
    ],
)
def test_the_present_is_the_end_of_what_is_not_over(found: RunView, title: str, node: str | None):
    last = story_of(found, NODES)[-1]
    assert (last.title, last.node, last.tone) == (title, node, "now")


def test_a_run_that_a_node_holds_is_claimed_before_its_time():
    held = run("PENDING", node="n1", claimed_at=at(8))
    assert told(held) == [("Claimed ahead of time", "eu-1"), ("Scheduled", None)]


@pytest.mark.parametrize(
    ("status", "title", "tone"),
    [("FAILED", "failed", "bad"), ("CANCELLED", "cancelled", "warn"), ("SKIPPED", "skipped", "warn")],
)
def test_every_end_has_its_words(status: str, title: str, tone: str):
    last = story_of(run(status, finished_at=at(11)), NODES)[-1]
    assert (last.title, last.tone) == (f"Recorded as {title}", tone)


def test_of_very_many_attempts_it_says_that_the_first_are_gone():
    kept = [attempt(n, None, n, n + 0.5, outcome="error") for n in range(21, 41)]
    assert told(run("FAILED", attempts=kept, attempt=40, finished_at=at(41)))[1] == ("Earlier attempts", None)


def test_jitter_has_an_instant_of_its_own():
    assert event(run("PENDING", due_at=at(13), attempt=0), "Due").after == 3000


def test_a_node_that_nobody_remembers_is_told_by_the_beginning_of_its_id():
    forgotten = run(attempts=[attempt(1, 8, 10, 10.1, node="0123456789abcdef")], finished_at=at(10.1))
    assert ("Attempt 1 sent", "01234567… (stopped since)") in told(forgotten)
