"""`onthedot runs`, `dead`, `timer`, `nodes`, `stats`, against a real server."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from onthedot.cli.runs import _follow
from onthedot.model.run import RunView
from tests.services.waiting import until_blocking


def add(cli, key: str, *target: str):
    made = cli("jobs", "add", "--at", "2033-01-01T00:00:00Z", "--key", key, "--attempts", "1", *target, "--json")
    assert made.code == 0, made.err
    return made.json


def test_a_run_s_log_is_followed_to_its_end(online, key):
    add(online, key, "--function", "chores:greet", "--param", "name=Anna")
    run = online("jobs", "run", key, "--json").json["id"]
    followed = online("runs", "logs", "-f", run)
    assert followed.code == 0, followed.err
    assert "hello Anna" in followed.out
    assert followed.out.count("hello Anna") == 1
    assert "hello Anna" in online("runs", "logs", run, "--json").json["log"]
    assert "hello Anna" in online("runs", "logs", run).out
    shown = online("runs", "show", run)
    assert "status     DONE" in shown.out
    assert "trigger    manual by open" in shown.out
    listed = online("runs", "list", key)
    assert listed.out.splitlines()[0].split() == ["RUN", "JOB", "SCHEDULED", "STATUS", "LATE", "TOOK", "OUTCOME"]
    assert run in listed.out
    assert [item["id"] for item in online("runs", "list", key, "--status", "done", "--json").json] == [run]


def test_a_chain_says_what_follows_and_what_started_it(online, key):
    add(online, f"{key}-b", "--function", "chores:greet", "--param", "name=Ben")
    add(online, key, "--function", "chores:greet", "--on-success", f"{key}-b", "--on-failure", f"{key}-b")
    assert f"on success  {key}-b" in online("jobs", "show", key).out
    assert f"on failure  {key}-b" in online("jobs", "explain", key).out
    refused = online("jobs", "delete", f"{key}-b", "-y")
    assert refused.code == 1
    assert f"({key!r}) names" in refused.err
    run = online("jobs", "run", key, "--json").json["id"]

    def followers() -> list[str]:
        found: list[str] = online("runs", "show", run, "--json").json["followers"]
        return found

    until_blocking(lambda: bool(followers()), "the run has a follower")
    (started,) = followers()
    online("runs", "logs", "-f", started)
    assert f"followers  {started}" in online("runs", "show", run).out
    shown = online("runs", "show", started).out
    assert f"trigger    chain (run {run})" in shown
    assert "status     DONE" in shown
    edited = online("jobs", "edit", key, "--on-finish", f"{key}-b", "--unset", "on_success", "--unset", "on_failure")
    assert edited.code == 0, edited.err
    exported = online("jobs", "show", key, "--json").json
    assert (exported["on_success"], exported["on_finish"]) == ([], [f"{key}-b"])


def test_what_failed_for_good_is_redriven(online, key):
    job = add(online, key, "--function", "chores:fail")
    run = online("jobs", "run", key, "--json").json["id"]
    online("runs", "logs", "-f", run)
    dead = online("dead", "list", "--job", key, "--json").json
    assert [item["id"] for item in dead] == [run]
    assert "ValueError" in online("dead", "list", "--job", key).out
    assert "ValueError: as told" in online("dead", "groups", "--job", key).out
    redriven = online("dead", "redrive", run)
    assert redriven.out.splitlines()[-1] == "Created 1 new run."
    assert redriven.out.startswith(f"{job['id']}-")
    online("runs", "logs", "-f", redriven.out.split()[0])
    (again,) = online("dead", "redrive", "--job", key, "--json").json["runs"]
    online("runs", "logs", "-f", again)
    slowly = online("dead", "redrive", "--job", key, "--cause", "ValueError: as told", "--rate", "100", "--json").json
    assert (slowly["verb"], slowly["done"], slowly["rate"]) == ("redrive", 1, 100)
    (last,) = [each["id"] for each in online("runs", "list", key, "-n", "1", "--json").json]
    online("runs", "logs", "-f", last)
    assert online("dead", "discard", "--job", key, "--note", "enough").out == "Discarded 1 dead letter.\n"
    (closed,) = online("dead", "list", "--job", key, "--discarded", "--json").json
    assert closed["discarded"]["note"] == "enough"
    assert online("dead", "list", "--job", key).out == "No dead letters.\n"


@pytest.mark.parametrize("arguments", [[], ["1-1", "--all"], ["--all", "--job", "x"]])
def test_redrive_wants_to_know_which(cli, arguments):
    result = cli("dead", "redrive", *arguments)
    assert result.code == 2
    assert "specify exactly one of" in result.err


def test_redrive_says_what_a_run_is_called(online):
    result = online("dead", "redrive", "nightly")
    assert result.code == 1
    assert "ids[0]: does not have the required format (given: nightly)" in result.err
    assert "accepted: the ID of a run, such as 12-1763234567890" in result.err


def test_a_run_is_cancelled_and_run_again(online, key):
    add(online, key, "--command", "wait")
    run = online("jobs", "run", key, "--json").json["id"]
    cancelled = online("runs", "cancel", run)
    assert cancelled.code == 0, cancelled.err
    online("runs", "logs", "-f", run)
    assert online("runs", "show", run, "--json").json["status"] == "CANCELLED"
    again = online("runs", "retry", run, "--params", '{"day": 1}', "--json").json
    assert (again["kind"], again["params"]) == ("redrive", {"day": 1})
    assert online("runs", "cancel", again["id"]).code == 0


def test_an_unknown_run_is_told(online):
    result = online("runs", "show", "1-999")
    assert result.code == 1
    assert result.err.startswith("Error: ")


def test_a_timer(online):
    made = online("timer", "1h30m", "http://127.0.0.1:9/", "--json")
    assert made.json["time_left"] == 5400
    assert "POST http://127.0.0.1:9/ in 60 s." in online("timer", "1m", "http://127.0.0.1:9/").out


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["soon", "http://127.0.0.1:9/"], 2, "is not a valid duration"),
        (["1.5s", "http://127.0.0.1:9/"], 2, "whole number of seconds"),
        (["10s"], 2, "Missing argument"),
    ],
)
def test_a_wrong_timer_is_usage(cli, arguments, code, told):
    result = cli("timer", *arguments)
    assert result.code == code
    assert told in result.err


@pytest.mark.parametrize("arguments", [["0s", "http://127.0.0.1:9/"], ["10s", "nonsense"]])
def test_an_impossible_timer_is_refused(online, arguments):
    assert online("timer", *arguments).code == 1


def test_nodes_and_stats(online, node):
    (found,) = online("nodes", "--json").json
    assert found["pid"] == node.pid
    assert f" {node.pid} " in online("nodes").out
    assert abs(found["clock_skew_ms"]) < 1000
    assert "CLOCK" in online("nodes").out
    stats = online("stats", "--json").json
    assert stats["jobs"]["active"] >= 0
    assert online("stats").out.startswith("jobs")


@pytest.mark.parametrize(
    "arguments",
    [["nodes"], ["stats"], ["jobs", "list"], ["runs", "list"], ["dead", "list"], ["timer", "1s", "http://x.org"]],
)
def test_without_a_server_it_says_how_to_start_one(cli, free_port, arguments):
    result = cli(*arguments, "--url", f"127.0.0.1:{free_port()}")
    assert result.code == 1
    assert "can't reach http://127.0.0.1:" in result.err
    assert "Start it with `onthedot serve`" in result.err


class Growing:
    """A run whose log grows with every look, and then loses its beginning."""

    def __init__(self, *texts: str) -> None:
        self._texts = list(texts)

    def get_run(self, run_id: str) -> RunView:
        plain: dict[str, Any] = dict.fromkeys(RunView.__struct_fields__)
        return RunView(**{**plain, "id": run_id, "status": "DONE" if len(self._texts) == 1 else "EXECUTING"})

    def run_logs(self, run_id: str) -> str:
        return self._texts.pop(0)


@pytest.mark.parametrize(
    ("texts", "seen"),
    [
        (["", "a\n", "a\nb\n"], "a\nb\n"),
        (["abc" * 100, "c" + "abc" * 99 + "new"], "abc" * 100 + "new"),
        (["old", "quite another"], "oldquite another"),
    ],
)
def test_following_prints_what_is_new(texts, seen):
    written: list[str] = []
    pauses: list[None] = []
    growing: Any = Growing(*texts)
    _follow(growing, "1-1", written.append, lambda: pauses.append(None))
    assert "".join(written) == seen
    assert len(pauses) == len(texts) - 1


def test_the_log_is_there_while_the_run_runs(online, key, node):
    """Also as server-sent events, which end with the run."""
    add(online, key, "--command", "talk")
    run = online("jobs", "run", key, "--json").json["id"]
    until_blocking(lambda: "begun" in online("runs", "logs", run).out, "the first line")
    assert online("runs", "show", run, "--json").json["status"] == "EXECUTING"
    with httpx.stream("GET", f"{node.url}/v1/runs/{run}/logs?follow=true", timeout=30) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        assert next(line for line in lines if line.startswith("data")) == 'data: {"text":"begun\\n"}'
        assert online("runs", "cancel", run).code == 0
        assert list(lines)[-3:] == ["event: end", 'data: {"status":"CANCELLED"}', ""]
    assert online("runs", "logs", run).out.startswith("begun\n")


@pytest.mark.parametrize("columns", [60, 80])
def test_what_is_printed_follows_columns(online, key, monkeypatch, columns):
    body = '{"words": "%s"}' % ("a long word and another one " * 5)
    made = online("jobs", "add", "--in", "9h", "--url", f"http://127.0.0.1:9/{'x' * 90}", "--key", key, "--body", body)
    assert made.code == 0, made.err
    started = online("jobs", "run", key, "--json").json["id"]
    monkeypatch.setenv("COLUMNS", str(columns))
    for command in (
        ["nodes"],
        ["destinations"],
        ["jobs", "show", key],
        ["jobs", "list", key],
        ["runs", "show", started],
    ):
        shown = online(*command)
        assert shown.code == 0, shown.err
        assert max(map(len, shown.out.splitlines())) <= columns, shown.out
        assert "…" not in shown.out
    assert "x" * 90 in "".join(line.strip() for line in online("jobs", "show", key).out.splitlines())
