"""Every mistake in a file is told at once, with file, line and field."""

from __future__ import annotations

import json

import pytest

from onthedot.errors import Invalid, Unreadable
from onthedot.jobsfile import parse_jobs

JSON = """{
  "jobs": [
    {
      "identifier": "job1",
      "path": "periodic functions",
      "function_name": "sleep",
      "periodicity": "soon",
      "timeout": "5m"
    },
    {
      "identifier": "job2",
      "path": "functions",
      "function_name": "sleep",
      "periodicity": "0s",
      "colour": "red"
    },
    {
      "key": "hook",
      "schedule": {
        "cron": "0 0 31 2 *",
        "tz": "Europe/Berlinn"
      },
      "target": {"type": "webhook", "url": "https://example.com"}
    },
    {
      "key": "hook",
      "schedule": {"every": "1m"},
      "target": {"type": "webhok", "url": "https://example.com"}
    }
  ]
}
"""
YAML = """\
jobs:
  - identifier: job1
    path: functions
    function_name: sleep
    periodicity: soon
  - key: hook
    schedule:
      cron: "61 * * * *"
    target: {type: webhook, url: "https://example.com"}
"""
TOML = """\
[[jobs]]
identifier = "job1"
path = "functions"
function_name = "sleep"
periodicity = "soon"

[[jobs]]
key = "hook"
target = {type = "webhook", url = "https://example.com"}
[jobs.schedule]
cron = "61 * * * *"
"""


def paths(text: str, extension: str, name: str | None = None) -> list[str]:
    with pytest.raises(Invalid) as caught:
        parse_jobs(text, extension, name or f"jobs.{extension}")
    return sorted(problem.path for problem in caught.value.problems)


def test_json_names_the_line_of_each_field():
    found = paths(JSON, "json")
    assert "jobs.json:5: jobs[0].path" in found
    assert "jobs.json:15: jobs[1].colour" in found
    assert "jobs.json:20: jobs[2].schedule.cron" in found
    assert "jobs.json:21: jobs[2].schedule.tz" in found
    assert "jobs.json:26: jobs[3].key" in found
    assert "jobs.json:28: jobs[3].target.type" in found


def test_yaml_names_the_line_of_each_field():
    assert paths(YAML, "yaml") == ["jobs.yaml:5: jobs[0].periodicity", "jobs.yaml:8: jobs[1].schedule.cron"]


def test_toml_names_the_line_of_each_field():
    assert paths(TOML, "toml") == ["jobs.toml:11: jobs[1].schedule.cron", "jobs.toml:5: jobs[0].periodicity"]


def test_a_short_job_s_mistake_is_told_in_its_own_words():
    text = '{"jobs": [\n{"identifier": "a", "path": "f", "function_name": "g",\n"periodicity": "0s"}]}'
    with pytest.raises(Invalid) as caught:
        parse_jobs(text, "json", "jobs.json")
    (problem,) = caught.value.problems
    assert problem.path == "jobs.json:3: jobs[0].periodicity"
    assert problem.message == "must be more than zero"


def test_a_field_of_the_full_form_in_a_short_job_is_named_as_it_stands():
    text = '{"jobs": [\n{"identifier": "a", "path": "f", "function_name": "g",\n"periodicity": "1m",\n"key": "b"}]}'
    with pytest.raises(Invalid) as caught:
        parse_jobs(text, "json", "jobs.json")
    (problem,) = caught.value.problems
    assert (problem.path, problem.message) == ("jobs.json:4: jobs[0].key", "unknown field")
    assert "identifier" in str(problem.accepted)


@pytest.mark.parametrize(
    ("field", "accepted"),
    [("identifier", "letters, digits, dots"), ("path", "a Python module"), ("function_name", "name of a function")],
)
def test_a_short_job_says_what_a_name_may_be(field, accepted):
    job = {"identifier": "a", "path": "f", "function_name": "g", "periodicity": "1m"} | {field: "not this"}
    with pytest.raises(Invalid) as caught:
        parse_jobs(json.dumps({"jobs": [job]}), "json", "jobs.json")
    (problem,) = caught.value.problems
    assert problem.path == f"jobs.json:1: jobs[0].{field}"
    assert accepted in str(problem.accepted)


def test_what_is_found_later_is_located_too():
    text = '{"jobs": [\n{"identifier": "a",\n"path": "f", "function_name": "g", "periodicity": "1m"}]}'
    file = parse_jobs(text, "json", "jobs.json")
    located = file.located(Invalid.one("jobs[0].target.function", "not registered", given="f:g"))
    assert located.problems[0].path == "jobs.json:3: jobs[0].path"
    assert located.problems[0].given == "f:g"


