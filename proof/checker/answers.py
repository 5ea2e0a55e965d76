"""What the API shows: of each run what its row says, of each job its next run and what its ledger adds up to."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from proof.checker.ledger import Attempt, Entry, Job, Live
from proof.checker.story import JobStory, Story, Violation
from proof.checker.told import told
from proof.model.stats import totals_of
from proof.oracle.slots import is_one_off

__all__ = ["check_answers"]


def check_answers(story: Story) -> Iterator[Violation]:
    if not story.ledger.whole:
        return
    rows: list[Entry | Live] = [*story.ledger.entries, *story.ledger.live]
    for row in rows:
        yield from _run(story, row)
    for _, event in (one for wrote in story.lives.wrote.values() for one in wrote):
        if event.given_up is not None:
            text = f"job {event.job}: {event.verb} was carried out {event.given_up} ms after its client had hung up"
            yield Violation(kind="ghost", text=text)
    for froze in (event for _, event in story.lives.freezes if event.given_up is not None):
        text = f"everything was {'paused' if froze.on else 'resumed'} {froze.given_up} ms after its client had hung up"
        yield Violation(kind="ghost", text=text)
    for told_wrong in story.lives.mistaken:
        yield Violation(kind="answer", text=told_wrong)
    for job in story.jobs.values():
        if job.row is not None:
            yield from _job(story, job, job.row)
            yield from _statistics(job, job.row)
        yield from _spec(story, job)
    yield from _dead_letters(story)


def _instant(ms: int | None) -> str | None:
    if ms is None:
        return None
    moment = datetime.fromtimestamp(ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def _differences(view: dict[str, Any], must: dict[str, Any]) -> list[str]:
    return [f"{name} {view.get(name)!r}, not {value!r}" for name, value in must.items() if view.get(name) != value]


def _run(story: Story, row: Entry | Live) -> Iterator[Violation]:
    if row.view is None:
        yield Violation(kind="answer", text=f"{row.id} is in no list of runs")
        return
    must: dict[str, Any] = {
        "job_id": row.job,
        "kind": row.kind,
        "scheduled_for": _instant(row.slot),
        "due_at": _instant(row.due_at),
        "attempt": row.token,
        "tries": row.tries,
    }
    if isinstance(row, Entry):
        must |= {
            "status": row.status.upper(),
            "reason": row.reason,
            "losses": row.losses,
            "node": row.node,
            "started_at": _instant(row.started_at),
            "finished_at": _instant(row.finished_at),
            "lateness_ms": row.lateness_ms,
            "duration_ms": row.duration_ms,
            "outcome": _without_result(row.outcome),
            "error": row.error,
            "until": _instant(row.until),
            "slots": row.slots,
        }
    else:
        running = row.state == "running"
        must |= {"reason": row.parked, "node": row.node if running else None, "finished_at": None}
        if row.parked == "group":
            must["waiting"] = "group"
        elif not running and any(wait.token == row.token for wait in story.waits.get(row.id, ())):
            pass  # it waits for its destination, or for a slot: which of them is not told
        elif running or (job := story.jobs.get(row.job)) is None or not job.grouped:  # one whose turn came still waits
            must["waiting"] = "callback" if row.open == "callback" else None
        if not running or row.due_at <= story.ledger.now:
            must["status"] = "EXECUTING" if running else "PENDING"
    must["attempts"] = [
        {
            "attempt": attempt.attempt,
            "node": attempt.node,
            "started_at": _instant(attempt.started_at),
            "finished_at": _instant(attempt.finished_at),
            "outcome": attempt.outcome,
            "error": attempt.error,
            "claimed_at": _claimed_at(story, row, place, attempt.attempt),
        }
        for place, attempt in enumerate(_shown(row))
    ]
    if wrong := _differences(row.view, must):
        yield Violation(kind="answer", text=f"{row.id} is shown with {'; '.join(wrong)}")


def _claimed_at(story: Story, row: Entry | Live, place: int, token: int) -> str | None:
    """The database's time of the claim. Of work that goes on without its node it may be missing: nobody held it."""
    turn, job = story.lives.turns.get(row.id, {}).get(token), story.jobs.get(row.job)
    attempts: list[dict[str, Any]] = (row.view or {}).get("attempts", [])
    shown: str | None = attempts[place].get("claimed_at") if place < len(attempts) else None
    if turn is None or (shown is None and job is not None and job.later):
        return shown
    return _instant(turn.claim.db)


def _shown(row: Entry | Live) -> list[Attempt]:
    """What was skipped has not begun: no attempt is shown for it, but those before it."""
    if isinstance(row, Entry) and row.status == "skipped":
        return list(row.attempts)
    return told(row)


