"""Short descriptions of jobs and runs, for tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onthedot.model.job import JobView
    from onthedot.model.ping import Ping
    from onthedot.model.policy import Policy, Retry
    from onthedot.model.preview import Explanation
    from onthedot.model.run import RunView
    from onthedot.model.schedule import Schedule
    from onthedot.model.targets import Target

__all__ = [
    "concurrency_text",
    "curl_text",
    "follow_facts",
    "meaning",
    "outcome_text",
    "ping_text",
    "progress_text",
    "request_text",
    "response_text",
    "result_text",
    "retry_text",
    "schedule_text",
    "target_text",
    "trigger_text",
    "value_text",
]


def schedule_text(schedule: Schedule) -> str:
    zone = "" if schedule.tz == "UTC" else f" {schedule.tz}"
    if schedule.cron is not None:
        return f"{schedule.cron}{zone}"
    if schedule.every is not None:
        return f"every {schedule.every}"
    if schedule.at is not None:
        return f"at {schedule.at}{zone}"
    if schedule.in_ is not None:
        return f"in {schedule.in_}"
    return schedule.kind


def meaning(job: JobView) -> str | None:
    """The schedule in words; None if that would only repeat it, or if `H` depends on a key that the job lacks."""
    from onthedot.timing import describe

    if job.schedule.cron is None or ("H" in job.schedule.cron and job.key is None):
        return None
    return describe(job.schedule, seed=job.key or "")


def ping_text(ping: Ping | None) -> str | None:
    """What a job that runs elsewhere last reported."""
    if ping is None:
        return None
    late = f", late for run {ping.late_for}" if ping.late_for else ""
    status = "" if ping.exit_status is None else f" (exit status {ping.exit_status})"
    return f"{ping.at} {ping.signal}{status}{late}"


def retry_text(retry: Retry) -> str:
    limits = "".join(
        [f", up to {retry.max_age} of age" if retry.max_age else "", ", until the next slot" if retry.until else ""]
    )
    if retry.plan:
        return f"plan {retry.plan}{limits}"
    return f"{retry.attempts} attempts, backoff {retry.backoff} to {retry.max}{limits}"


def concurrency_text(policy: Policy) -> str | None:
    group = policy.concurrency
    return f"{group.group}, at most {group.limit} at once" if group else None


def target_text(target: Target) -> str:
    return target.summary().line


def follow_facts(job: JobView | Explanation) -> list[tuple[str, str]]:
    """The jobs that follow a run, where there are any."""
    named = [("on success", job.on_success), ("on failure", job.on_failure), ("on finish", job.on_finish)]
    return [(name, ", ".join(keys)) for name, keys in named if keys]


def trigger_text(run: RunView) -> str:
    """What started it: "schedule", "manual by anna", "chain (run 7-1700000000000)"."""
    other, actor = run.trigger.run_id, run.trigger.actor
    return run.trigger.kind + (f" by {actor}" if actor else "") + (f" (run {other})" if other else "")


def outcome_text(run: RunView) -> str:
    if run.waiting is not None:
        since = "" if run.waiting_since is None else f" since {run.waiting_since}"
        return f"waiting for {run.waiting} {run.waiting_for or ''}".rstrip() + since
    if run.error:
        return run.error
    if run.reason:
        return run.reason if run.slots in (None, 1) else f"{run.reason} ({run.slots} slots)"
    detail = run.outcome or {}
    nested = detail.get("detail")
    found = nested if isinstance(nested, dict) else detail
    for name in ("status_code", "exit_code"):
        if found.get(name) is not None:
            return f"{name.replace('_', ' ')} {found[name]}"
    return ""


def progress_text(run: RunView) -> str | None:
    """ "40 % (1200 of 3000 rows)"."""
    if run.progress is None:
        return None
    percent, message = run.progress.get("percent"), run.progress.get("message")
    said = [f"{percent:g} %"] if percent is not None else []
    return " ".join([*said, *([f"({message})" if said else str(message)] if message else [])])


def request_text(run: RunView) -> str | None:
    return run.request.what if run.request else None


def response_text(run: RunView) -> str | None:
    """ "503: try later"."""
    if not run.response:
        return None
    code = run.response.status_code if run.response.exit_code is None else f"exit code {run.response.exit_code}"
    lines = (run.response.body or "").strip().splitlines()
    return ": ".join(str(each) for each in (code, lines[0] if lines else None) if each is not None)


def curl_text(run: RunView) -> str:
    from onthedot.model.run_request import as_curl

    command = as_curl(run.request) if run.request else None
    return command or "This run has sent no HTTP request that is still known."


def result_text(run: RunView) -> str | None:
    """As JSON, or why it was not kept."""
    import msgspec

    if run.result is msgspec.UNSET or run.result is None:
        note = (run.outcome or {}).get("result_note")
        return None if note is None else str(note)
    return msgspec.json.encode(run.result).decode()


def value_text(value: Any) -> str:
    """Any JSON value in one line."""
    if isinstance(value, str):
        return value
    import msgspec

    return "" if value is None else msgspec.json.encode(value).decode()
