"""What each field of a job means, with an example: the OpenAPI document and docs/job.md are made from this.

The fields of a target are described by its spec (`notes`). `tests/docs/test_job_page.py` reads every example as a job,
and finds fields that are not described.
"""

from __future__ import annotations

from collections.abc import Mapping

from onthedot.model.field_note import FieldNote
from onthedot.model.targets.registry import built_in_specs

__all__ = ["field_notes", "reference"]

_JOB = {
    "key": FieldNote(
        "A name of your own for the job, unique per tenant: 1 to 200 letters, digits, dots, underscores and hyphens. "
        "Commands and `/v1/jobs/by-key/{key}` accept it instead of the ID.",
        {"key": "nightly-report"},
    ),
    "name": FieldNote("A title for people, shown in lists and on pages.", {"name": "Nightly report"}),
    "schedule": FieldNote("When the job fires.", {"schedule": {"cron": "0 3 * * *", "tz": "Europe/Berlin"}}),
    "target": FieldNote(
        "What a run does. `type` selects the kind of target.",
        {"target": {"type": "webhook", "url": "https://example.com/hook"}},
    ),
    "policy": FieldNote("How a run is tried, limited and repeated.", {"policy": {"timeout": "30s"}}),
    "params": FieldNote(
        "Parameters of every run: arguments of a function, JSON body of a webhook or message without a `body`, "
        "standard input of a script. A manual run can bring its own.",
        {"params": {"region": "eu", "full": True}},
    ),
    "tags": FieldNote("Labels to find and select jobs by.", {"tags": ["reports", "finance"]}),
    "paused": FieldNote("Create the job paused: it fires when somebody resumes it.", {"paused": True}),
    "owner": FieldNote(
        "Who is responsible: a person or a team. A filter in lists and alert rules. By default, the name of the API "
        "key that created the job.",
        {"owner": "team-billing"},
    ),
    "keep_result": FieldNote(
        "Keep results of more than 4 KB, up to 64 KB. Smaller results are always kept.", {"keep_result": True}
    ),
    "requires": FieldNote("Labels that a node must have to run this job.", {"requires": ["gpu", "eu"]}),
    "run_now": FieldNote(
        "When the job is created: run it once immediately, then follow the schedule. Not stored.", {"run_now": True}
    ),
    "on_success": FieldNote("Keys of jobs to run after a run that is done.", {"on_success": ["publish-report"]}),
    "on_failure": FieldNote(
        "Keys of jobs to run after a run that failed for good, not after each attempt.", {"on_failure": ["open-ticket"]}
    ),
    "on_finish": FieldNote("Keys of jobs to run after either.", {"on_finish": ["clean-up"]}),
    "alerts": FieldNote(
        "When and where somebody is told about the job, instead of what the rules of the installation say.",
        {"alerts": {"failed": True, "late": "30s", "channels": ["ops"]}},
    ),
    "objective": FieldNote(
        "The share of runs that should start in time, over 28 days.", {"objective": {"late": "1s", "percent": 99}}
    ),
}

_ALERTS = {
    "late": FieldNote("A run has not started this long after it was due.", {"late": "30s"}),
    "failed": FieldNote("A run failed for good, after its last attempt.", {"failed": True}),
    "dead": FieldNote("The job has dead letters.", {"dead": True}),
    "missed": FieldNote("A firing was given up, or a check-in did not come.", {"missed": True}),
    "too_long": FieldNote("A run takes longer than this.", {"too_long": "10m"}),
    "too_long_p95": FieldNote(
        "A run takes more than twice the 95th percentile of the last 100 runs, and more than 5 s.",
        {"too_long_p95": True},
    ),
    "in_a_row": FieldNote("This many runs failed one after the other.", {"in_a_row": 3}),
    "unroutable": FieldNote("A run is due and no live node can run it.", {"unroutable": True}),
    "recovered": FieldNote("Also tell when it is over.", {"recovered": False}),
    "channels": FieldNote(
        "Channels to tell. Without any: the channel named like the `owner`, if there is one; otherwise incidents are "
        "only listed.",
        {"channels": ["ops"]},
    ),
    "quiet": FieldNote(
        "A daily time span in which nothing is sent, optionally with a time zone.",
        {"quiet": "22:00-07:00 Europe/Berlin"},
    ),
    "repeat": FieldNote("Tell again after this time while it lasts.", {"repeat": "4h"}),
}

_OBJECTIVE = {
    "late": FieldNote("A run that starts later than this after it was due is late.", {"late": "1s", "percent": 99}),
    "percent": FieldNote("The share of runs that should not be late.", {"late": "1s", "percent": 99.9}),
}

