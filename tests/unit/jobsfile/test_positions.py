"""The line of every field, checked against somebody else's parser: JSON is YAML, and that one keeps positions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onthedot.jobsfile.positions import line_of, lines_of

NAMES = st.text(
    st.characters(codec="ascii", categories=["L", "N", "P"], exclude_characters=".[]"), min_size=1, max_size=8
)
LEAVES = st.none() | st.booleans() | st.integers(-99, 99) | st.text(st.characters(codec="ascii"), max_size=12)
DOCUMENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=20
)


@given(DOCUMENTS, st.sampled_from([None, 0, 1, 2, 4]))
def test_json_lines_are_those_of_a_yaml_parser(document, indent):
    text = json.dumps(document, indent=indent)
    assert lines_of(text, "json") == lines_of(text, "yaml")


@given(DOCUMENTS)
def test_every_field_is_found(document):
    found = dict(lines_of(json.dumps(document, indent=1), "json"))

    def walk(value, path):
        if isinstance(value, dict):
            for name, item in value.items():
                inner = f"{path}.{name}" if path else name
                assert inner in found
                walk(item, inner)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                assert f"{path}[{index}]" in found
                walk(item, f"{path}[{index}]")

    walk(document, "")


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("jobs[1].schedule.cron", 4),
        ("jobs[1].schedule.tz", 3),
        ("jobs[1].target", 2),
        ("jobs[7].target", 1),
        ("jobs", 1),
        ("nothing", None),
        ("", None),
    ],
)
def test_the_nearest_thing_around_a_missing_field(path, line):
    lines = {"jobs": 1, "jobs[1]": 2, "jobs[1].schedule": 3, "jobs[1].schedule.cron": 4}
    assert line_of(path, lines) == line


def test_names_with_dots_do_not_confuse():
    text = '{"jobs": [{"params": {"a.b": 1}},\n{"key": "x"}]}'
    assert dict(lines_of(text, "json"))["jobs[1].key"] == 2


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ('[[jobs]]\nkey = "a"\n\n[[jobs]]\nkey = "b"\n', "jobs[1].key", 5),
        ('# jobs\n[[ jobs ]]\n  key = "a"\n', "jobs[0].key", 3),
        ("[[jobs]]\n[jobs.policy.retry]\nattempts = 3\n", "jobs[0].policy.retry.attempts", 3),
        ('[[jobs]]\nschedule.cron = "x"\n', "jobs[0].schedule.cron", 2),
        ('[commands.backup]\nargv = []\n[[jobs]]\nkey = "a"\n', "commands.backup.argv", 2),
        ('[[jobs]]\n"key" = "a"\n', "jobs[0].key", 2),
    ],
)
def test_toml_tables_and_names(text, path, line):
    assert dict(lines_of(text, "toml"))[path] == line


def test_an_empty_text_has_no_fields():
    assert lines_of("", "json") == lines_of("", "yaml") == lines_of("", "toml") == []
