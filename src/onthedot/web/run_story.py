"""A run as a story: what happened when and on which node, what it means, and what to do next. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from onthedot.model.instant import parse_rfc3339
from onthedot.model.run import AttemptView, RefusedResult, RunView
from onthedot.model.run_request import RunRequest
from onthedot.web.words import how_long, node_name, sentence

__all__ = ["TRIGGERS", "StoryEvent", "Verdict", "asked_by", "story_of", "trigger_words", "verdict_of", "waiting_words"]

LIVE = ("PENDING", "EXECUTING")
TRIGGERS = [
    ("schedule", "Schedule"),
    ("manual", "By hand"),
    ("backfill", "Backfill"),
    ("retry", "Retry"),
    ("chain", "Chain"),
]
"""What starts runs, as lists offer it for a choice."""
_DEAD = {
    "attempts": "It was tried as often as its retry policy allows.",
    "not_retryable": "Trying again would not help, so it was not tried again.",
    "max_age": "It was too old to be tried again (retry.max_age).",
    "next_slot": "The next run of the job was due, so it was not tried again (retry.until).",
    "at_most_once": "The job delivers at most once, so it was not tried again.",
    "poison": "Three nodes died while they ran it, so it was not given to another one.",
    "restored": "The store was restored from a backup. Whether the run was carried out after the backup is not known.",
    "unknown": "Its node died after it was sent. Whether it was carried out is not known, and the job delivers at most "
    "once, so it was not sent again.",
}
_SKIPPED = {
    "coalesced": "Several slots were missed, and the job catches up with the latest one only (catch_up).",
    "overlap": "A run of the job was still executing (overlap: skip).",
    "late": "It could not start in time: it was missed or had expired (catch_up, expires_in).",
    "paused": "The job was paused.",
    "excluded": "The slot was left out.",
    "deleted": "The job was deleted.",
    "restored": "The store was restored from a backup that was made before it came due; it may have run meanwhile.",
    "chain_too_long": "The chain of jobs that started it was too long.",
}
_WAITING = {
    "destination": "waits until {} can be called",
    "broker": "waits for the broker {}",
    "group": "waits for its turn: as many runs of the group {} are running as may",
    "slot": "waits for a free worker: its job or tenant has its share",
    "label": "waits: no live node has the label {}",
    "capability": "waits: no live node offers {}",
    "place": "goes on at {}, which no live node reaches",
    "callback": "was accepted, and waits for the receiver to tell how it ended",
    "check-in": "waits for its job to report",
}
_PARKED = {
    "paused": "waits until its job is resumed",
    "lane": "waits until the run before it has ended (overlap: queue)",
    "quarantined": "waits until its job, whose schedule can't be computed, is edited",
}
_ENDED = {
    "ok": ("Succeeded", "good"),
    "error": ("Failed", "bad"),
    "timeout": ("Timed out", "bad"),
    "refused": ("Refused", "bad"),
    "cancelled": ("Cancelled", "warn"),
    "interrupted": ("Given back", "warn"),
    "lost": ("Node lost", "bad"),
    "unknown": ("Outcome unknown", "bad"),
    "expired": ("Expired", "warn"),
}
_TRIGGERS = {
    "schedule": "by its schedule",
    "manual": "by hand",
    "backfill": "by a backfill",
    "retry": "as a retry",
    "chain": "by a chain",
}


class StoryEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`run_id`: another run that this is about. `after`: ms since the event before."""

    title: str
    at: str | None = None
    text: str = ""
    node: str | None = None
    tone: str = ""
    run_id: str | None = None
    after: int | None = None


class Verdict(msgspec.Struct, frozen=True):
    """What became of it, why, and what to do."""

    tone: str
    text: str
    next_step: str = ""


def trigger_words(run: RunView) -> str:
    return _TRIGGERS[run.trigger.kind]


def asked_by(run: RunView) -> str | None:
    """Who asked for it, where that is somebody: a server without keys does not know."""
    return run.trigger.actor if run.trigger.actor and run.trigger.actor != "open" else None


def waiting_words(run: RunView) -> str | None:
    """What a run that is due waits for."""
    if run.waiting is not None:
        return _WAITING.get(run.waiting, "waits for " + run.waiting).format(run.waiting_for or "")
    return _PARKED.get(run.reason or "") if run.status == "PENDING" else None


def verdict_of(run: RunView) -> Verdict:
    match run.status:
        case "DONE":
            again = "" if len(run.attempts) < 2 else f", at attempt {len(run.attempts)}"
            return Verdict("good", f"It succeeded{again}.")
        case "FAILED":
            return _failed(run)
        case "CANCELLED":
            return Verdict(
                "warn", sentence(run.error or run.reason or "It was cancelled"), "Retry it to run it after all."
            )
        case "SKIPPED":
            return _skipped(run)
    waiting = waiting_words(run)
    if waiting is not None:
        return Verdict("warn", f"It {waiting}.", _waiting_step(run))
    if run.status == "EXECUTING":
        return Verdict("", "It is running.")
    if run.next_attempt_at is not None:
        return Verdict(
            "warn", f"The last attempt failed: {sentence(run.error or 'no reason was given')} It is tried again."
        )
    return Verdict("", "It waits for its time.")


