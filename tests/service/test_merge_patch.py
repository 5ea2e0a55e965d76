"""RFC 7396, by its own table of examples; and what a patch means for a job."""

from __future__ import annotations

import copy

import pytest

from onthedot.service.merge_patch import merge_patch, patched

EXAMPLES = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("document", "patch", "expected"), EXAMPLES)
def test_the_examples_of_the_rfc(document, patch, expected):
    before = copy.deepcopy((document, patch))
    assert merge_patch(document, patch) == expected
    assert (document, patch) == before


JOB = {
    "schedule": {"cron": "0 3 * * *", "tz": "Europe/Berlin"},
    "target": {"type": "webhook", "url": "http://example.com/"},
    "tags": ["a"],
}


def test_another_kind_of_schedule_takes_the_old_one_s_place():
    assert patched(JOB, {"schedule": {"every": "5m"}})["schedule"] == {"every": "5m", "tz": "Europe/Berlin"}


def test_the_same_kind_is_changed_in_place():
    assert patched(JOB, {"schedule": {"cron": "0 4 * * *"}})["schedule"] == {"cron": "0 4 * * *", "tz": "Europe/Berlin"}


def test_a_zone_alone_leaves_the_kind():
    assert patched(JOB, {"schedule": {"tz": "UTC"}})["schedule"] == {"cron": "0 3 * * *", "tz": "UTC"}


def test_another_kind_of_target_takes_the_old_one_s_place():
    target = {"type": "command", "command": "backup"}
    assert patched(JOB, {"target": target})["target"] == target


def test_the_same_kind_of_target_keeps_its_other_fields():
    changed = patched(JOB, {"target": {"method": "PUT"}})["target"]
    assert changed == {"type": "webhook", "url": "http://example.com/", "method": "PUT"}


def test_the_job_itself_is_not_changed():
    before = copy.deepcopy(JOB)
    patched(JOB, {"schedule": {"every": "5m"}, "target": {"type": "command", "command": "x"}, "tags": None})
    assert before == JOB


NUMBERS = {"attempts": 5, "backoff": "1s", "factor": 2.0, "max": "5m"}


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        ({**NUMBERS, "max_age": "1h"}, {"plan": "quick"}, {"plan": "quick", "max_age": "1h"}),
        ({"plan": "quick", "max_age": None}, {"attempts": 2}, {"attempts": 2, "max_age": None}),
        ({"plan": "quick"}, {"plan": None}, {}),
        (NUMBERS, {"plan": "quick", "attempts": 7}, {**NUMBERS, "plan": "quick", "attempts": 7}),
        (NUMBERS, {"until": "next_slot"}, {**NUMBERS, "until": "next_slot"}),
    ],
)
def test_a_retry_plan_takes_the_place_of_numbers_and_they_its(before, patch, after):
    spec = {"schedule": {"every": "1m"}, "target": {"type": "webhook"}, "policy": {"retry": before}}
    kept = copy.deepcopy(spec)
    assert patched(spec, {"policy": {"retry": patch}})["policy"]["retry"] == after
    assert spec == kept


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        ({"secret": "old"}, {"secrets": ["new", "old"]}, {"secrets": ["new", "old"]}),
        ({"secrets": ["new", "old"]}, {"secret": "new"}, {"secret": "new"}),
        ({"secret": "old"}, {"secret": "x", "secrets": ["y"]}, {"secret": "x", "secrets": ["y"]}),
        ({"secret": "old"}, {"secrets": None}, {"secret": "old"}),
    ],
)
def test_one_secret_takes_the_place_of_several_and_they_its(before, patch, after):
    spec = {"schedule": {"every": "1m"}, "target": {"type": "webhook", **before}, "policy": {}}
    assert patched(spec, {"target": patch})["target"] == {"type": "webhook", **after}
