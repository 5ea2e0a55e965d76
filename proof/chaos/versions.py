"""What several users made of one job at once, from the database's diary: which schedule was in force from when on, in
which order the verbs were carried out, and whether anybody still waited for them.

A verb whose client has gone writes nothing. So each version must have been asked for by a request that was under way at
that moment, or a moment before: by one that was answered, or by one that was given up only then.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from proof.chaos.diary import JobNote
from proof.chaos.harm import Harm
from proof.checker.events import Changed, History
from proof.checker.story import SLACK, Segment, Story, Violation
from proof.oracle.slots import duration_of, slots_of

__all__ = ["Request", "cancelled_ahead", "carried_out_late", "in_order", "schedules_in_force"]

UNDER_WAY = 1500
"""ms that a transaction may take which had begun when its client went."""
ON_THE_WAY = ("silence", "delay", "refuse", "swallow_commit", "outage", "short_outage", "db_restart", "disk_full")
"""While one of these lasts a statement may be carried out long after the server gave it up."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request on one job: when it was sent, and answered (status) or given up (0)."""

    job: int
    began: int
    ended: int
    status: int


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


def schedules_in_force(story: Story, versions: Sequence[JobNote]) -> None:
    """Also what users were never told of."""
    known: set[int] = set()
    for note in versions:
        job = story.jobs.get(note.job)
        if job is None or note.what != "update":
            continue
        if job.id not in known:
            known.add(job.id)
            job.segments = job.segments[:1]
        schedule = _plain(msgspec.json.decode(note.spec)["schedule"])
        if _meaning(schedule) != _meaning(job.segments[-1].schedule):
            before = [step.highest for step in story.steps if step.at <= note.at]
            highest = max([note.updated_at, note.db // 1000, *before])
            job.segments.append(Segment(begin=note.updated_at, highest=highest, schedule=schedule))


def cancelled_ahead(story: Story, run: str) -> bool:
    """A slot of a schedule that is no more, cancelled while it was: it has its row, however far ahead it lay."""
    entry = story.entries.get(run)
    job = None if entry is None else story.jobs.get(entry.job)
    if entry is None or job is None or entry.status != "cancelled":
        return False
    for segment, following in pairwise(job.segments):
        in_force = segment.begin <= entry.finished_at <= following.begin + SLACK
        if in_force and entry.slot in slots_of(
            segment.schedule, anchor=segment.begin, after=max(segment.begin, entry.slot - 1), until=entry.slot
        ):
            return True
    return False


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


def carried_out_late(
    story: Story, versions: Sequence[JobNote], requests: Sequence[Request], harms: Sequence[Harm]
) -> Iterator[Violation]:
    by_job: dict[int, list[Request]] = defaultdict(list)
    for request in requests:
        by_job[request.job].append(request)
    for note in versions:
        asked = by_job.get(note.job)
        if not asked or any(one.began - SLACK <= note.at <= one.ended + UNDER_WAY for one in asked):
            continue
        gone = max((one.ended for one in asked if one.began <= note.at), default=0)
        text = f"job {note.job}: version {note.version} was written {note.at - gone} ms after its client had gone"
        if any(h.what in ON_THE_WAY and h.at - SLACK <= note.at and h.until + UNDER_WAY >= gone for h in harms):
            story.excuse("a statement was still on its way when its client had gone")
        else:
            yield Violation(kind="unasked", text=text)