_SCHEDULE = {
    "cron": FieldNote(
        "A cron expression with 5 fields, or 6 with seconds first. Names (`MON`, `JAN`), ranges, steps, `L`, `LW`, "
        "`#`, `@daily` and the like, and `H` for a stable value that spreads jobs.",
        {"cron": "0 9 * * MON-FRI"},
    ),
    "every": FieldNote(
        "A fixed interval in elapsed time, counted from `start` or from the creation of the job. At least 100 ms.",
        {"every": "90s"},
    ),
    "at": FieldNote(
        "One instant: RFC 3339, or a local time in the zone `tz`. Must be in the future.",
        {"at": "2099-12-31T23:59:59Z"},
    ),
    "in": FieldNote("One instant, this long after the job was created.", {"in": "10m"}),
    "rrule": FieldNote("An RFC 5545 recurrence rule. Reserved: not available yet (422)."),
    "tz": FieldNote(
        "The IANA time zone of `cron` and of local times. Left out: the setting `DEFAULT_TZ` (UTC), stored when the "
        "job is created. A change to or from daylight saving time neither skips nor repeats a fixed time.",
        {"cron": "30 2 * * *", "tz": "Europe/Berlin"},
    ),
    "start": FieldNote("No slot before this time.", {"every": "1h", "start": "2026-01-01T00:00:00Z"}),
    "end": FieldNote(
        "No slot after this time; then the job has ended.", {"every": "1h", "end": "2099-01-01T00:00:00Z"}
    ),
    "count": FieldNote("The number of slots; then the job has ended.", {"every": "1h", "count": 24}),
    "exclude": FieldNote("Dates and calendars without firings. Reserved: not available yet (422)."),
}

_POLICY = {
    "timeout": FieldNote(
        "How long one attempt may take. By default 3 s for webhooks (`TIMEOUT_SECONDS`), 24 h for "
        "containers, Kubernetes Jobs and workflows, and no limit for the others.",
        {"timeout": "5m"},
    ),
    "retry": FieldNote("When a failed attempt is repeated.", {"retry": {"attempts": 5, "backoff": "2s"}}),
    "overlap": FieldNote(
        "What happens if the previous run still executes: `allow` both, `skip` the new one, `queue` one, or `replace` "
        "the old one, which is cancelled.",
        {"overlap": "skip"},
    ),
    "catch_up": FieldNote(
        "Slots that were missed while no node was running: fire the `latest` if it is at most 24 h late, `skip` those "
        "more than 60 s late, or fire `all` up to `catch_up_limit`. One-off jobs always fire.",
        {"catch_up": "skip"},
    ),
    "catch_up_limit": FieldNote(
        "The most missed slots that `catch_up: all` fires.", {"catch_up": "all", "catch_up_limit": 500}
    ),
    "delivery": FieldNote(
        "`at_least_once` repeats an attempt whose outcome is unknown, with the same run ID. `at_most_once` records the "
        "attempt before it is sent and never sends it again.",
        {"delivery": "at_most_once"},
    ),
    "jitter": FieldNote(
        "Spread firings over this time after the slot, by a stable amount per slot. Best shorter than the time between "
        "two slots: slots that have come while an earlier one waits are missed slots, for `catch_up`.",
        {"jitter": "30s"},
    ),
    "expires_in": FieldNote(
        "A run that has not begun this long after its slot is skipped instead.", {"expires_in": "10m"}
    ),
    "completion": FieldNote(
        "`answer`: the response ends the run. `callback`: a 2xx response means accepted, and the receiver reports the "
        "result later.",
        {"completion": "callback"},
    ),
    "completion_timeout": FieldNote(
        "How long after acceptance the receiver may report the result.",
        {"completion": "callback", "completion_timeout": "2h"},
    ),
    "concurrency": FieldNote(
        "At most `limit` runs at once of all jobs that name the same `group`, over all nodes.",
        {"concurrency": {"group": "database", "limit": 3}},
    ),
    "max_running": FieldNote("At most this many runs of this job at once, over all nodes.", {"max_running": 2}),
}

_RETRY = {
    "attempts": FieldNote("The number of attempts, the first one included.", {"attempts": 5}),
    "backoff": FieldNote("The wait before the second attempt.", {"backoff": "2s"}),
    "factor": FieldNote("Each further wait is longer by this factor.", {"factor": 3}),
    "max": FieldNote("No wait is longer than this.", {"max": "1h"}),
    "max_age": FieldNote("No attempt this long after the run was due.", {"max_age": "6h"}),
    "plan": FieldNote(
        "Fixed waits instead of the four fields above. `quick`: 1 s, 5 s, 30 s, 2 m. `standard`: 5 s, 5 m, 30 m, 2 h, "
        "5 h, 10 h, 14 h.",
        {"plan": "standard"},
    ),
    "until": FieldNote(
        "`next_slot`: no attempt at or after the next time of the schedule, also after the last one of a `count`.",
        {"until": "next_slot"},
    ),
}

_CONCURRENCY = {
    "group": FieldNote("The name that the jobs share.", {"group": "database", "limit": 3}),
    "limit": FieldNote("The most runs of the group at once.", {"group": "database", "limit": 3}),
}

_STRUCTS: dict[str, Mapping[str, FieldNote]] = {
    "JobSpec": _JOB,
    "Schedule": _SCHEDULE,
    "Policy": _POLICY,
    "Retry": _RETRY,
    "Concurrency": _CONCURRENCY,
    "JobAlerts": _ALERTS,
    "Objective": _OBJECTIVE,
}


def reference() -> dict[str, Mapping[str, FieldNote]]:
    """The notes by the name of the struct, in the order of the page."""
    return {**_STRUCTS, **{spec.__name__: spec.notes for spec in built_in_specs().values()}}


def field_notes(struct: type) -> Mapping[str, FieldNote]:
    """The notes on the fields of a struct. A job that is read back has the fields of one that is written."""
    own: Mapping[str, FieldNote] | None = getattr(struct, "notes", None)
    if own is not None:
        return own
    name = {"JobView": "JobSpec", "OpenJobSpec": "JobSpec"}.get(struct.__name__, struct.__name__)
    return _STRUCTS.get(name, {})
