"""What a job is, in plain sentences: when it runs, what it does, and what happens when something goes wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from onthedot.errors import OnTheDotError
from onthedot.model.alerts import JobAlerts
from onthedot.model.decoding import encode_json, to_builtins
from onthedot.model.job import JobSpec, JobView
from onthedot.model.policy import Policy, Retry
from onthedot.model.schedule import Schedule
from onthedot.plan.retries import PLANS
from onthedot.timing import describe
from onthedot.web.words import count_words, expression, how_long, sentence, timetable_words

__all__ = ["Fact", "definition", "listed", "loose_job"]

OVERLAP = {
    "allow": "Runs may overlap: a firing starts even if the previous run has not finished.",
    "skip": "A firing is skipped if the previous run has not finished.",
    "queue": "A firing waits until the previous run has finished.",
    "replace": "A firing cancels the previous run if that has not finished.",
}
CATCH_UP = {
    "latest": "Firings that were missed during an outage are made up for by one run, of the latest.",
    "skip": "Firings that were missed during an outage are not made up for.",
    "all": "Firings that were missed during an outage are all run, at most the last {limit:,}.",
}
DELIVERY = {
    "at_least_once": "If a node dies during a run, another node runs it again.",
    "at_most_once": "If a node dies during a run, it is not run again, because it may have happened.",
}


class Fact(msgspec.Struct, frozen=True):
    """`exact`: the same as it is written, for those who know the notation."""

    label: str
    text: str
    exact: str = ""


def definition(job: JobView) -> list[Fact]:
    return [*_when(job), *_what(job), *(_report(job) if job.target.reports else _policy(job.policy)), *_more(job)]


def loose_job(job: JobView) -> dict[str, Any]:
    """The definition of a job as the API shows it, secrets masked, without what a job has by being there."""
    shown: dict[str, Any] = to_builtins(job)
    names = (field.encode_name for field in msgspec.structs.fields(JobSpec))
    return {name: shown[name] for name in names if shown.get(name) not in (None, [], False)}


def listed(things: list[str], last: str = "and") -> str:
    """a, b and c."""
    return things[0] if len(things) == 1 else f"{', '.join(things[:-1])} {last} {things[-1]}" if things else ""


def _value(value: Any) -> str:
    """A value of a definition as a person writes it: text bare, lists with commas, what is nested as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    if isinstance(value, dict) and not any(isinstance(each, (dict, list)) for each in value.values()):
        return ", ".join(f"{name}: {_value(each)}" for name, each in value.items())
    return encode_json(value).decode()


def _when(job: JobView) -> Iterator[Fact]:
    schedule = job.schedule
    try:
        words = f"{timetable_words(describe(schedule, job.key or ''))}."
    except OnTheDotError as error:  # as of a job that is quarantined because of it
        words = sentence(f"it can't be computed: {error}")
    yield Fact("Schedule", words, expression(schedule))
    if bounds := list(_bounds(schedule)):
        yield Fact("Limits", f"{_capital(', '.join(bounds))}.")
    if job.policy.jitter:
        yield Fact("Jitter", f"Each run starts up to {how_long(job.policy.jitter)} later, spread evenly.")


def _bounds(schedule: Schedule) -> Iterator[str]:
    if schedule.start is not None:
        yield f"from {schedule.start}"
    if schedule.end is not None:
        yield f"until {schedule.end}"
    if schedule.count is not None:
        yield "at most once" if schedule.count == 1 else f"at most {schedule.count:,} times"
    if schedule.exclude:
        yield f"except {listed(schedule.exclude)}"


def _what(job: JobView) -> Iterator[Fact]:
    summary = job.target.summary()
    yield Fact("Target", f"{_capital(summary.label)} {summary.what}".strip())
    details: Mapping[str, Any] = to_builtins(job.target)
    for name, value in details.items():
        told = _value(value)
        if name != "type" and value not in (None, {}, [], "") and told != summary.label and told not in summary.what:
            yield Fact(_capital(name.replace("_", " ")), "", told)
    if job.params:
        yield Fact("Parameters", "", _value(job.params))


