"""What is told to differ between two runs: what may mean something, and nothing that is another's with every run."""

from __future__ import annotations

from typing import Any

from onthedot.model.run import RunTrigger, RunView
from onthedot.model.run_comparison import RunComparison, compare_views, is_notable
from onthedot.model.run_request import RunRequest, RunResponse
from onthedot.web.run_compare import compare_in_full


def run(n: int, status: Any = "DONE", **more: Any) -> RunView:
    at = f"2026-01-0{n}T00:00:00.000Z"
    headers = {"webhook-id": f"1-{n}", "webhook-timestamp": str(n), "x-onthedot-attempt": str(n), "x-team": "a"}
    facts: dict[str, Any] = {
        "key": "nightly",
        "kind": "scheduled",
        "scheduled_for": at,
        "due_at": at,
        "reason": None,
        "attempt": n,
        "tries": 1,
        "losses": 0,
        "node": "n1",
        "started_at": at,
        "finished_at": at,
        "lateness_ms": n,
        "duration_ms": 10 + n,
        "outcome": {"kind": "ok", "status_code": 200},
        "error": None,
        "attempts": [],
        "request": RunRequest(
            type="webhook",
            what=f"POST http://h/?run=1-{n}",
            method="POST",
            url="http://h/",
            headers=headers,
            body={"run": f"1-{n}", "slot": at, "try": n, "amount": 5, "items": [1, 2]},
        ),
        "response": RunResponse(status_code=200, body="fine"),
    }
    return RunView(**{"id": f"1-{n}", "job_id": 1, "status": status, **facts, **more})


def fields(found: RunComparison) -> dict[str, tuple[Any, Any]]:
    return {each.field: (each.this, each.other) for each in found.differences}


def test_runs_that_went_the_same_way_differ_in_nothing():
    assert compare_views(run(2), run(1), 3, 3).differences == []


def test_what_differs_is_named_by_its_path():
    request = RunRequest(
        type="webhook",
        what="PUT http://h/x",
        method="PUT",
        url="http://h/x",
        headers={"x-team": "b", "x-new": "1"},
        body={"run": "1-2", "slot": "x", "amount": 7, "items": [1, 3], "more": None},
    )
    failed = run(
        2,
        "FAILED",
        error="500",
        reason="attempts",
        tries=3,
        node="n2",
        duration_ms=3000,
        outcome={"kind": "error", "status_code": 500},
        request=request,
        response=RunResponse(status_code=500, body="broken"),
        params={"day": 2},
        trigger=RunTrigger(kind="manual"),
    )
    assert fields(compare_views(failed, run(1), 4, 3)) == {
        "status": ("FAILED", "DONE"),
        "reason": ("attempts", None),
        "error": ("500", None),
        "tries": (3, 1),
        "node": ("n2", "n1"),
        "trigger": ("manual", "schedule"),
        "job_version": (4, 3),
        "outcome.kind": ("error", "ok"),
        "outcome.status_code": (500, 200),
        "duration_ms": (3000, 11),
        "params": ({"day": 2}, None),
        "request.method": ("PUT", "POST"),
        "request.url": ("http://h/x", "http://h/"),
        "request.headers.x-team": ("b", "a"),
        "request.headers.x-new": ("1", None),
        "request.body.slot": ("x", "2026-01-01T00:00:00.000Z"),
        "request.body.amount": (7, 5),
        "request.body.items[1]": (3, 2),
        "request.body.more": (None, None),
        "request.body.try": (None, 1),
        "response.status_code": (500, 200),
        "response.body": ("broken", "fine"),
    }


def test_a_page_has_a_line_for_each_and_marks_those_that_tell_something():
    other = run(1, key="other", job_id=2)
    lines = {line.label: line for line in compare_in_full(compare_views(run(2, duration_ms=900), other, 4, None))}
    assert [label for label, line in lines.items() if line.differs] == ["Took", "Job's version", "Job"]
    assert (lines["Job's version"].this, lines["Job's version"].other, lines["Job's version"].link) == ("4", "–", None)
    assert not lines["Started late by"].differs
    linked = compare_in_full(compare_views(run(2), run(1), 4, 3))
    assert [line.link for line in linked if line.link] == ["/jobs/1/versions"]


def test_durations_differ_only_if_that_may_mean_something():
    assert [is_notable(this, other) for this, other in ((1, 90), (100, 201), (100, 199), (None, 5), (None, None))] == [
        False,
        True,
        False,
        True,
        False,
    ]


def test_no_more_than_a_hundred_are_told():
    def sent(n: int) -> RunRequest:
        return RunRequest(type="webhook", what="", body=[n + each for each in range(300)])

    found = compare_views(run(2, request=sent(1)), run(1, request=sent(2)), 1, 1)
    assert (len(found.differences), found.truncated) == (100, True)