def _failed(run: RunView) -> Verdict:
    times = f"It was tried {run.tries} times. " if run.tries > 1 and run.reason != "attempts" else ""
    if run.reason == "attempts" and run.tries > 1:
        times = f"It was tried {run.tries} times, as often as its retry policy allows."
    why = times if run.reason == "attempts" and times else times + _DEAD.get(run.reason or "", "")
    return Verdict("bad", f"{sentence(run.error or 'it failed')} {why}".strip(), _next_step(run))


def _skipped(run: RunView) -> Verdict:
    many = "" if (run.slots or 1) == 1 else f"It stands for {run.slots:,} slots in a row. "
    return Verdict(
        "warn",
        f"It was not carried out. {_SKIPPED.get(run.reason or '', '')} {many}".strip(),
        "Retry it, or backfill the range, to run it after all.",
    )


def _next_step(run: RunView) -> str:
    outcome = run.outcome or {}
    code, kind = outcome.get("status_code"), outcome.get("kind")
    if isinstance(code, int):
        return _http_step(code)
    if outcome.get("exit_code") is not None:
        return "Look at its log below for what it printed before it ended, then retry it."
    steps = {
        "timeout": "Raise policy.timeout, or let the receiver answer at once and call back later. Then retry it.",
        "refused": "Change the target of the job, or have the operator allow or register it. Then retry it.",
        "lost": "Look at the log of the node, then retry it.",
        "unknown": "Find out at the receiver whether it was carried out. If it was not, retry it.",
    }
    if str(kind) in steps:
        return steps[str(kind)]
    if run.reason == "poison":
        return "Find out whether this run takes its node down (memory, crash) before you retry it."
    if run.request and run.request.url is not None:  # it was not even answered
        return "Check that the receiver runs and can be reached from the nodes, then retry it."
    return "Remove the cause, then retry it."


def _http_step(code: int) -> str:
    match code:
        case 401 | 403:
            return "Check the credentials that the job sends, then retry it."
        case 404 | 405 | 410:
            return "Check the URL and the method of the job, then retry it."
        case 408 | 425 | 429:
            return "The receiver asks for fewer calls: spread the job out, or limit its concurrency. Then retry it."
        case code if 300 <= code < 400:
            return "Use the URL that it redirects to in the job, then retry it."
        case code if code < 500:
            return (
                "Check the request below: the receiver does not accept it. Change the job, or edit and retry this run."
            )
    return "Look at the log of the receiver at that time. When it works again, retry this run."


def _waiting_step(run: RunView) -> str:
    return {
        "label": "Start a node with that label, or change what the job requires.",
        "capability": "Start a node that offers it, or change the target of the job. onthedot doctor says how a node "
        "comes to offer it.",
        "place": "Start a node that reaches it. If none does, the attempt ends when its timeout is over; what it "
        "started may still be running then.",
        "destination": "It starts by itself when the destination answers again.",
        "broker": "It starts by itself when the broker answers again.",
        "callback": "If the receiver does not call back within completion_timeout, the attempt fails.",
        "check-in": "If the job does not report within its grace time, the run has failed.",
    }.get(run.waiting or "", "It starts by itself.")


def story_of(run: RunView, nodes: Mapping[str, str]) -> list[StoryEvent]:
    """`nodes`: names by id. Newest last; what lies ahead has a time to come, or none."""
    events = [
        StoryEvent(
            title="Scheduled" if run.trigger.kind == "schedule" else "Created",
            at=run.scheduled_for,
            text=trigger_words(run) + (f", {actor}" if (actor := asked_by(run)) else ""),
            run_id=run.trigger.run_id or None,
        )
    ]
    if run.due_at != run.scheduled_for:
        events.append(
            StoryEvent(title="Due", at=run.due_at, text="that much later, by jitter or because it was started anew")
        )
    kept = len(run.attempts)
    if kept >= 20 and run.attempt > kept:
        events.append(StoryEvent(title="Earlier attempts", text="only the last 20 are kept"))
    lost = None
    for attempt in run.attempts:
        events += _attempt(run, attempt, nodes, lost)
        lost = attempt.node if attempt.outcome == "lost" else None
    events += _present(run, nodes, lost) if run.status in LIVE else _end(run)
    events += [_refused(each, nodes) for each in run.refused or ()]
    return _timed(_in_order(events))


def _attempt(run: RunView, attempt: AttemptView, nodes: Mapping[str, str], lost: str | None) -> list[StoryEvent]:
    node = node_name(attempt.node, nodes)
    events = [] if attempt.claimed_at is None else [_claimed(run, attempt.claimed_at, attempt.node, nodes, lost)]
    if attempt.started_at is not None:
        verb = "sent" if _is_webhook(run) else "started"
        events.append(StoryEvent(title=f"Attempt {attempt.attempt} {verb}", at=attempt.started_at, node=node))
    title, text, tone = _ended(run, attempt)
    return [
        *events,
        StoryEvent(title=title, at=attempt.finished_at, text=text, tone=tone, node=None if events else node),
    ]