def _without_result(outcome: dict[str, Any] | None) -> dict[str, Any] | None:
    """What a list shows of it: the result is in the run alone."""
    return None if outcome is None else {name: value for name, value in outcome.items() if name != "result"}


def _job(story: Story, job: JobStory, row: Job) -> Iterator[Violation]:
    """Its state, its next run, and the version that its changes add up to."""
    view, cursor = row.view, next((live for live in job.live if live.cursor), None)
    if view is None:
        yield Violation(kind="answer", text=f"job {job.id} can't be read")
        return
    versions = story.lives.versions.get(job.id, [])
    must: dict[str, Any] = {"state": row.state, "version": row.version}
    waiting = [
        live.due_at
        for live in job.live
        if live.kind == "scheduled"
        and live.parked is None
        and (live.cursor or (not live.tries and live.due_at > story.ledger.now))
    ]
    must["next_run"] = _instant(min(waiting, default=None)) if row.state != "paused" else None
    if cursor is not None and cursor.parked is None and row.state == "active" and view.get("next_run") is None:
        yield Violation(kind="answer", text=f"job {job.id} is shown without a next run, it is {cursor.id}")
    if wrong := _differences(view, must):
        yield Violation(kind="answer", text=f"job {job.id} is shown with {'; '.join(wrong)}")
    if versions and row.version != versions[-1].number:
        text = f"job {job.id} is at version {row.version}, its changes make {versions[-1].number}"
        yield Violation(kind="answer", text=text)


def _statistics(job: JobStory, row: Job) -> Iterator[Violation]:
    if any(is_one_off(segment.schedule) for segment in job.segments) or row.view is None:
        return
    must, has = totals_of(job.entries), row.stats
    if has is None:
        if must.runs:
            yield Violation(kind="stats", text=f"job {job.id} has no statistics, and {must.runs} runs have ended")
        return
    if (has.runs, has.failures, has.timed, has.duration_ms) != (must.runs, must.failures, must.timed, must.duration_ms):
        yield Violation(kind="stats", text=f"job {job.id} has the statistics {has}, its ledger {must}")
    last = next((entry for entry in job.entries if entry.id == has.last_run_id), None)
    if last is None or last.status != has.last_status:
        yield Violation(kind="stats", text=f"job {job.id}: its last run is {has.last_run_id} ({has.last_status})")
    shown = row.view.get("stats", {})
    average = round(must.duration_ms / must.timed, 3) if must.timed else None
    wrong = _differences(
        shown,
        {
            "runs": must.runs,
            "failures": must.failures,
            "avg_duration_ms": average,
            "last_status": None if has.last_status is None else has.last_status.upper(),
        },
    )
    if wrong:
        yield Violation(kind="stats", text=f"job {job.id} is shown with {'; '.join(wrong)}")


def _spec(story: Story, job: JobStory) -> Iterator[Violation]:
    """What users wished for is what is kept, and what was sent."""
    versions = story.lives.versions.get(job.id, [])
    if versions and job.row is not None:
        wished, kept = versions[-1].spec, job.row.spec
        wrong = [
            name
            for name in ("schedule", "target", "policy", "params", "paused", "key")
            if kept.get(name) != wished.get(name)
        ]
        if wrong:
            yield Violation(kind="answer", text=f"job {job.id} keeps another {', '.join(wrong)} than was asked for")
    for send in job.sends:
        turn = story.lives.turns.get(send.run, {}).get(send.token)
        version = None if turn is None else story.lives.in_force(job.id, turn.place)
        if send.asked is None or version is None:
            continue
        must = {
            "target": version.spec["target"],
            "params": version.spec.get("params", {}),
            "key": version.spec.get("key"),
        }
        slot = int(send.run.split("-")[1])
        own = {name: value for name, value in send.asked.get("params", {}).items() if name != "trigger"}
        if wrong := _differences({**send.asked, "params": own}, must | {"slot": slot}):
            yield Violation(kind="sent", text=f"{send.run} was called with {'; '.join(wrong)}")


def _dead_letters(story: Story) -> Iterator[Violation]:
    """Open are those that failed, whose job is there, and that nobody has driven again."""
    there = {job.id for job in story.ledger.jobs}
    rows: list[Entry | Live] = [*story.ledger.entries, *story.ledger.live]
    driven = {row.parent for row in rows if row.kind == "redrive"}
    must = {e.id for e in story.ledger.entries if e.status == "failed" and e.job in there and e.id not in driven}
    for run in sorted(must.symmetric_difference(story.ledger.dead)):
        which = "is no dead letter" if run in must else "is a dead letter"
        yield Violation(kind="dead", text=f"{run} {which}; driven again: {run in driven}")