def _report(job: JobView) -> Iterator[Fact]:
    """Of a job that runs elsewhere: nothing is started here, so nothing is retried, overlaps or is lost with a node."""
    grace = how_long(job.target.report_within or 0)
    yield Fact("Report", f"A run without a report {grace} after it was due, or after it started, is a missed run.")
    yield Fact("Missed", CATCH_UP[job.policy.catch_up].format(limit=job.policy.catch_up_limit))


def _policy(policy: Policy) -> Iterator[Fact]:
    if policy.timeout is None:
        yield Fact("Timeout", "None: a try may take as long as it needs.")
    else:
        yield Fact("Timeout", f"A try that takes longer than {how_long(policy.timeout)} has failed.")
    if policy.completion == "callback":
        most = how_long(policy.completion_timeout)
        yield Fact("Completion", f"The receiver reports the result with a callback, within {most}.")
    yield Fact("Retries", _retries(policy.retry))
    if policy.expires_in is not None:
        yield Fact("Expiry", f"A run that has not started {how_long(policy.expires_in)} after it was due is given up.")
    yield Fact("Overlap", OVERLAP[policy.overlap])
    yield Fact("Missed", CATCH_UP[policy.catch_up].format(limit=policy.catch_up_limit))
    yield Fact("Node loss", DELIVERY[policy.delivery])


def _retries(retry: Retry) -> str:
    if retry.plan:
        waits = [how_long(wait) for wait in PLANS[retry.plan]]
        text = f"A run that fails is tried again after {listed(waits)}"
    elif retry.attempts == 1:
        return "A run that fails is not tried again."
    else:
        assert retry.attempts is not UNSET
        assert retry.backoff is not UNSET
        assert retry.factor is not UNSET
        assert retry.max is not UNSET
        again = count_words(retry.attempts - 1, "more time")
        text = f"A run that fails is tried up to {again}, first after {how_long(retry.backoff)}"
        if retry.attempts > 2 and retry.factor != 1:
            text += f", each wait {retry.factor:g} times the one before, at most {how_long(retry.max)}"
    if retry.max_age is not None:
        text += f"; not later than {how_long(retry.max_age)} after it was due"
    if retry.until:
        text += "; not after its next firing"
    return f"{text}."


def _more(job: JobView) -> Iterator[Fact]:
    if job.policy.concurrency:
        group = job.policy.concurrency
        runs = count_words(group.limit, "run")
        yield Fact("Group", f"At most {runs} at the same time of all jobs of the group {group.group}.")
    if job.policy.max_running:
        yield Fact("Running", f"At most {count_words(job.policy.max_running, 'run')} of this job at the same time.")
    if job.requires:
        yield Fact("Labels", f"Runs only on nodes that have {listed(job.requires)}.")
    if job.alerts:
        yield Fact("Alerts", _alerts(job.alerts))
    if job.objective:
        share = f"{job.objective.percent:g} %"
        yield Fact("Objective", f"{share} of the runs start within {how_long(job.objective.late)}, over 28 days.")
    if job.keep_result:
        yield Fact("Result", "Results of up to 64 KB are kept.")


def _alerts(alerts: JobAlerts) -> str:
    said = {
        "a run fails": alerts.failed,
        "it has dead letters": alerts.dead,
        f"{alerts.in_a_row} runs in a row fail": alerts.in_a_row,
        "a firing is missed": alerts.missed,
        "no node can run it": alerts.unroutable,
    }
    when = [words for words, wanted in said.items() if wanted]
    if alerts.late is not None:
        when.append(f"a run is more than {how_long(alerts.late)} late")
    if alerts.too_long is not None:
        when.append(f"a run takes more than {how_long(alerts.too_long)}")
    if alerts.too_long_p95:
        when.append("a run takes more than twice as long as usual")
    if not when:
        return "None, whatever the rules of the installation say."
    if not alerts.channels:
        return f"Recorded when {listed(when, 'or')}."
    verb = "is" if len(alerts.channels) == 1 else "are"
    return f"{listed(alerts.channels)} {verb} told when {listed(when, 'or')}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
