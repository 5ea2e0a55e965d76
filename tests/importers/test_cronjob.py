"""CronJobs of Kubernetes: the firings are those of its cron library, by an evaluator that tries every quarter hour."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from onthedot.errors import Unreadable
from onthedot.importers.cronjob import import_cronjobs
from onthedot.importers.findings import ImportedJobs
from onthedot.timing.zones import zone
from tests.importers.firings import AUTUMN, SPRING, file_of, firings, ms, reasons, shown

STEP = timedelta(minutes=15)  # all that is tried is a multiple of it
HIGH = (59, 23, 31, 12, 6)
LOW = (0, 0, 1, 1, 0)


def cronjob(schedule: str, name: str = "report", **spec: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "main", "image": "busybox:1.36", "command": ["true"]}], "restartPolicy": "Never"}
    job = {"template": {"spec": pod}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": job}, **spec},
    }


def imported(*objects: dict[str, Any], now: datetime = AUTUMN, tz: str = "UTC") -> ImportedJobs:
    found = ImportedJobs("cronjob", "x.yaml", now=ms(now))
    import_cronjobs(yaml.safe_dump_all(objects), found, tz=tz)
    file_of(found)
    return found


def bits(field: str, place: int) -> tuple[set[int], bool]:
    """As the Go library parses a field: the values, and whether it has the star bit, which a step takes away."""
    values: set[int] = set()
    star = False
    for term in field.split(","):
        span, _, step = term.partition("/")
        low, _, high = span.partition("-")
        if low == "*":
            star = star or step in ("", "1")
            first, last = LOW[place], HIGH[place]
        else:
            first = int(low)
            last = int(high) if high else HIGH[place] if step else first
        values |= set(range(first, last + 1, int(step or 1)))
    return values, star


def go_firings(expression: str, tz: str, after: datetime) -> Iterator[datetime]:
    """Each quarter of an hour whose time on the clocks matches: in a gap none does, in a fold two do."""
    fields = [bits(field, place) for place, field in enumerate(expression.split())]
    (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = fields
    at = after
    for _ in range(400 * 24 * 4):
        at += STEP
        local = at.astimezone(zone(tz))
        if local.minute not in minutes or local.hour not in hours or local.month not in months:
            continue
        day, weekday = local.day in days, local.isoweekday() % 7 in weekdays
        if (day and weekday) if any_day or any_weekday else (day or weekday):
            yield at


@pytest.mark.parametrize("start", [SPRING, AUTUMN])
@pytest.mark.parametrize(
    "expression",
    ["*/30 * * * *", "30 2 * * *", "0 0 */2 * 1", "30 1-3 * * *", "0 12 * * 1-5", "0 0 1,15 * 5", "15 2 * * 0"],
)
def test_the_next_firings_are_those_of_kubernetes(expression: str, start: datetime):
    tz = "Europe/Berlin"
    found = imported(cronjob(expression, timeZone=tz), now=start)
    (job,) = found.jobs
    theirs = go_firings(expression, tz, start)
    assert firings(job, start) == [shown(next(theirs)) for _ in range(20)]
    assert not found.not_carried_over


def test_what_is_written_is_kept_where_it_means_the_same():
    found = imported(
        cronjob("0 3 * * MON-FRI", timeZone="Europe/Berlin"), cronjob("@daily", "b"), cronjob("0/15 * * * ?", "c")
    )
    assert [job["schedule"]["cron"] for job in found.jobs] == ["0 3 * * MON-FRI", "@daily", "0/15 * * * ?"]


def test_every_and_a_zone_in_the_schedule():
    found = imported(cronjob("@every 1h30m"), cronjob("CRON_TZ=Asia/Tokyo 0 6 * * *", "b"), tz="Europe/Paris")
    assert [job["schedule"] for job in found.jobs] == [{"every": "1h30m"}, {"cron": "0 6 * * *", "tz": "Asia/Tokyo"}]
    (job,) = imported(cronjob("0 6 * * *"), tz="Europe/Paris").jobs
    assert job["schedule"]["tz"] == "Europe/Paris"


def test_policy_and_target():
    given = cronjob("0 * * * *", concurrencyPolicy="Forbid", startingDeadlineSeconds=90, suspend=True)
    given["metadata"]["namespace"] = "prod"
    job = given["spec"]["jobTemplate"]["spec"]
    job |= {"backoffLimit": 2, "activeDeadlineSeconds": 600}
    job["template"]["spec"] |= {"serviceAccountName": "reporter"}
    job["template"]["spec"]["containers"][0] |= {
        "args": ["-v", "1"],
        "env": [{"name": "A", "value": "b"}],
        "resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "100m"}},
    }
    found = imported(given)
    (spec,) = file_of(found).specs
    assert found.jobs[0]["target"] == {
        "type": "kubernetes",
        "image": "busybox:1.36",
        "command": ["true"],
        "args": ["-v", "1"],
        "env": {"A": "b"},
        "resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "100m"}},
        "service_account": "reporter",
        "namespace": "prod",
    }
    policy = spec.policy
    assert (policy.retry.attempts, str(policy.retry.backoff), str(policy.retry.max)) == (3, "10s", "6m")
    assert (policy.overlap, str(policy.expires_in), str(policy.timeout)) == ("skip", "1m30s", "10m")
    assert (policy.catch_up, spec.paused) == ("latest", True)
    assert not found.not_carried_over
    (other,) = file_of(imported(cronjob("0 * * * *", concurrencyPolicy="Replace"))).specs
    assert (other.policy.overlap, other.policy.retry.attempts, other.paused) == ("replace", 7, False)


def test_a_list_of_kubectl_and_names_in_several_namespaces():
    one, two = cronjob("0 1 * * *"), cronjob("0 2 * * *")
    one["metadata"]["namespace"], two["metadata"]["namespace"] = "a", "b"
    for each in (one, two):
        del each["kind"]
    listed = {"kind": "CronJobList", "items": [one, two]}
    found = ImportedJobs("cronjob", "-")
    import_cronjobs(json.dumps(listed), found)
    assert [job["key"] for job in found.jobs] == ["a.report", "b.report"]


def test_what_is_not_carried_over_is_listed():
    given = cronjob("0 * * * *", successfulJobsHistoryLimit=1)
    pod = given["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    pod |= {"volumes": [{"name": "v", "emptyDir": {}}], "restartPolicy": "OnFailure", "dnsPolicy": "ClusterFirst"}
    pod["containers"][0] |= {
        "env": [{"name": "B", "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "args": ["$(B)"],
    }
    pod["containers"].append({"name": "proxy", "image": "envoy"})
    given["spec"]["jobTemplate"]["spec"]["parallelism"] = 3
    found = imported(given, {"kind": "Service", "metadata": {"name": "s"}}, cronjob("61 * * * *", "bad"))
    assert [lost.what for lost in found.not_carried_over] == [
        "the object",
        "env B",
        "history limits",
        "jobTemplate.spec.parallelism",
        "restartPolicy OnFailure",
        "pod.volumes",
        "container proxy",
        "container.volumeMounts",
        "$(…) in command or args",
        "the job",
    ]
    assert reasons(found)[-1] == "CronJob bad: the job: field '61' is not valid: values are 0 to 59"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"schedule": "0 0 31 2 *"}, "never fires: none of the given months has this day"),
        ({"timeZone": ["Europe/Berlin"]}, "time zone ['Europe/Berlin'] is not an IANA name"),
        ({"env": 5}, "not as the source writes it: TypeError: 'int' object is not iterable"),
        ({"env": ["A=1"]}, "not as the source writes it: AttributeError: 'str' object has no attribute 'get'"),
        ({"command": 5}, "not as the source writes it: TypeError: 'int' object is not iterable"),
    ],
)
def test_one_that_is_wrong_does_not_stop_the_others(wrong: dict[str, Any], told: str):
    given = cronjob("0 3 * * *", "wrong")
    container = given["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    for field, value in wrong.items():
        (given["spec"] if field in ("schedule", "timeZone") else container)[field] = value
    found = imported(given, cronjob("0 4 * * *", "right"))
    assert [job["key"] for job in found.jobs] == ["right"]
    (reason,) = reasons(found)
    assert reason.startswith("CronJob wrong: the job: ")
    assert told in reason


@pytest.mark.parametrize("text", ["just text", "a: [", "- 1"])
def test_what_is_not_an_object_of_kubernetes(text: str):
    with pytest.raises(Unreadable):
        import_cronjobs(text, ImportedJobs("cronjob", "x"))


def test_the_evaluator_knows_gap_and_fold():
    """30 2 in Berlin: not on 28 March, twice on 31 October 2027."""
    spring, autumn = (go_firings("30 2 * * *", "Europe/Berlin", start) for start in (SPRING, AUTUMN))
    assert [shown(next(spring)) for _ in range(2)] == ["2027-03-27 01:30:00", "2027-03-29 00:30:00"]
    found = [shown(next(autumn)) for _ in range(4)]
    assert found[1:3] == ["2027-10-31 00:30:00", "2027-10-31 01:30:00"]
    assert datetime.fromisoformat(found[0]).replace(tzinfo=UTC) > AUTUMN
