"""Chains: each end of a run starts the jobs that its job names for it, each once; and nothing else starts any."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from proof.checker.ledger import Entry, Live
from proof.checker.story import SETTLE, JobStory, Story, Violation

__all__ = ["check_chains"]


def check_chains(story: Story) -> Iterator[Violation]:
    if not story.ledger.whole:
        return
    started: dict[str, list[Entry | Live]] = defaultdict(list)
    rows: list[Entry | Live] = [*story.ledger.entries, *story.ledger.live]
    for row in rows:
        if row.kind == "chain":
            started[row.parent or ""].append(row)
    jobs = {job.spec.get("key"): job.id for job in story.ledger.jobs}
    for job in story.jobs.values():
        for entry in job.entries:
            followers = started.pop(entry.id, [])
            yield from _followed(story, job, entry, followers, jobs)
            for row in followers:
                yield from _told(story, entry, row)
    for parent, strays in started.items():
        names = ", ".join(row.id for row in strays)
        yield Violation(kind="chain", text=f"{names} followed {parent or 'nobody'}, which has not ended")


def named(spec: dict[str, Any], status: str) -> list[str]:
    """Who follows an end, by what users asked for."""
    field = {"done": "on_success", "failed": "on_failure"}.get(status)
    return [] if field is None else [*spec.get(field, ()), *spec.get("on_finish", ())]


def _followed(
    story: Story, job: JobStory, entry: Entry, rows: list[Entry | Live], jobs: dict[str | None, int]
) -> Iterator[Violation]:
    must = Counter(jobs.get(key, 0) for key in named(job.made.spec, entry.status))
    there = Counter(row.job for row in rows)
    if extra := there - must:
        text = f"{entry.id} ({entry.status}) started jobs {sorted(extra.elements())} too often"
        yield Violation(kind="chain", text=text)
    missing = must - there
    if not missing:
        return
    if any(event.verb == "delete" for _, event in story.lives.wrote.get(job.id, ())):
        story.excuse("a job that was deleted starts nobody")
    elif entry.finished_at > story.ledger.now - SETTLE:
        story.excuse("ended too late for those that follow")
    else:
        text = f"{entry.id} ({entry.status}, {entry.reason}) did not start jobs {sorted(missing.elements())}"
        yield Violation(kind="chain", text=text)


def _told(story: Story, entry: Entry, row: Entry | Live) -> Iterator[Violation]:
    """What a run is called with says which run ended, and how."""
    if row.slot != entry.finished_at:
        yield Violation(kind="chain", text=f"{row.id} follows {entry.id}, which ended at {entry.finished_at}")
    must = {"run_id": entry.id, "job_id": entry.job, "status": entry.status.upper(), "error": entry.error}
    for send in story.sends.get(row.id, ()):
        trigger = (send.asked or {}).get("params", {}).get("trigger") or {}
        wrong = [
            f"{name} {trigger.get(name)!r}, not {value!r}" for name, value in must.items() if trigger.get(name) != value
        ]
        if wrong:
            yield Violation(kind="chain", text=f"{row.id} was called with {'; '.join(wrong)}")