def _claimed(run: RunView, at: str, node: str | None, nodes: Mapping[str, str], lost: str | None) -> StoryEvent:
    """`lost`: the node that had the run before and was declared lost."""
    ahead = (parse_rfc3339(run.due_at) or 0) - (parse_rfc3339(at) or 0)
    text = f"{how_long(ahead)} ahead of its time" if ahead > 0 else ""
    if lost is not None:
        text = f"from {node_name(lost, nodes)}, which was lost"
    return StoryEvent(title="Claimed" if lost is None else "Taken over", at=at, text=text, node=node_name(node, nodes))


def _ended(run: RunView, attempt: AttemptView) -> tuple[str, str, str]:
    """Title, text and tone."""
    title, tone = _ENDED.get(attempt.outcome, (attempt.outcome.capitalize(), ""))
    text = attempt.error or ""
    code = (run.outcome or {}).get("status_code") if attempt.attempt == run.attempt else None
    if code is not None and attempt.outcome in ("ok", "error"):
        return "Answered", f"status {code}" if attempt.outcome == "ok" else text or f"status {code}", tone
    if attempt.outcome == "lost":
        text = f"{text or 'the node did not renew its lease'}; what it still reports of this attempt is refused"
    return title, text, tone


def _is_webhook(run: RunView) -> bool:
    return isinstance(run.request, RunRequest) and run.request.url is not None


def _refused(late: RefusedResult, nodes: Mapping[str, str]) -> StoryEvent:
    title, _ = _ENDED.get(late.outcome, (late.outcome, ""))
    text = f"it reported attempt {late.attempt}, which another node had taken over: {title.lower()}"
    if late.error:
        text += f" ({late.error})"
    if late.started_at is not None:
        took = (parse_rfc3339(late.finished_at) or 0) - (parse_rfc3339(late.started_at) or 0)
        text += f", {how_long(took)} after its start"
    text += ". Nothing changed by it"
    return StoryEvent(
        title="Late result refused", at=late.refused_at, node=node_name(late.node, nodes), text=text, tone="warn"
    )


def _present(run: RunView, nodes: Mapping[str, str], lost: str | None) -> list[StoryEvent]:
    node = node_name(run.node, nodes)
    waiting = waiting_words(run)
    if run.status == "EXECUTING":
        claimed = [] if run.claimed_at is None else [_claimed(run, run.claimed_at, run.node, nodes, lost)]
        title = f"Attempt {run.attempt} {'was accepted' if run.waiting == 'callback' else 'runs'}"
        return [*claimed, StoryEvent(title=title, at=run.started_at, node=node, text=waiting or "", tone="now")]
    if waiting is not None:
        return [StoryEvent(title="Waits", at=run.waiting_since, text=f"It {waiting}", tone="now")]
    if run.next_attempt_at is not None:
        return [StoryEvent(title="Next attempt", at=run.next_attempt_at, tone="now")]
    if node is not None:
        said = "it starts there when it is due"
        return [StoryEvent(title="Claimed ahead of time", at=run.claimed_at, node=node, tone="now", text=said)]
    return [StoryEvent(title="Not started yet", tone="now")]


def _end(run: RunView) -> list[StoryEvent]:
    tone = {"DONE": "good", "FAILED": "bad"}.get(run.status, "warn")
    took = "" if run.duration_ms is None else f"it took {how_long(run.duration_ms)}"
    said = {"FAILED": "failed", "DONE": "done", "CANCELLED": "cancelled", "SKIPPED": "skipped"}[run.status]
    text = (
        took
        if run.status == "DONE"
        else ("a dead letter until somebody retries or discards it" if run.status == "FAILED" else "")
    )
    events = [StoryEvent(title=f"Recorded as {said}", at=run.finished_at, text=text, tone=tone)]
    return [
        *events,
        *(StoryEvent(title="Started", run_id=each, text="the job that follows") for each in run.followers or ()),
    ]


def _in_order(events: list[StoryEvent]) -> list[StoryEvent]:
    """As it happened: a run is claimed ahead of its time, and a node that was lost may report after the end. What has
    no time of its own stays where it is told."""
    last, placed = 0, []
    for nth, event in enumerate(events):
        last = last if event.at is None else parse_rfc3339(event.at) or 0
        placed.append((last, nth, event))
    return [event for _, _, event in sorted(placed, key=lambda each: each[:2])]


def _timed(events: list[StoryEvent]) -> list[StoryEvent]:
    """With the time that passed since the event before."""
    timed: list[StoryEvent] = []
    last: int | None = None
    for event in events:
        at = None if event.at is None else parse_rfc3339(event.at)
        after = None if at is None or last is None else at - last
        timed.append(msgspec.structs.replace(event, after=after))
        last = last if at is None else at
    return timed
