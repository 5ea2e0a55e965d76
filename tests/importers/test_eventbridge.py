"""Amazon EventBridge: the firings are those of its documentation, by an evaluator that tries every quarter hour."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from onthedot.errors import Unreadable
from onthedot.importers.eventbridge import import_eventbridge
from onthedot.importers.findings import ImportedJobs
from onthedot.timing.zones import zone
from tests.importers.firings import AUTUMN, SPRING, file_of, firings, ms, reasons, shown

LAMBDA = "arn:aws:lambda:eu-west-1:123456789012:function:report"
MACHINE = "arn:aws:states:eu-west-1:123456789012:stateMachine:flow"
STEP = timedelta(minutes=15)  # all that is tried is a multiple of it
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


def schedule(expression: str, tz: str | None = None, **fields: Any) -> dict[str, Any]:
    given = {
        "Name": "nightly",
        "State": "ENABLED",
        "ScheduleExpression": expression,
        "FlexibleTimeWindow": {"Mode": "OFF"},
    }
    if tz is not None:
        given["ScheduleExpressionTimezone"] = tz
    return given | {"Target": {"Arn": LAMBDA, "Input": "{}"}} | fields


def imported(*documents: Any, now: datetime = AUTUMN) -> ImportedJobs:
    found = ImportedJobs("eventbridge", "x.json", now=ms(now))
    import_eventbridge("\n".join(json.dumps(document, indent=4) for document in documents), found)
    file_of(found)
    return found


def takes(field: str, value: int, low: int, high: int, names: tuple[str, ...] = ()) -> bool:
    for name in names:
        field = field.replace(name, str(names.index(name) + 1))
    for term in field.split(","):
        span, _, step = term.partition("/")
        first, _, last = span.partition("-")
        begin = low if first in ("*", "?") else int(first)
        end = int(last) if last else high if first in ("*", "?") or step else begin
        if begin <= value <= end and (value - begin) % int(step or 1) == 0:
            return True
    return False


def takes_day(days: str, weekdays: str, local: datetime) -> bool:
    last = (local.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
    weekday = local.isoweekday() % 7 + 1
    if days == "L":
        return local.day == last.day
    if weekdays.endswith("L"):
        return weekday == int(weekdays[:-1]) and local.day + 7 > last.day
    if "#" in weekdays:
        name, number = weekdays.split("#")
        return takes(name, weekday, 1, 7, WEEKDAYS) and (local.day + 6) // 7 == int(number)
    return takes(days, local.day, 1, 31) and takes(weekdays, weekday, 1, 7, WEEKDAYS)


def aws_firings(expression: str, tz: str, after: datetime) -> Iterator[datetime]:
    """Each time of the clocks that matches; when clocks go back, a time that was there before does not fire again."""
    minutes, hours, days, months, weekdays, years = expression.split()
    at, before = after, ""
    for _ in range(900 * 24 * 4):
        at += STEP
        local = at.astimezone(zone(tz))
        if not (takes(minutes, local.minute, 0, 59) and takes(hours, local.hour, 0, 23)):
            continue
        fits = takes(months, local.month, 1, 12) and takes(years, local.year, 1970, 2199)
        if fits and takes_day(days, weekdays, local) and not (local.fold and hours != "*"):
            before = shown(local)
            yield at
    assert before, "it fired"


@pytest.mark.parametrize("start", [SPRING, AUTUMN])
@pytest.mark.parametrize(
    "expression",
    [
        "0/15 * * * ? *",
        "15 10 ? * MON-FRI *",
        "0 9 ? * 2#1 *",
        "0 18 ? * 6L *",
        "0 8 1 * ? *",
        "0 1-3 * * ? *",
        "0 10 L * ? *",
    ],
)
def test_the_next_firings_are_those_of_eventbridge(expression: str, start: datetime):
    found = imported(schedule(f"cron({expression})", "Europe/Berlin"), now=start)
    (job,) = found.jobs
    theirs = aws_firings(expression, "Europe/Berlin", start)
    count = 20 if " ? * 2#1" not in expression and "L" not in expression and " 1 *" not in expression else 6
    assert firings(job, start, count) == [shown(next(theirs)) for _ in range(count)]


def test_a_time_that_clocks_skip_is_the_difference_that_is_listed():
    """EventBridge leaves it out; here it fires right after the gap."""
    found = imported(schedule("cron(30 2 * * ? *)", "Europe/Berlin"), now=SPRING)
    (lost,) = found.not_carried_over
    assert lost.reason == "at 2027-03-28T01:00:00.000Z this job fires and the source does not"
    assert lost.key == "nightly"
    (job,) = imported(schedule("cron(30 2 * * ? *)", "Europe/Berlin"), now=AUTUMN).jobs
    theirs = aws_firings("30 2 * * ? *", "Europe/Berlin", AUTUMN)
    assert firings(job, AUTUMN) == [shown(next(theirs)) for _ in range(20)]


@pytest.mark.parametrize("date", ["2027-03-01T10:00:30+00:00", 1803895230.5, "2027-03-01T11:00:30+01:00"])
@pytest.mark.parametrize(("rate", "minutes"), [("5 minutes", 5), ("1 hour", 60), ("2 days", 2880)])
def test_rates_count_from_the_start(date: Any, rate: str, minutes: int):
    (job,) = imported(schedule(f"rate({rate})", StartDate=date), now=SPRING).jobs
    first = datetime(2027, 3, 1, 10, 0, 30, tzinfo=UTC)
    passed = (SPRING - first) // timedelta(minutes=minutes) + 1
    expected = [shown(first + timedelta(minutes=minutes) * (passed + n)) for n in range(20)]
    assert firings(job, SPRING) == expected


def test_rates_without_a_start_count_from_the_creation():
    (job,) = imported(schedule("rate(1 hour)", CreationDate="2027-03-01T10:20:00Z"), now=SPRING).jobs
    assert firings(job, SPRING, 2) == ["2027-03-26 12:20:00", "2027-03-26 13:20:00"]
    (job,) = imported(schedule("rate(1 hour)"), now=SPRING).jobs
    assert job["schedule"] == {"every": "1h"}


def test_at_and_years_and_bounds():
    found = imported(
        schedule("at(2027-11-20T10:00:00)", "America/New_York"),
        schedule("cron(0 0 1 1 ? 2029-2030)", "Europe/Berlin", Name="years"),
        schedule("cron(0 9 * * ? *)", Name="bounded", StartDate="2027-12-01T00:00:00Z", EndDate="2027-12-03T00:00:00Z"),
        schedule("at(2020-01-01T00:00:00)", Name="past"),
        schedule("cron(0 0 1 1 ? 2029,2031)", Name="holes"),
    )
    once, years, bounded = found.jobs
    assert firings(once, AUTUMN) == ["2027-11-20 15:00:00"]
    assert firings(years, AUTUMN) == ["2028-12-31 23:00:00", "2029-12-31 23:00:00"]
    assert firings(bounded, AUTUMN) == ["2027-12-01 09:00:00", "2027-12-02 09:00:00"]
    assert [lost.item for lost in found.not_carried_over] == ["past", "holes"]
    assert "is in the past" in found.not_carried_over[0].reason


def test_policy():
    given = schedule(
        "rate(1 hour)", FlexibleTimeWindow={"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15}, State="DISABLED"
    )
    given["Target"] |= {
        "RetryPolicy": {"MaximumRetryAttempts": 5, "MaximumEventAgeInSeconds": 3600},
        "RoleArn": "arn:x",
    }
    found = imported(given)
    (spec,) = file_of(found).specs
    policy = spec.policy
    assert (policy.retry.attempts, str(policy.retry.max_age), str(policy.jitter)) == (6, "1h", "15m")
    assert spec.paused
    assert [lost.what for lost in found.not_carried_over] == ["RoleArn"]
    (spec,) = file_of(imported(schedule("rate(1 hour)"))).specs
    assert (spec.policy.retry.attempts, str(spec.policy.retry.max_age)) == (186, "1d")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (
            {"Arn": LAMBDA, "Input": '{"at": "<aws.scheduler.scheduled-time>", "n": [1]}'},
            {
                "type": "lambda",
                "function": LAMBDA,
                "invocation": "event",
                "payload": {"at": {"$": "scheduled_for"}, "n": [1]},
            },
        ),
        (
            {
                "Arn": "arn:aws:sqs:eu-west-1:123456789012:q.fifo",
                "Input": "hi",
                "SqsParameters": {"MessageGroupId": "g"},
            },
            {"type": "queue", "broker": "sqs", "topic": "q.fifo", "key": "g", "format": "raw", "body": "hi"},
        ),
        (
            {"Arn": "arn:aws:sqs:eu-west-1:123456789012:q", "Input": '{"a":1}'},
            {"type": "queue", "broker": "sqs", "topic": "q", "body": {"a": 1}},
        ),
        (
            {"Arn": MACHINE, "Input": '{"a":1}'},
            {"type": "workflow", "engine": "stepfunctions", "workflow": MACHINE, "input": {"a": 1}},
        ),
        (
            {
                "Arn": "arn:aws:scheduler:::aws-sdk:lambda:invoke",
                "Input": json.dumps({"FunctionName": "f", "InvocationType": "Event", "Payload": '{"a": 1}'}),
            },
            {"type": "lambda", "function": "f", "invocation": "event", "payload": {"a": 1}},
        ),
        (
            {
                "Arn": "arn:aws:scheduler:::aws-sdk:sqs:sendMessage",
                "Input": json.dumps({"QueueUrl": "https://sqs.eu-west-1.amazonaws.com/1/q", "MessageBody": "x"}),
            },
            {"type": "queue", "broker": "sqs", "topic": "q", "format": "raw", "body": "x"},
        ),
        (
            {
                "Arn": "arn:aws:scheduler:::aws-sdk:sfn:startExecution",
                "Input": json.dumps({"StateMachineArn": MACHINE}),
            },
            {"type": "workflow", "engine": "stepfunctions", "workflow": MACHINE},
        ),
    ],
)
def test_targets(target: dict[str, Any], expected: dict[str, Any]):
    (job,) = imported(schedule("rate(1 hour)", Target=target)).jobs
    assert job["target"] == expected


def test_rules_have_their_targets_beside_them_or_after_them():
    rules = {"Rules": [schedule("rate(1 day)", Name="a") | {"Target": None, "Targets": [{"Id": "1", "Arn": LAMBDA}]}]}
    rule = {"Name": "b", "ScheduleExpression": "cron(0 12 * * ? *)", "State": "ENABLED"}
    targets = {"Targets": [{"Id": "1", "Arn": LAMBDA, "Input": "{}"}, {"Id": "flow", "Arn": MACHINE}]}
    found = imported(
        rules, rule, targets, {"Name": "c", "EventPattern": "{}"}, {"Name": "d", "ScheduleExpression": "rate(1 day)"}
    )
    assert [job["key"] for job in found.jobs] == ["a", "b", "b-flow"]
    told = reasons(found)
    assert any("c: the schedule: the rule has an event pattern" in text for text in told)
    assert any("d: the schedule: it has no target" in text for text in told)


def test_what_cannot_be_carried_over_is_listed():
    found = imported(
        [
            schedule("cron(0 0 15W * ? *)", Name="w"),
            schedule("rate(1 hour)", Name="ecs", Target={"Arn": "arn:aws:ecs:eu-west-1:1:cluster/c"}),
            {"Name": "listed", "State": "ENABLED", "Target": {"Arn": LAMBDA}},
            schedule("rate(1 hour)", Name="zone", ScheduleExpressionTimezone="Nowhere"),
            schedule("sometimes", Name="words"),
        ]
    )
    assert found.jobs == []
    assert [lost.item for lost in found.not_carried_over] == ["w", "ecs", "listed", "zone", "words"]
    assert "get-schedule" in found.not_carried_over[2].reason


@pytest.mark.parametrize("wrong", [{"ScheduleExpressionTimezone": ["UTC"]}, {"StartDate": float("inf")}])
def test_one_that_is_wrong_does_not_stop_the_others(wrong: dict[str, Any]):
    found = imported([schedule("rate(1 hour)", Name="wrong", **wrong), schedule("rate(1 hour)", Name="right")])
    assert [job["key"] for job in found.jobs] == ["right"]
    assert "wrong: the schedule: not as the source writes it" in reasons(found)[0]


@pytest.mark.parametrize("text", ["{", "[1]", '{"Schedules": [1]}', '{"Targets": []}'])
def test_what_the_aws_cli_does_not_print(text: str):
    with pytest.raises(Unreadable):
        import_eventbridge(text, ImportedJobs("eventbridge", "x"))