@pytest.mark.parametrize(
    ("extension", "text", "told"),
    [
        ("json", '{"jobs": [\n{"identifier": }]}', r"jobs\.json:2: not valid JSON"),
        ("json", "", r"jobs\.json:1: not valid JSON"),
        ("yaml", "jobs:\n  - a: [1\n  - b", r"jobs\.yaml:3: not valid YAML"),
        ("yaml", "jobs:\n\t- a", r"jobs\.yaml:2: not valid YAML"),
        ("yaml", "jobs: !!python/object:os.system {}", r"jobs\.yaml:1: not valid YAML"),
        ("toml", "[[jobs]]\nkey =\n", r"jobs\.toml: not valid TOML: .*line 2"),
    ],
)
def test_what_can_not_be_read_names_the_line(extension, text, told):
    with pytest.raises(Unreadable, match=told):
        parse_jobs(text, extension, f"jobs.{extension}")


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("null", "jobs", "required field is missing"),
        ("{}", "jobs", "required field is missing"),
        ('{"jobs": {}}', "jobs.json:1: jobs", "must be a list"),
        ('{"jobs": [], "job": []}', "jobs.json:1: job", "unknown field"),
        ('{"jobs": [5]}', "jobs.json:1: jobs[0]", "expected an object, not a whole number"),
        ("[\n5]", "jobs.json:2: jobs[0]", "expected an object, not a whole number"),
        ('{"jobs": [], "commands": {"x": {}}}', "jobs.json:1: commands", None),
    ],
)
def test_a_file_of_the_wrong_shape(text, path, message):
    with pytest.raises(Invalid) as caught:
        parse_jobs(text, "json", "jobs.json")
    (problem,) = caught.value.problems
    assert problem.path.endswith(path)
    assert message is None or problem.message == message


@pytest.mark.parametrize(
    ("extension", "text"),
    [
        (
            "json",
            '{"jobs": [\n{"identifier": "a", "path": "f", "function_name": "g",\n"path": "h", "periodicity": "1m"}]}',
        ),
        ("yaml", "jobs:\n  - {identifier: a, function_name: g, periodicity: 1m, path: f,\n     path: h}\n"),
    ],
)
def test_a_field_written_twice_is_a_mistake(extension, text):
    with pytest.raises(Invalid) as caught:
        parse_jobs(text, extension, "jobs")
    (problem,) = caught.value.problems
    assert problem.message == "duplicate field"
    assert "jobs[0].path" in problem.path


def test_two_jobs_of_one_key_are_refused_in_mixed_forms():
    text = """[{"identifier": "a", "path": "f", "function_name": "g", "periodicity": "1m"},
    {"key": "a", "schedule": {"every": "1m"}, "target": {"type": "webhook", "url": "http://x.org"}}]"""
    with pytest.raises(Invalid, match=r"jobs\[1\]\.key: duplicate: jobs\[0\] has the same key"):
        parse_jobs(text, "json")


def test_a_full_job_needs_a_key_in_a_file():
    text = '[{"schedule": {"every": "1m"}, "target": {"type": "webhook", "url": "http://x.org"}}]'
    with pytest.raises(Invalid, match="key: required in a jobs file"):
        parse_jobs(text, "json")


def test_a_time_that_has_passed_is_no_mistake_of_the_file():
    """Loading the same file twice changes nothing: only the store knows whether a schedule is new."""
    text = '[{"key": "a", "schedule": {"at": "2001-01-01T00:00:00Z"}, "target": {"type": "webhook", "url": "http://x.org"}}]'
    assert len(parse_jobs(text, "json").specs) == 1


def test_yaml_that_refers_to_itself_does_not_hang():
    with pytest.raises((Invalid, Unreadable)):
        parse_jobs("jobs: &a\n  - {params: *a}\n", "yaml")


def test_strings_with_brackets_and_escapes_do_not_confuse_the_line_numbers():
    text = """{"jobs": [
      {"key": "a", "name": "]}\\"[{:,", "schedule": {"every": "1m"},
       "target": {"type": "webhook", "url": "http://x.org"}},
      {"key": "b", "schedule": {"every": "1m"},
       "target": {"type": "nothing"}}
    ]}"""
    assert paths(text, "json") == ["jobs.json:5: jobs[1].target.type"]
