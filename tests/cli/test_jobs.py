"""`onthedot jobs`, against a real server."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from onthedot.cli.job_edits import patch_of, spec_of
from onthedot.cli.job_flags import loose_spec
from onthedot.cli.values import parsed_value

LATER = "2033-01-01T00:00:00Z"


def add(cli, key: str, *more: str):
    made = cli("jobs", "add", "--at", LATER, "--url", "http://127.0.0.1:9/", "--key", key, *more, "--json")
    assert made.code == 0, made.err
    return made.json


def test_a_job_by_flags(online, key):
    made = online(
        "jobs", "add", "--cron", "0 3 * * *", "--tz", "Europe/Berlin", "--url", "http://127.0.0.1:9/hook", "--key", key,
        "--name", "Nightly", "--tag", "a", "--tag", "b", "--timeout", "10s", "--attempts", "5", "--overlap", "skip",
        "--catch-up", "skip", "--method", "put", "-H", "X-A: 1", "--body", '{"n": 1}', "--json",
    )  # fmt: skip
    assert made.code == 0, made.err
    job = made.json
    assert job["schedule"] == {"cron": "0 3 * * *", "tz": "Europe/Berlin"}
    assert job["target"] == {
        "type": "webhook",
        "url": "http://127.0.0.1:9/hook",
        "method": "PUT",
        "headers": {"X-A": "1"},
        "body": {"n": 1},
    }
    assert (job["key"], job["name"], job["tags"]) == (key, "Nightly", ["a", "b"])
    assert (job["policy"]["timeout"], job["policy"]["retry"]["attempts"]) == ("10s", 5)
    assert (job["policy"]["overlap"], job["policy"]["catch_up"]) == ("skip", "skip")


def test_a_function_with_params_and_a_command(online, key):
    made = online("jobs", "add", "--every", "1h", "--function", "chores:greet", "--param", "name=Anna", "--json")
    assert (made.code, made.json["params"]) == (0, {"name": "Anna"})
    made = online("jobs", "add", "--in", "1h", "--command", "say", "--key", key)
    assert made.code == 0
    assert f"({key}) is active; next run in 59m" in made.out


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--url", "http://x.org"], "no schedule"),
        (["--every", "1m"], "no target: specify what to run, such as --url, --function or --command"),
        (["--every", "1m", "--url", "http://x.org", "--command", "say"], "can't be combined"),
        (["--every", "1m", "--function", "chores:greet", "--param", "name"], "is not name=value"),
        (["--colour", "red"], "No such option"),
        (["--count", "many", "--every", "1m"], "'--count'"),
    ],
)
def test_wrong_flags_are_usage(cli, flags, told):
    result = cli("jobs", "add", *flags)
    assert result.code == 2
    assert told in result.err


@pytest.mark.parametrize(
    ("flags", "path"),
    [
        (["--cron", "61 * * * *", "--url", "http://127.0.0.1:9/"], "schedule.cron"),
        (["--every", "soon", "--url", "http://127.0.0.1:9/"], "schedule.every"),
        (["--every", "1m", "--cron", "* * * * *", "--url", "http://127.0.0.1:9/"], "schedule"),
        (["--every", "1m", "--function", "os:system"], "target.function"),
        (["--every", "1m", "--command", "rm"], "target.command"),
        (["--every", "1m", "--url", "http://169.254.169.254/"], "target.url"),
    ],
)
def test_a_job_that_can_not_be_is_told_field_by_field(online, flags, path):
    result = online("jobs", "add", *flags)
    assert result.code == 1
    assert f" {path}" in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("text", ['{"key": "KEY", %s}', '{"jobs": [{"key": "KEY", %s}]}', '[{"key": "KEY", %s}]'])
def test_a_job_from_standard_input(online, key, text):
    body = f'"schedule": {{"at": "{LATER}"}}, "target": {{"type": "webhook", "url": "http://127.0.0.1:9/"}}'
    made = online("jobs", "add", "-", "--json", stdin=text.replace("KEY", key) % body)
    assert (made.code, made.json["key"]) == (0, key)


def test_jobs_from_a_file(online, key, tmp_path):
    path = tmp_path / "some.yaml"
    path.write_text(
        f"- {{key: {key}-1, schedule: {{every: 1h}}, target: {{type: command, command: say}}}}\n"
        f"- {{key: {key}-2, schedule: {{every: 1h}}, target: {{type: command, command: say}}}}\n"
    )
    made = online("jobs", "add", path)
    assert made.code == 0
    assert made.out.count("is active") == 2


def test_list_show_and_their_json(online, key):
    job = add(online, key, "--tag", key[:50])
    listed = online("jobs", "list", key[:30])
    assert listed.code == 0
    assert listed.out.splitlines()[0].split() == ["ID", "JOB", "SCHEDULE", "TARGET", "STATE", "NEXT", "LAST"]
    assert all(len(line) <= 80 for line in listed.out.splitlines())
    assert [item["id"] for item in online("jobs", "list", "--tag", key[:50], "--all", "--json").json] == [job["id"]]
    assert online("jobs", "show", key, "--json").json["id"] == job["id"]
    shown = online("jobs", "show", job["id"])
    assert f"id        {job['id']}" in shown.out
    assert f"at {LATER}" in shown.out


def test_a_long_list_says_that_there_is_more(online, key):
    for number in range(3):
        add(online, f"{key}-{number}")
    assert "… more jobs not shown" in online("jobs", "list", key, "-n", "2").out
    assert "… more jobs not shown" not in online("jobs", "list", key, "-n", "3").out


def test_a_filter_nobody_knows_is_told(online):
    result = online("jobs", "list", "--status", "sleepy")
    assert result.code == 1
    assert "active, paused, ended, quarantined" in result.err


def test_an_unknown_job_says_where_to_look(online):
    result = online("jobs", "show", "nobody")
    assert (result.code, result.err) == (
        1,
        "Error: job 'nobody' not found; run `onthedot jobs list` to see all jobs\n",
    )
    assert online("jobs", "show", "999999999").code == 1


def test_pause_resume_run_delete(online, key):
    add(online, key)
    assert online("jobs", "pause", key).out == f"Job {key} is paused.\n"
    assert online("jobs", "show", key, "--json").json["state"] == "paused"
    assert f"Job {key} is active; next run in " in online("jobs", "resume", key).out
    started = online("jobs", "run", key, "--json").json
    assert (started["kind"], started["key"]) == ("manual", key)
    told = online("jobs", "delete", key, "--yes").out
    assert told.startswith(f"Job {key} is deleted."), told
    assert online("jobs", "show", key).code == 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_delete_asks_or_refuses(online, key, monkeypatch):
    add(online, key)
    refused = online("jobs", "delete", key, stdin="y\n")
    assert refused.code == 2
    assert "use -y" in refused.err
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    answered = online("jobs", "delete", key)
    assert answered.code == 1
    assert f"Delete job {key}" in answered.out
    assert online("jobs", "show", key).code == 0
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert online("jobs", "delete", key).code == 0
    assert online("jobs", "show", key).code == 1


@pytest.mark.parametrize("header", ["Foo", ": value", ""])
def test_a_bare_header_is_refused(online, key, header):
    told = online("jobs", "add", "--in", "1h", "--url", "http://127.0.0.1:9/", "--key", key, "--header", header)
    assert told.code == 2
    assert "is not a valid header" in told.err
    assert "'Name: value'" in told.err
    assert online("jobs", "show", key).code == 1


def test_edit_by_fields(online, key):
    add(online, key)
    changed = online("jobs", "edit", key, "--set", "policy.timeout=9s", "--set", "name=Anna", "--set", 'tags=["x"]')
    assert f"Job {key} is at version 2" in changed.out
    job = online("jobs", "show", key, "--json").json
    assert (job["policy"]["timeout"], job["name"], job["tags"]) == ("9s", "Anna", ["x"])
    assert online("jobs", "edit", key, "--unset", "name", "--json").json["name"] is None
    assert online("jobs", "edit", key, "--set", 'tags=["x"]').out == "No changes.\n"


def test_edit_the_time_by_flags(online, key):
    add(online, key)
    often = online("jobs", "edit", key, "--every", "90s", "--json").json["schedule"]
    assert (often["every"], often.get("cron")) == ("1m30s", None)
    nightly = online("jobs", "edit", key, "--cron", "0 4 * * *", "--tz", "Europe/Berlin", "--set", "name=N", "--json")
    assert nightly.json["schedule"] == {"cron": "0 4 * * *", "tz": "Europe/Berlin"}
    assert nightly.json["name"] == "N"
    both = online("jobs", "edit", key, "--cron", "0 4 * * *", "--every", "5m")
    assert both.code == 1
    assert "schedule" in both.err


def test_edit_in_an_editor(online, key, tmp_path, monkeypatch):
    add(online, key)
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import sys, pathlib\np = pathlib.Path(sys.argv[1])\nt = p.read_text()\n"
        "p.write_text(t.replace('2033-01-01', '2034-02-02'))\n"
    )
    monkeypatch.setenv("EDITOR", f"{sys.executable} {editor}")
    assert "is at version 2" in online("jobs", "edit", key).out
    assert online("jobs", "show", key, "--json").json["schedule"] == {"at": "2034-02-02T00:00:00Z"}
    assert online("jobs", "edit", key).out == "No changes.\n"


def test_a_mistake_in_the_editor_is_told_with_its_line(online, key, tmp_path, monkeypatch):
    add(online, key)
    editor = tmp_path / "editor.py"
    editor.write_text("import sys\nopen(sys.argv[1], 'a').write('colour: red\\n')\n")
    monkeypatch.setenv("EDITOR", f"{sys.executable} {editor}")
    result = online("jobs", "edit", key, stdin="")
    assert result.code == 1
    assert "colour: unknown field" in result.err


def test_without_an_editor_it_says_so(online, key):
    add(online, key)
    result = online("jobs", "edit", key)
    assert result.code == 2
    assert "set EDITOR" in result.err


@pytest.mark.parametrize("verb", ["apply", "add"])
def test_a_kind_of_file_that_the_settings_leave_out_is_refused(online, key, tmp_path, monkeypatch, verb):
    path, target = tmp_path / "all.json", {"type": "webhook", "url": "http://127.0.0.1:9/"}
    path.write_text(json.dumps({"jobs": [{"key": key, "schedule": {"at": LATER}, "target": target}]}))
    monkeypatch.setenv("SUPPORTED_EXTENSIONS", "yaml,toml")
    refused = online("jobs", verb, path)
    assert refused.code == 1
    assert "SUPPORTED_EXTENSIONS" in refused.err
    monkeypatch.setenv("SUPPORTED_EXTENSIONS", "json")
    assert online("jobs", verb, path).code == 0


def test_apply_twice_prune_and_dry_run(online, key, tmp_path):
    path = tmp_path / f"{key[:40]}.json"

    def write(*names: str) -> None:
        jobs = [
            {"key": f"{key}-{name}", "schedule": {"every": "1h"}, "target": {"type": "command", "command": "say"}}
            for name in names
        ]
        path.write_text(json.dumps({"jobs": jobs}))

    write("a", "b")
    dry = online("jobs", "apply", path, "--dry-run")
    assert f"would be created: {key}-a" in dry.out
    assert "2 of 2 jobs would change." in dry.out
    assert "2 of 2 jobs changed." in online("jobs", "apply", path).out
    assert online("jobs", "apply", path).out == "0 of 2 jobs changed.\n"
    write("a")
    assert online("jobs", "apply", path, "--json").json["removed"] == []
    assert online("jobs", "apply", path, "--prune", "--json").json["removed"] == [f"{key}-b"]
    assert online("jobs", "show", f"{key}-b").code == 1


def test_a_bad_file_changes_nothing_and_names_the_line(online, key, tmp_path):
    path = tmp_path / "bad.json"
    text = """{"jobs": [
      {"key": "KEY", "schedule": {"every": "1h"}, "target": {"type": "command", "command": "say"}},
      {"key": "KEY-2", "schedule": {"every": "1h"},
       "target": {"type": "command", "command": "rm"}}]}"""
    path.write_text(text.replace("KEY", key))
    result = online("jobs", "apply", path)
    assert result.code == 1
    assert "bad.json:4: jobs[1].target.command" in result.err
    assert online("jobs", "show", key).code == 1


def test_commands_of_a_file_are_never_sent(online, key, tmp_path):
    """A job may name what the node has registered; what the file says about it does not get there."""
    job = f'[[jobs]]\nkey = "{key}"\nschedule = {{every = "1h"}}\ntarget = {{type = "command", command = "NAME"}}\n'
    path = tmp_path / "with.toml"
    path.write_text(job.replace("NAME", "stranger") + '[commands.stranger]\nargv = ["x"]\n')
    result = online("jobs", "apply", path)
    assert result.code == 1
    assert "with.toml defines 1 command, which the API never takes" in result.err
    assert "is not registered by the operator" in result.err
    path.write_text(job.replace("NAME", "say") + '[commands.say]\nargv = ["not", "this"]\n')
    result = online("jobs", "apply", path)
    assert result.code == 0, result.err
    assert "jobs run the commands that the nodes have under these names" in result.err
    assert "1 of 1 jobs changed." in result.out


@pytest.mark.parametrize("name", ["out.json", "out.yaml", None])
def test_what_is_exported_can_be_applied_again(online, key, tmp_path, name):
    add(online, key, "--name", "Ä", "--timeout", "9s")
    arguments = ["jobs", "export", *([] if name is None else [name]), "--prefix", key]
    exported = online(*arguments)
    assert exported.code == 0, exported.err
    path = Path(name or "stdout.json")
    if name is None:
        path.write_text(exported.out)
    assert "tz" in path.read_text(), "whatever DEFAULT_TZ is where it is applied"
    assert online("jobs", "delete", key, "--yes").code == 0
    applied = online("jobs", "apply", path, "--source", f"{key}.json")
    assert applied.code == 0, applied.err
    job = online("jobs", "show", key, "--json").json
    assert (job["name"], job["policy"]["timeout"]) == ("Ä", "9s")


def test_a_prefix_is_no_part_from_the_middle(online, key):
    job = add(online, key, "--name", f"Named {key}")
    assert [each["key"] for each in online("jobs", "export", "--prefix", key.upper()).json["jobs"]] == [job["key"]]
    assert [each["key"] for each in online("jobs", "export", "--prefix", f"named {key}").json["jobs"]] == [key]
    assert online("jobs", "export", "--prefix", key[1:]).json["jobs"] == []


def test_an_empty_list_says_whether_it_was_filtered(online, key):
    listed = online("jobs", "list", f"none-{key}")
    assert (listed.code, listed.out) == (0, "No jobs match.\n")
    listed = online("runs", "list", "--status", "done", "--until", "2001-01-01T00:00:00Z")
    assert (listed.code, listed.out) == (0, "No runs match.\n")


def test_a_patch_from_paths():
    assert patch_of(["a.b=1", "a.c=x", "d=null"], ["e.f"]) == {"a": {"b": 1, "c": "x"}, "d": None, "e": {"f": None}}


@pytest.mark.parametrize("sets", [["a"], ["=1"], ["a=1", "a.b=2"]])
def test_wrong_paths_are_usage(cli, online, key, sets):
    add(online, key)
    result = online("jobs", "edit", key, *[part for item in sets for part in ("--set", item)])
    assert result.code == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("true", True), ('"x"', "x"), ("x y", "x y"), ('{"a": 1}', {"a": 1}), ("10s", "10s"), ("", "")],
)
def test_a_value_is_json_or_text(text, value):
    assert parsed_value(text) == value


def test_what_was_not_given_is_left_out():
    flags = {"a": None, "b": {"c": None}, "d": {"e": 1, "f": None}, "params": {"g": None}}
    assert loose_spec(flags) == {"d": {"e": 1}, "params": {"g": None}}


def test_a_spec_for_the_editor_has_no_defaults(online, key):
    from onthedot.client import Client

    job = add(online, key, "--attempts", "7")
    with Client(__import__("os").environ["ONTHEDOT_URL"]) as client:
        spec = spec_of(client.get_job(job["id"]))
    assert spec == {
        "key": key,
        "schedule": {"at": LATER},
        "target": {"type": "webhook", "url": "http://127.0.0.1:9/"},
        "policy": {"timeout": "3s", "retry": {"attempts": 7}},
    }


def test_pause_says_why_and_until_when(online, key):
    online("jobs", "add", "--every", "1h", "--url", "http://127.0.0.1:9/", "--key", key)
    paused = online("jobs", "pause", key, "--note", "moving", "--until", "2100-01-01T00:00:00Z")
    assert (paused.code, paused.out.strip()) == (0, f"Job {key} is paused until 2100-01-01T00:00:00.000Z.")
    shown = " ".join(online("jobs", "show", key).out.split())
    assert "until 2100-01-01T00:00:00.000Z: moving" in shown
    wrong = online("jobs", "pause", key, "--until", "2001-01-01T00:00:00Z")
    assert wrong.code == 1
    assert "until: is in the past" in wrong.err


def test_a_run_with_params_of_its_own(online, key):
    online("jobs", "add", "--every", "1h", "--url", "http://127.0.0.1:9/", "--key", key)
    started = online("jobs", "run", key, "--params", '{"day": 1}', "--json")
    assert (started.code, started.json["params"]) == (0, {"day": 1})
    wrong = online("jobs", "run", key, "--params", "day=1")
    assert wrong.code == 2
    assert "takes a JSON object" in " ".join(wrong.err.split())


def test_an_owner_and_a_run_at_once(online, key):
    made = online(
        "jobs",
        "add",
        "--every",
        "1h",
        "--url",
        "http://127.0.0.1:9/",
        "--key",
        key,
        "--owner",
        key,
        "--run-now",
        "--json",
    )
    assert (made.code, made.json["owner"]) == (0, key)
    assert [job["key"] for job in online("jobs", "list", "--owner", key, "--json").json] == [key]
    found = online("runs", "list", key, "--json")
    assert found.code == 0, found.err
    runs = found.json
    assert "manual" in [run["kind"] for run in runs]


def test_jobs_by_how_their_runs_ended(online, key):
    made = add(online, key)

    def listed(*flags: str) -> list[int]:
        found = online("jobs", "list", key, *flags, "--json")
        assert found.code == 0, found.err
        return [job["id"] for job in found.json]

    assert listed("--never-ran", "--not-ended", "--not-failing", "--not-late") == [made["id"]]
    assert listed("--ran") == listed("--ended") == listed("--failing") == listed("--late") == []
    assert listed("--last-status", "done") == []
    assert listed("--sort", "-name") == listed("--sort", "next") == [made["id"]]
    refused = online("jobs", "list", "--last-status", "gone")
    assert refused.code == 1
    assert "DONE, FAILED, CANCELLED, SKIPPED" in refused.err
