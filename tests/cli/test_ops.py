"""`onthedot ops`, against a real server."""

from __future__ import annotations

import pytest


@pytest.fixture
def tagged(online, key):
    """Two jobs with a tag of their own."""
    for n in range(2):
        made = online(
            "jobs",
            "add",
            "--at",
            "2033-01-01T00:00:00Z",
            "--key",
            f"{key}-{n}",
            "--tag",
            key,
            "--function",
            "chores:greet",
        )
        assert made.code == 0, made.err
    return key


def states(cli, tag):
    return [job["state"] for job in cli("jobs", "list", "--tag", tag, "--json").json]


def test_all_that_match_are_counted_paused_and_shown(online, tagged):
    counted = online("ops", "start", "pause", "--tag", tagged, "--dry-run")
    assert counted.out.splitlines()[-1] == "2 would be affected by pause."
    assert states(online, tagged) == ["active", "active"]
    paused = online("ops", "start", "pause", "--tag", tagged, "--note", "maintenance", "-y")
    assert paused.code == 0, paused.err
    assert paused.out.endswith("pause, done: 2 done of 2.\n")
    assert states(online, tagged) == ["paused", "paused"]
    (newest,) = online("ops", "list", "-n", "1", "--json").json
    shown = online("ops", "show", newest["id"]).out
    assert "maintenance" in shown
    assert f'{{"tag":"{tagged}"}}' in shown
    again = online("ops", "start", "pause", "--tag", tagged, "--json").json
    assert (again["done"], again["skipped"], again["state"]) == (0, 2, "done")
    told = online("ops", "list", "-n", "1")
    assert (str(again["id"]) in told.out, "more operations not shown" in told.out + told.err) == (True, True)
    listed = online("ops", "list", "--all")
    assert "more operations" not in listed.out + listed.err
    assert {newest["id"], again["id"]} <= {each["id"] for each in online("ops", "list", "--all", "--json").json}
    aborted = online("ops", "abort", again["id"])
    assert aborted.code == 1
    assert "has already ended: done" in aborted.err


def test_one_is_paused_and_resumed(online, tagged):
    begun = online("ops", "start", "pause", "--tag", tagged, "--rate", "1", "--no-wait", "--json", "-y").json
    paused = online("ops", "pause", begun["id"])
    assert (paused.code, f"Operation {begun['id']}: pause, paused: " in paused.out) == (0, True), (
        paused.out + paused.err
    )
    assert online("ops", "show", begun["id"], "--json").json["state"] == "paused"
    assert "active" in states(online, tagged), "one is left"
    resumed = online("ops", "resume", begun["id"], "--json").json
    assert (resumed["id"], resumed["state"]) == (begun["id"], "running")
    assert online("ops", "show", begun["id"], "--wait", "--json").json["done"] == 2
    refused = online("ops", "pause", begun["id"])
    assert (refused.code, "has already ended: done" in refused.err) == (1, True)


def test_what_is_refused_is_an_exit_code(online, tagged):
    too_many = [word for n in range(50) for word in ("--add", f"{tagged}-{n}")]
    refused = online("ops", "start", "tag", "--tag", tagged, *too_many, "-y")
    assert (refused.code, "2 failed" in refused.out) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["pause"], "specify at least one filter, or --all"),
        (["pause", "--tag", "x", "--all"], "specify at least one filter, or --all"),
        (["pause", "--tag", "x", "--rate", "0"], "--rate"),
    ],
)
def test_ops_wants_to_know_which(online, arguments, told):
    result = online("ops", "start", *arguments)
    assert result.code == 2
    assert told in result.err


def test_without_a_terminal_it_wants_a_yes(online, tagged):
    result = online("ops", "start", "delete", "--tag", tagged, stdin="")
    assert result.code == 2
    assert "use -y to delete jobs" in result.err
    assert len(states(online, tagged)) == 2


def test_the_whole_installation_is_paused_and_resumed(online):
    try:
        paused = online("pause", "--all", "--note", "maintenance")
        assert (paused.code, paused.out.startswith("Everything is paused since 20")) == (0, True), paused.err
        assert online("stats", "--json").json["freeze"]["note"] == "maintenance"
        assert "maintenance" in online("stats").out
    finally:
        resumed = online("resume", "--all", "--json")
    assert resumed.json == {"paused": False, "freeze": None}
    assert online("pause").code == 2, "a single job is paused by `jobs pause`"
