"""What several users made of one job at once, from the database's diary: which schedule was in force from when on, in
which order the verbs were carried out, and whether anybody still waited for them.

A verb whose client has gone writes nothing. So each version must have been asked for by a request that was under way at
that moment, or a moment before: by one that was answered, or by one that was given up only then.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from proof.chaos.harm import Harm
from proof.checker.events import Changed, History, Wrote
from proof.checker.story import SLACK, Story, Violation
from proof.model.rules import rules_of
from proof.oracle.slots import duration_of

__all__ = ["Request", "carried_out_late", "in_order", "not_as_asked"]

UNDER_WAY = 1500
"""ms that a transaction may take which had begun when its client went."""
ON_THE_WAY = ("silence", "delay", "refuse", "swallow_commit", "outage", "short_outage", "db_restart", "disk_full")
"""While one of these lasts a statement may be carried out long after the server gave it up."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request that may change a job, or make some: when it was sent, and answered (status) or given up (0).
    marks: of those it makes; None: of a timer."""

    job: int
    began: int
    ended: int
    status: int
    marks: list[int | None] = []


def in_order(history: History) -> History:
    """The verbs on each job in the order of their versions: an answer may be overtaken by the next verb's. What was
    answered later than a verb that came after it had been done by then."""
    by_job: dict[int, list[Changed]] = defaultdict(list)
    others: History = []
    for event in history:
        if isinstance(event, Changed):
            by_job[event.job].append(event)
        else:
            others.append(event)
    for changes in by_job.values():
        changes.sort(key=lambda change: (change.version is None, change.version or 0, change.until))
        asked = answered = 2**62
        for place in range(len(changes) - 1, -1, -1):
            asked, answered = min(asked, changes[place].at), min(answered, changes[place].until)
            changes[place] = msgspec.structs.replace(changes[place], at=asked, until=answered)
        others.extend(changes)
    others.sort(key=lambda event: event.at)
    return others


def _plain(schedule: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schedule.items() if value is not None}


def _meaning(schedule: dict[str, Any]) -> dict[str, Any]:
    """The same for "1500ms" and "1s500ms"."""
    given = {name: value for name, value in _plain(schedule).items() if (name, value) != ("tz", "UTC")}
    for name in ("every", "in"):
        if name in given:
            given[name] = duration_of(given[name])
    if "at" in given:
        given["at"] = re.sub(r"\.?0*Z$", "Z", given["at"])
    return given


def not_as_asked(story: Story) -> Iterator[Violation]:
    """What users were told was done to a job stands in the version that they were told of."""
    for job in story.jobs.values():
        versions = {version.number: version.spec for version in story.lives.versions.get(job.id, ())}
        if (first := versions.get(1)) is not None and not _holds(first, job.made.spec):
            yield Violation(kind="answer", text=f"job {job.id} was made as {first}, asked for was {job.made.spec}")
        for change in job.changes:
            kept = versions.get(change.version or 0)
            if kept is None or change.sent > 1:  # who asked twice may be told of what somebody else did meanwhile
                continue
            if change.spec is not None and not _holds(kept, change.spec):
                text = f"job {job.id}: version {change.version} is {kept}, asked for was {change.spec}"
                yield Violation(kind="answer", text=text)
            if change.state in ("active", "paused") and _paused(kept) != _expected(change, kept):
                yield Violation(kind="answer", text=f"job {job.id}: {change.verb} was answered with {kept}")


def _holds(kept: dict[str, Any], asked: dict[str, Any]) -> bool:
    """Whether asking for it once more would change nothing."""
    schedule = {**kept["schedule"], **asked.get("schedule", {})}
    policy = _patched(kept.get("policy", {}), asked.get("policy", {}))
    return _meaning(schedule) == _meaning(kept["schedule"]) and rules_of({**kept, "policy": policy}) == rules_of(kept)


def _patched(old: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    new = {**old}
    for name, value in patch.items():
        new[name] = _patched(old.get(name, {}), value) if isinstance(value, dict) else value
    return _plain(new)


def _paused(spec: dict[str, Any]) -> bool:
    return bool(spec.get("paused", False))


def _expected(change: Changed, kept: dict[str, Any]) -> bool:
    return change.verb == "pause" if change.verb in ("pause", "resume") else _paused(kept)


def carried_out_late(story: Story, requests: Sequence[Request], harms: Sequence[Harm]) -> Iterator[Violation]:
    """Each version was asked for by somebody who still waited: the first, too."""
    by_job: dict[int, list[Request]] = defaultdict(list)
    by_mark: dict[int | None, list[Request]] = defaultdict(list)
    for request in requests:
        by_job[request.job].append(request)
        for mark in request.marks:
            by_mark[mark].append(request)
    for job, wrote in story.lives.wrote.items():
        for _, event in wrote:
            if event.by is not None or event.number is None or event.verb == "cancel":
                continue
            yield from _unasked(story, event, [*by_job[job], *by_mark[mark_of(story, job)]], harms)


def mark_of(story: Story, job: int) -> int | None:
    """Of the request that made it. None: of a timer, which has no params to be marked by."""
    first = next((version.spec for version in story.lives.versions.get(job, ())), {})
    mark = first.get("params", {}).get("mark")
    return mark if isinstance(mark, int) else None


def _unasked(story: Story, event: Wrote, asked: Sequence[Request], harms: Sequence[Harm]) -> Iterator[Violation]:
    if any(one.began - SLACK <= event.at <= one.ended + UNDER_WAY for one in asked):
        return
    if not asked:
        yield Violation(kind="unasked", text=f"job {event.job}: version {event.number} ({event.verb}), by nobody")
        return
    gone = max((one.ended for one in asked if one.began <= event.at), default=0)
    what = f"job {event.job}: version {event.number} ({event.verb})"
    text = f"{what} was written {event.at - gone} ms after its client had gone"
    if any(h.what in ON_THE_WAY and h.at - SLACK <= event.at and h.until + UNDER_WAY >= gone for h in harms):
        story.excuse("a statement was still on its way when its client had gone")
    else:
        yield Violation(kind="unasked", text=text)
