"""`onthedot alerts list`, against a real server."""

from __future__ import annotations

import pytest

from tests.services.waiting import until_blocking


@pytest.fixture
def failing(online):
    """Adds a job of this key that tells of its failures. The ID of the job."""

    def add(key):
        made = online("jobs", "add", "--every", "1h", "--key", key, "--function", "chores:fail", "--json")
        assert made.code == 0, made.err
        edited = online("jobs", "edit", key, "--set", "alerts.failed=true", "--set", "policy.retry.attempts=1")
        assert edited.code == 0, edited.err
        return made.json["id"]

    return add


def alerts_of(online, job):
    return online("alerts", "list", "--job", job, "--json").json


def test_alerts_of_a_job_are_listed_and_an_unknown_job_is_an_error(online, key, failing):
    made = failing(key)
    none = online("alerts", "list", "--job", key)
    assert (none.code, none.out) == (0, "No alerts.\n")
    assert online("jobs", "run", key).code == 0
    (found,) = until_blocking(lambda: alerts_of(online, key), "it failed")
    assert (found["job_id"], found["condition"]) == (made, "failed")
    assert online("jobs", "delete", key, "-y").code == 0
    assert [each["id"] for each in alerts_of(online, made)] == [found["id"]], "those of a deleted job stay, by its ID"
    for unknown in ("nobody", "999999999"):
        refused = online("alerts", "list", "--job", unknown)
        assert refused.code == 1
        assert refused.err == f"Error: job '{unknown}' not found; run `onthedot jobs list` to see all jobs\n"


def test_a_job_whose_key_is_a_number_has_its_alerts(online, failing):
    made = failing("888888888")
    assert online("jobs", "run", "888888888").code == 0
    (found,) = until_blocking(lambda: alerts_of(online, "888888888"), "it failed")
    assert found["job_id"] == made
