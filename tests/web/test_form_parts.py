"""The form's parts without a page: from JSON to inputs and back, what differs, and fire times across a clock change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onthedot.errors import Invalid
from onthedot.model.targets.registry import specs
from onthedot.web.form.checked import FormCheck
from onthedot.web.form.differences import conflicts, edits
from onthedot.web.form.fields import all_inputs, policy_inputs, target_inputs
from onthedot.web.form.inputs import FieldMistake, FormInput, text_of, value_of
from onthedot.web.form.reading import SCHEDULE_KIND, TARGET_KIND, job_of, loose_of, texts_of
from onthedot.web.local_time import fire_times

WHOLE: dict[str, Any] = {
    "key": "nightly",
    "name": "Nightly report",
    "schedule": {"cron": "0 3 * * *", "tz": "Europe/Berlin", "count": 7},
    "target": {"type": "webhook", "url": "https://example.com/x", "headers": {"A": "b: c"}, "body": '{"text": 1}'},
    "policy": {
        "timeout": "5s",
        "retry": {"attempts": 5, "until": "next_slot"},
        "concurrency": {"group": "g", "limit": 2},
    },
    "params": {"a": [1, {"b": None}]},
    "tags": ["x", "y, z"],
    "on_success": ["next"],
    "keep_result": True,
}
TEXT = st.text(st.characters(codec="utf-8"), max_size=12)


def test_every_kind_of_target_has_its_inputs():
    assert set(target_inputs()) == set(specs())
    webhook = {entry.path: entry for entry in target_inputs()["webhook"]}
    assert webhook["target.url"].required
    assert webhook["target.method"].choices[:2] == ("GET", "POST")
    assert webhook["target.headers"].widget == "pairs"
    assert webhook["target.secret"].secret
    assert {"policy.retry.attempts", "policy.concurrency.limit"} <= {entry.path for entry in policy_inputs()}


@pytest.mark.parametrize(
    "target",
    [
        WHOLE["target"],
        {"type": "container", "image": "a/b", "command": ["sh", "-c", "echo 1\necho 2"], "env": {"A": " x\ny"}},
        {"type": "script", "code": "print(1)\n\nprint(2)\n", "network": True, "cpus": 0.5},
        {"type": "queue", "broker": "b", "topic": "t", "body": "plain"},
    ],
)
def test_a_job_becomes_inputs_and_the_same_job_again(target):
    job = {**WHOLE, "target": target}
    assert job_of(loose_of(texts_of(job), {})) == job_of(job)


def test_what_the_form_does_not_show_is_kept():
    base = {**WHOLE, "paused": True}
    typed = texts_of(base) | {"name": "Other", "policy.timeout": ""}
    made = loose_of(typed, base)
    assert made["paused"] is True
    assert made["name"] == "Other"
    assert "timeout" not in made["policy"]
    assert base["policy"]["timeout"] == "5s"  # the base itself is not touched


def test_only_the_chosen_schedule_and_target_count():
    typed = texts_of(WHOLE) | {
        SCHEDULE_KIND: "every",
        "schedule.every": "90s",
        TARGET_KIND: "command",
        "target:command.command": "backup",
    }
    made = loose_of(typed, WHOLE)
    assert made["schedule"] == {"every": "90s", "tz": "Europe/Berlin", "count": 7}
    assert made["target"] == {"type": "command", "command": "backup"}


def test_texts_that_their_inputs_can_not_take_are_all_named():
    typed = texts_of(WHOLE) | {"schedule.count": "many", "params": "{", "target:webhook.headers": "no colon"}
    with pytest.raises(Invalid) as refused:
        loose_of(typed, {})
    assert {problem.path for problem in refused.value.problems} == {"schedule.count", "params", "target.headers"}


def test_a_schedule_without_a_time_says_what_to_fill_in():
    with pytest.raises(Invalid, match="fill in the schedule"):
        job_of(loose_of(texts_of({}), {}))


def _entry(widget: Any) -> FormInput:
    return FormInput(name="x", path="target.x", label="X", widget=widget)


@given(st.lists(TEXT.filter(str.strip), min_size=1, max_size=4))
def test_lists_survive_their_input(value):
    for widget in ("lines", "words"):
        assert value_of(_entry(widget), text_of(_entry(widget), value)) == value


@given(st.dictionaries(TEXT, TEXT, min_size=1, max_size=4))
def test_pairs_survive_their_input(value):
    assert value_of(_entry("pairs"), text_of(_entry("pairs"), value)) == value


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT, lambda x: st.lists(x, max_size=3)))
def test_values_survive_their_input(value):
    kept = value_of(_entry("json"), text_of(_entry("json"), value))
    assert kept == value


def test_a_number_is_a_number():
    assert value_of(_entry("number"), " 3 ") == 3
    assert value_of(_entry("number"), "0.5") == 0.5
    with pytest.raises(FieldMistake, match="not a number"):
        value_of(_entry("number"), "three")


def test_a_conflict_names_each_field_that_either_changed():
    before = {"name": "a", "policy": {"timeout": "1s", "jitter": "2s"}, "tags": ["x"]}
    theirs = {"name": "b", "policy": {"timeout": "1s", "jitter": "3s"}, "tags": ["x"]}
    yours = {"name": "c", "policy": {"timeout": "9s", "jitter": "2s"}, "tags": ["x"]}
    found = {change.path: change for change in conflicts(before, theirs, yours)}
    assert set(found) == {"name", "policy.timeout", "policy.jitter"}
    assert [path for path, change in found.items() if change.clashes] == ["name"]


def test_a_list_of_texts_is_told_text_by_text():
    told = edits(
        {"tags": ["a, b", "c"], "requires": []}, {"tags": ["c", "d"], "requires": ["gpu"], "params": {"n": [1]}}
    )
    assert [(each.path, each.before, each.after) for each in told] == [
        ("params.n", "", "[1]"),
        ("requires", "", ("gpu",)),
        ("tags", ("a, b", "c"), ("c", "d")),
    ]


def test_a_clock_change_is_marked_at_the_first_fire_time_after_it():
    fires = fire_times(
        ["2026-03-28T01:00:00.000Z", "2026-03-29T01:00:00.000Z", "2026-03-30T01:00:00.000Z"], "Europe/Berlin"
    )
    assert [fire.local for fire in fires] == [
        "Sat 2026-03-28 02:00:00",
        "Sun 2026-03-29 03:00:00",
        "Mon 2026-03-30 03:00:00",
    ]
    assert [bool(fire.mark) for fire in fires] == [False, True, False]
    assert fires[1].mark == "clock change: now CEST (UTC+02:00)"


def test_a_problem_within_a_field_is_shown_at_it():
    checked = FormCheck(problems=tuple(_problems("target.headers.Host", "policy.retry")))
    assert checked.at("target.headers") is not None
    assert checked.at("target.head") is None
    assert checked.at("policy.retry.attempts") is None


def _problems(*paths: str) -> list[Any]:
    return [problem for path in paths for problem in Invalid.one(path, "wrong").problems]


def test_inputs_have_names_of_their_own():
    names = [*all_inputs(), *(entry.name for entries in target_inputs().values() for entry in entries)]
    assert len(names) == len(set(names))
