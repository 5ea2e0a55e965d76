"""Both forms of a job, in three formats, say the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onthedot.errors import Invalid, Unreadable
from onthedot.jobsfile import parse_jobs, read_jobs_file
from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.policy import Policy, Retry
from onthedot.model.schedule import Schedule
from onthedot.model.targets import FunctionTarget, WebhookTarget
from onthedot.settings import CommandSetting

SHORT = {
    "identifier": "job1",
    "path": "periodic_functions.functions",
    "function_name": "sleep_2_mins",
    "timeout": "5m",
    "periodicity": "1m",
    "start_date": "2022-11-21",
}
JOB1 = JobSpec(
    key="job1",
    schedule=Schedule(every=Duration.parse("1m"), start="2022-11-21"),
    target=FunctionTarget(function="periodic_functions.functions:sleep_2_mins"),
    policy=Policy(timeout=Duration.parse("5m")),
)
NIGHTLY = JobSpec(
    key="nightly",
    schedule=Schedule(cron="0 3 * * *", tz="Europe/Berlin"),
    target=WebhookTarget(url="https://example.com/hook", body={"a": 1}),
    policy=Policy(retry=Retry(attempts=5)),
    tags=["reports"],
)

JSON = json.dumps(
    {
        "jobs": [
            SHORT,
            {
                "key": "nightly",
                "schedule": {"cron": "0 3 * * *", "tz": "Europe/Berlin"},
                "target": {"type": "webhook", "url": "https://example.com/hook", "body": {"a": 1}},
                "policy": {"retry": {"attempts": 5}},
                "tags": ["reports"],
            },
        ]
    }
)
YAML = """
jobs:
  - identifier: job1
    path: periodic_functions.functions
    function_name: sleep_2_mins
    timeout: 5m
    periodicity: 1m
    start_date: 2022-11-21
  - key: nightly
    schedule: {cron: "0 3 * * *", tz: Europe/Berlin}
    target:
      type: webhook
      url: https://example.com/hook
      body: {a: 1}
    policy: {retry: {attempts: 5}}
    tags: [reports]
"""
TOML = """
[[jobs]]
identifier = "job1"
path = "periodic_functions.functions"
function_name = "sleep_2_mins"
timeout = "5m"
periodicity = "1m"
start_date = 2022-11-21

[[jobs]]
key = "nightly"
schedule = {cron = "0 3 * * *", tz = "Europe/Berlin"}
tags = ["reports"]
policy = {retry = {attempts = 5}}

[jobs.target]
type = "webhook"
url = "https://example.com/hook"
body = {a = 1}
"""


@pytest.mark.parametrize(("extension", "text"), [("json", JSON), ("yaml", YAML), ("yml", YAML), ("toml", TOML)])
def test_the_three_formats_say_the_same(tmp_path, extension, text):
    path = tmp_path / f"jobs.{extension}"
    path.write_text(text)
    found = read_jobs_file(path)
    assert found.specs == [JOB1, NIGHTLY]
    assert found.source == f"jobs.{extension}"
    assert found.directory == tmp_path.resolve()


def test_a_list_alone_is_a_file_too():
    assert parse_jobs(json.dumps([SHORT]), "json").specs == [JOB1]


def test_arguments_and_end_date_of_the_short_form():
    (spec,) = parse_jobs(
        json.dumps([{**SHORT, "arguments": {"n": 3}, "end_date": "2030-01-01T00:00:00Z"}]), "json"
    ).specs
    assert spec.params == {"n": 3}
    assert spec.schedule.end == "2030-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("written", "schedule"),
    [
        ("1m", Schedule(every=Duration.parse("1m"), start="2022-11-21")),
        (90, Schedule(every=Duration.parse("90s"), start="2022-11-21")),
        ("PT1H", Schedule(every=Duration.parse("1h"), start="2022-11-21")),
        ("*/5 * * * *", Schedule(cron="*/5 * * * *", start="2022-11-21")),
        ("@hourly", Schedule(cron="@hourly", start="2022-11-21")),
    ],
)
def test_periodicity_is_a_duration_or_a_cron_expression(written, schedule):
    (spec,) = parse_jobs(json.dumps([{**SHORT, "periodicity": written}]), "json").specs
    assert spec.schedule == schedule


def test_commands_are_read_beside_the_jobs():
    text = TOML + '\n[commands.backup]\nargv = ["pg_dump", "otd"]\nenv = {A = "1"}\n'
    assert parse_jobs(text, "toml").commands == {"backup": CommandSetting(argv=("pg_dump", "otd"), env={"A": "1"})}


def test_an_empty_list_is_a_file_without_jobs():
    assert parse_jobs('{"jobs": []}', "json").specs == []


def test_toml_times_are_text_like_everywhere_else():
    text = '[[jobs]]\nkey = "a"\nschedule = {at = 2033-01-01T10:00:00Z}\ntarget = {type = "webhook", url = "http://x.org"}\n'
    (spec,) = parse_jobs(text, "toml").specs
    assert spec.schedule.at == "2033-01-01T10:00:00+00:00"


def test_one_job_alone_may_be_added_by_hand_without_a_key():
    text = '{"schedule": {"every": "1m"}, "target": {"type": "webhook", "url": "http://x.org"}}'
    (spec,) = parse_jobs(text, "json", single=True).specs
    assert spec.key is None
    assert spec.schedule.every == Duration.parse("1m")


def test_a_file_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "jobs.json"
    path.write_bytes(b"\xef\xbb\xbf" + JSON.encode())
    assert len(read_jobs_file(path).specs) == 2


def test_an_extension_that_is_not_supported_is_refused(tmp_path):
    path = tmp_path / "jobs.yaml"
    path.write_text(YAML)
    with pytest.raises(
        Unreadable, match=r"jobs\.yaml: not a supported file type. Accepted: \.json, \.toml \(setting SUPPORTED_EXT"
    ):
        read_jobs_file(path, ("json", "toml"))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(Unreadable, match=r"gone\.json: can't be read: No such file"):
        read_jobs_file(tmp_path / "gone.json")


def test_a_file_that_is_no_text_is_named(tmp_path: Path):
    path = tmp_path / "jobs.json"
    path.write_bytes(b'{"jobs": "\xff"}')
    with pytest.raises(Unreadable, match=r"not UTF-8 text: .* at byte 10"):
        read_jobs_file(path)


@pytest.mark.parametrize(
    ("text", "extension"), [('{"source": "shop", "jobs": []}', "json"), ("source: shop\njobs: []", "yaml")]
)
def test_a_file_may_name_its_source(text, extension):
    file = parse_jobs(text, extension, f"jobs.{extension}")
    assert (file.source, file.named, file.former) == ("shop", True, f"jobs.{extension}")
    given = parse_jobs(text, extension, f"jobs.{extension}", source="flag")
    assert (given.source, given.named) == ("flag", True)
    plain = parse_jobs("jobs: []", "yaml", "jobs.yaml")
    assert (plain.source, plain.named, plain.former) == ("jobs.yaml", False, None)


@pytest.mark.parametrize("source", ['""', "7", "null", '"a\\nb"', f'"{"x" * 201}"'])
def test_a_source_is_a_name(source):
    with pytest.raises(Invalid, match=r"jobs.json:1: source: not a valid source name"):
        parse_jobs(f'{{"source": {source}, "jobs": []}}', "json", "jobs.json")
