"""Concurrency groups: by the database's diary never more at once than may, and nobody waits while there is room."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from proof.checker.lives import Turn
from proof.checker.story import Story, Violation

__all__ = ["check_groups", "same_group"]

WAITED = 13_000
"""ms for which there may be room before who waits is claimed: one whose turn has come is waited for for five seconds,
the duty looks every five, and a claim is a look away."""


class _Held(msgspec.Struct, frozen=True, kw_only=True):
    """From claim to record. Not sure: it was given back or lost at some time before `end`."""

    run: str
    place: int
    begin: int
    end: int
    end_place: int
    sure: bool


def check_groups(story: Story) -> Iterator[Violation]:
    if not story.ledger.whole:
        return
    jobs: dict[str, list[int]] = defaultdict(list)
    for job in story.jobs.values():
        if job.grouped and (name := _group(job.id, job.policy)) is not None:
            jobs[name].append(job.id)
    for name, members in sorted(jobs.items()):
        held = sorted((one for job in members for one in _spans(story, job)), key=lambda one: one.place)
        yield from _too_many(story, name, held)
        yield from _idle(story, name, members, held)


def same_group(story: Story, one: int, other: int) -> bool:
    names = [_group(job, story.jobs[job].policy) for job in (one, other) if job in story.jobs]
    return len(names) == 2 and names[0] is not None and names[0] == names[1]


def _group(job: int, policy: dict[str, Any]) -> str | None:
    if "concurrency" in policy:
        return str(policy["concurrency"]["group"])
    return f"job {job}" if "max_running" in policy else None


def _limit(policy: dict[str, Any]) -> int:
    return int(policy["concurrency"]["limit"] if "concurrency" in policy else policy["max_running"])


def _spans(story: Story, job: int) -> Iterator[_Held]:
    for row in story.jobs[job].rows:
        turns = [turn for _, turn in sorted(story.lives.turns.get(row.id, {}).items())]
        for place, turn in enumerate(turns):
            yield _span(story, turn, turns[place + 1] if place + 1 < len(turns) else None)


def _span(story: Story, turn: Turn, following: Turn | None) -> _Held:
    """A call that was accepted goes on after its record, and adopted work after the claim before."""
    recorded = turn.recorded
    sure = recorded is not None and recorded.outcome != "accepted"
    end, end_place = story.ledger.at, 2**62
    if sure and recorded is not None:
        end, end_place = recorded.at, 2**62
    elif following is not None:
        end, end_place = following.claim.at, following.place
    return _Held(run=turn.run, place=turn.place, begin=turn.claim.at, end=end, end_place=end_place, sure=sure)


def _too_many(story: Story, name: str, held: list[_Held]) -> Iterator[Violation]:
    """Counted is what was certainly running when another was claimed: recorded in a later millisecond."""
    for place, one in enumerate(held):
        job = int(one.run.partition("-")[0])
        version = story.lives.in_force(job, one.place)
        if version is None:
            continue
        limit = _limit(version.spec.get("policy", {}))
        others = {
            before.run for before in held[:place] if before.sure and before.end > one.begin and before.run != one.run
        }
        if len(others) >= limit:
            text = f"{one.run} was claimed at {one.begin} while {len(others)} of group {name} were running; {limit} may"
            yield Violation(kind="group", text=f"{text}: {', '.join(sorted(others))}")


def _idle(story: Story, name: str, members: list[int], held: list[_Held]) -> Iterator[Violation]:
    """Who waited for its first claim, for long, while there was room all the time."""
    limits = [
        _limit(v.spec["policy"]) for job in members for v in story.lives.versions.get(job, ()) if "policy" in v.spec
    ]
    lowest = min(limits, default=1)
    for job in members:
        for row in story.jobs[job].rows:
            first = story.lives.turns.get(row.id, {}).get(1)
            if first is None or row.kind != "scheduled":
                continue
            late = first.claim.db - row.due_at
            begin = max(first.claim.at - late, story.jobs[job].made.until)
            if first.claim.at - begin <= WAITED or not story.steady(begin - 5000, first.claim.at):
                continue
            since = _room_since(held, first.claim.at, begin, lowest)
            if first.claim.at - since <= WAITED:
                continue
            if story.lives.touched(job, since - 3500, first.claim.at) or not story.quiet(since - 5000, first.claim.at):
                story.excuse("its job was changed or something was wrong while it waited for its group")
                continue
            text = f"{row.id} waited for group {name} until {first.claim.at}, which had room from {since} on"
            yield Violation(kind="group", text=text)


def _room_since(held: list[_Held], until: int, begin: int, limit: int) -> int:
    """Since when, up to `until`, fewer were running than may, as far as anybody can tell."""
    since = begin
    for one in held:
        at_end = [other for other in held if other.begin <= one.begin < other.end]
        if one.begin < until and one.end > since and len({other.run for other in at_end}) >= limit:
            since = max(since, min(other.end for other in at_end))
    return min(since, until)
