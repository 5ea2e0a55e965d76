"""What the nouns say of themselves."""

from __future__ import annotations

import pytest

from onthedot.model.accepted import accepted
from onthedot.model.decoding import convert
from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.policy import Policy
from onthedot.model.run import Outcome, run_id
from onthedot.model.schedule import SCHEDULE_KINDS, Schedule
from onthedot.model.targets import CommandTarget, FunctionTarget, Target, WebhookTarget


@pytest.mark.parametrize(
    ("schedule", "kind", "one_off"),
    [
        (Schedule(cron="* * * * *"), "cron", False),
        (Schedule(every=Duration(1)), "every", False),
        (Schedule(at="2026-01-01"), "at", True),
        (Schedule(in_=Duration(1)), "in", True),
        (Schedule(rrule="FREQ=DAILY"), "rrule", False),
        (Schedule(), "", False),
    ],
)
def test_the_kind_of_a_schedule(schedule: Schedule, kind: str, one_off: bool) -> None:
    assert (schedule.kind, schedule.one_off) == (kind, one_off)
    assert not kind or kind in SCHEDULE_KINDS


@pytest.mark.parametrize(
    ("target", "kind", "needs"),
    [
        (WebhookTarget(url="http://x/"), "webhook", "webhook"),
        (FunctionTarget(function="reports.nightly:build"), "function", "function:reports.nightly"),
        (CommandTarget(command="backup"), "command", "command:backup"),
    ],
)
def test_what_a_target_needs(target: Target, kind: str, needs: str) -> None:
    assert (target.type, target.capability()) == (kind, needs)


def test_run_ids_are_made_of_job_and_slot() -> None:
    assert run_id(7, 1000) == "7-1000"
    assert run_id(7, 1000, "manual", 1) == "7-1000-m1"
    assert run_id(7, 1000, "backfill", 2) == "7-1000-b2"
    assert run_id(7, 1000, "redrive", 3) == "7-1000-r3"


def test_outcomes() -> None:
    assert Outcome(kind="ok").ok
    assert not Outcome(kind="error", retryable=True).ok


def test_equal_specs_mean_nothing_changed() -> None:
    loose = {"schedule": {"every": "90s"}, "target": {"type": "webhook", "url": "http://x/"}}
    same = {"schedule": {"every": 90, "tz": "UTC"}, "target": {"type": "webhook", "url": "http://x/", "method": "POST"}}
    assert convert(loose, JobSpec) == convert(same, JobSpec)
    assert convert(loose, JobSpec) != convert({**loose, "paused": True}, JobSpec)


def test_specs_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Schedule().tz = "x"  # type: ignore[misc]


def test_types_in_words() -> None:
    assert accepted(int) == "a whole number"
    assert accepted(str | None) == "text or null"
    assert accepted(list[int]) == "a list"
    assert accepted(dict[str, str]) == "an object"
    assert accepted(Policy).startswith("an object with timeout, retry, overlap")
    assert accepted(Duration, limits=False) == "a duration"
    assert accepted(object) == "any value"
