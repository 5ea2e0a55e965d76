"""`onthedot jobs versions` and `jobs restore`, against a real server."""

from __future__ import annotations

import pytest


@pytest.fixture
def edited(online, key):
    made = online("jobs", "add", "--every", "1h", "--key", key, "--command", "say", "--json")
    assert made.code == 0, made.err
    assert online("jobs", "edit", key, "--every", "2h").code == 0
    return key


def test_versions_say_what_changed_and_restore_goes_back(online, edited):
    listed = online("jobs", "versions", edited)
    assert listed.code == 0, listed.err
    assert "2 *" in listed.out
    assert "schedule" in listed.out
    told = online("jobs", "versions", edited, "--diff", 1, 2)
    assert '-    "every": "1h"' in told.out, told.out
    assert '+    "every": "2h"' in told.out
    assert online("jobs", "versions", edited, "--diff", 1, 7).code == 2
    back = online("jobs", "restore", edited, 1, "--json")
    assert (back.json["version"], back.json["schedule"]["every"]) == (3, "1h"), back.err
    assert [each["verb"] for each in online("jobs", "versions", edited, "--json").json] == ["restore", "edit", "create"]
    assert online("jobs", "restore", edited, 9).code == 1


def test_a_deleted_job_comes_back_by_its_id_and_by_its_key(online, edited):
    made = online("jobs", "show", edited, "--json").json
    for name in (made["id"], edited):
        assert f"onthedot jobs undelete {made['id']}" in online("jobs", "delete", edited, "-y").out
        assert online("jobs", "show", edited).code == 1
        told = online("jobs", "undelete", name)
        assert told.code == 0, told.err
        assert "is back, active" in told.out
    assert online("jobs", "show", edited, "--json").json["next_run"] == made["next_run"]
    assert online("jobs", "undelete", made["id"]).code == 1  # it is not deleted
    assert "10 minutes" in online("jobs", "undelete", "nobody").err


def test_the_audit_says_who_did_what(online, edited):
    listed = online("audit", "--job", edited, "--verb", "edit")
    assert listed.code == 0, listed.err
    assert "open" in listed.out
    (entry,) = online("audit", "--job", edited, "--verb", "edit", "--json").json
    assert (entry["summary"], entry["version_before"], entry["version_after"]) == ("schedule.every", 1, 2)
    assert online("audit", "--job", "nobody").out == "No changes.\n"
