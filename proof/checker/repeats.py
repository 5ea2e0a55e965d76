"""A second send of a run must be explained by what happened to the first: its answer, its node's loss or stop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from proof.checker.events import Received
from proof.checker.lease import stopped_with_its_lease
from proof.checker.story import LEASE, SLACK, JobStory, Story, Violation

__all__ = ["check_repeats", "failed"]

ALONE = ("skip", "queue")
TAKEOVER = ("kill", "kill_at", "power_cut", "freeze", "freeze_at", "suspend", "cut", "outage")


def check_repeats(story: Story) -> Iterator[Violation]:
    for job in story.jobs.values():
        if job.outlives:
            continue
        runs: dict[str, list[Received]] = defaultdict(list)
        for send in job.sends:
            runs[send.run].append(send)
        for run, sends in runs.items():
            if len(sends) > 1 and all(_at_most_once(story, job, send) for send in sends):
                text = f"{run} was sent with tokens {[send.token for send in sends]}"
                yield Violation(kind="at_most_once", text=text)
            for first, second in pairwise(sends):
                yield from _explained(story, job, first, second)
        if job.policy.get("overlap") in (ALONE if story.ledger.whole else (*ALONE, "replace")) and not job.calls_back:
            yield from _overlaps(story, job)


def _explained(story: Story, job: JobStory, first: Received, second: Received) -> Iterator[Violation]:
    if second.token == first.token:
        yield Violation(kind="repeated", text=f"{first.run} was sent twice with token {first.token}")
    elif second.token < first.token:
        yield Violation(kind="overtaken", text=f"{first.run} was sent with token {second.token} after {first.token}")
    elif not failed(story, job, first) and not _taken_over(story, first, second):
        text = f"{first.run}: token {first.token} answered {first.answer} at {first.at}, {second.token} at {second.at}"
        yield Violation(kind="repeated", text=text)


def failed(story: Story, job: JobStory, send: Received) -> bool:
    """The sender had reason to try again."""
    if send.answer in ("error", "cut") or send.took > story.timeout(job, send) - SLACK:
        return True
    return job.calls_back and send.of is not None and story.callbacks.gave_up(send.run, send.of)


def _at_most_once(story: Story, job: JobStory, send: Received) -> bool:
    rules = story.rules_of(job, send)
    return job.at_most_once if rules is None else rules.at_most_once


def _taken_over(story: Story, first: Received, second: Received) -> bool:
    begin, end = first.at - SLACK, second.at
    if story.fault_on(first.node, begin, end, "stop") or stopped_with_its_lease(story, first, end):
        return True
    if story.losses or story.claims:  # the database's diary says who was declared lost
        return story.lost(first.node, begin, end)
    return story.fault_on(first.node, first.at - 2 * LEASE, end, *TAKEOVER)


def _overlaps(story: Story, job: JobStory) -> Iterator[Violation]:
    """One run at a time, unless the first one's node was lost, or the first was cancelled. (`replace`, where it is not
    known when the caller hung up: see `overlaps`.)"""
    cancelled = {run for act in job.acts if act.verb == "cancel" for run in act.runs}
    for first, second in pairwise(job.sends):
        left = first.took if first.left is None else first.left
        busy = min(first.took, left, story.timeout(job, first)) - SLACK
        if second.run == first.run or second.at >= first.at + busy or first.run in cancelled:
            continue
        if not _taken_over(story, first, second):
            yield Violation(kind="overlap", text=f"{second.run} was sent at {second.at} while {first.run} ran")
