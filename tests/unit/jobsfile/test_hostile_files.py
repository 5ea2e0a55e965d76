"""Files that mean more than they say, or are wrong all over: told at once, and shortly."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from onthedot.errors import Invalid, Unreadable
from onthedot.jobsfile import parse_jobs, read_jobs_file

BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)


def test_aliases_of_aliases_are_counted_as_what_they_stand_for():
    began = time.process_time()
    with pytest.raises(Unreadable, match="its aliases expand to more than 1000000 values"):
        parse_jobs(BOMB + "jobs: *a9\n", "yaml", "jobs.yaml")
    assert time.process_time() - began < 1


def test_an_alias_inside_what_it_names_is_told():
    with pytest.raises(Unreadable, match="an alias refers to a node that contains it"):
        parse_jobs("jobs: &a\n  - [*a, *a]\n", "yaml", "jobs.yaml")


def test_ordinary_aliases_work():
    text = """
base: &base {type: webhook, url: "https://example.com/"}
jobs:
  - {key: a, schedule: {every: 1m}, target: *base}
  - {key: b, schedule: {every: 1m}, target: *base}
"""
    with pytest.raises(Invalid) as raised:  # "base" is no field of a jobs file, and the only mistake
        parse_jobs(text, "yaml", "jobs.yaml")
    assert [problem.path for problem in raised.value.problems] == ["jobs.yaml:2: base"]


@pytest.mark.parametrize("extension", ["json", "yaml"])
def test_of_many_mistakes_the_first_hundred_are_told(extension):
    number = 50_000 if extension == "json" else 500
    text = json.dumps({"jobs": [{"key": f"k{n}", "wrong": 1} for n in range(number)]}, indent=1)
    began = time.process_time()
    with pytest.raises(Invalid) as raised:
        parse_jobs(text, extension, f"jobs.{extension}")
    assert time.process_time() - began < 5
    assert len(raised.value.problems) == 101
    assert raised.value.problems[-1].message == "more errors not shown: these are the first 100"
    assert raised.value.problems[0].path.startswith(f"jobs.{extension}:")


def test_a_file_beyond_all_measure_is_not_read(tmp_path: Path):
    path = tmp_path / "jobs.json"
    with path.open("wb") as file:
        file.truncate(17 * 2**20)
    with pytest.raises(Unreadable, match="larger than 16 MiB"):
        read_jobs_file(path)
