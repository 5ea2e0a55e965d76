"""`onthedot plan`, against a real server."""

from __future__ import annotations

import json


def test_a_file_is_planned_and_not_applied(online, key, tmp_path):
    job = {"key": key, "schedule": {"cron": "0 3 * * *"}, "target": {"type": "command", "command": "say"}}
    file = tmp_path / f"{key}.json"
    file.write_text(json.dumps({"source": key, "jobs": [job]}))
    (new,) = online("plan", str(file), "--days", "10", "--json").json["jobs"]
    assert (new["change"], new["added"]) == ("new", 10)
    assert online("jobs", "show", key).code == 1, "nothing was made"
    assert online("jobs", "apply", str(file)).code == 0
    assert "No firings change" in online("plan", str(file)).out
    file.write_text(json.dumps({"source": key, "jobs": [{**job, "schedule": {"cron": "0 4 * * *"}}]}))
    told = online("plan", str(file))
    assert told.code == 0, told.err
    assert "changed" in told.out
    assert " → " in told.out
    file.write_text(json.dumps({"source": key, "jobs": []}))
    (gone,) = online("plan", str(file), "--prune", "--json").json["jobs"]
    assert (gone["change"], gone["removed"]) == ("removed", 30)
    file.write_text(json.dumps({"jobs": [{**job, "schedule": {"cron": "nonsense"}}]}))
    wrong = online("plan", str(file))
    assert (wrong.code, "cron" in wrong.err) == (1, True)
