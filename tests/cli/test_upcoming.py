"""`onthedot upcoming` and `onthedot forecast`, against a real server."""

from __future__ import annotations


def test_what_is_to_come(online, key):
    made = online("jobs", "add", "--every", "10m", "--key", key, "--command", "say", "--json")
    assert made.code == 0, made.err
    (mine,) = [each for each in online("upcoming", "-n", "500", "--json").json["items"] if each["key"] == key]
    assert (mine["at"], mine["more"]) == (made.json["next_run"], 143)
    assert key in online("upcoming", "-n", "500").out
    online("jobs", "add", "--every", "7s", "--key", f"{key}-often", "--command", "say")
    lines = online("upcoming", "-n", "500").out.splitlines()
    assert [line.split()[-1] for line in lines if f"{key}-often" in line] == ["12341"]
    assert "runs at the same time" in online("forecast", "--hours", "1").out
    assert len(online("forecast", "--hours", "1", "--json").json["starts"]) == 60
    wrong = online("upcoming", "--until", "tomorrow")
    assert wrong.code == 1
    assert "until" in wrong.err
