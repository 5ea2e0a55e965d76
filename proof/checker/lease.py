"""A node whose lease ended stops what must not run twice at once, though nobody told it to or declared it lost."""

from __future__ import annotations

from proof.checker.events import Received, Recorded
from proof.checker.story import LEASE, Story
from proof.model.rules import rules_of

__all__ = ["ended_with_its_lease", "lease_ended", "stopped_with_its_lease"]

SILENT = (
    *("cut", "outage", "flaky", "slow", "late", "hang", "freeze", "freeze_at", "suspend"),
    *("silence", "delay", "refuse", "short_outage", "db_restart", "disk_full", "failover"),
)
"""What keeps beats from coming through: in the simulation, and beside it in chaos."""
NO_BEAT = LEASE - 1000 - 1000 - 1500
"""ms of it at least: the lease ends a second before its time, the last good beat may have been sent a second before the
trouble, and one that hangs is given up after 1.5 s."""


def lease_ended(story: Story, node: str | None, begin: int, end: int) -> bool:
    """Whether the lease of this node may have run out between these true times."""
    silent = 0
    for fault in story.faults:
        if fault.what in SILENT and fault.node in (node, None):
            silent += max(0, min(fault.until, end) - max(fault.at, begin - LEASE))
    return silent >= NO_BEAT


def stopped_with_its_lease(story: Story, send: Received, end: int) -> bool:
    """Whether the ledger says that this attempt was stopped, and its lease can have been the reason."""
    stopped = any((r.run, r.token) == (send.run, send.token) and _may_be_stopped(r) for r in story.records)
    return stopped and _laned(story, send.run) and lease_ended(story, send.node, send.at, end) and _counted(story)


def _may_be_stopped(record: Recorded) -> bool:
    """Of chaos it is not known how an attempt ended, only that somebody recorded it."""
    return record.outcome in ("interrupted", None)


def ended_with_its_lease(story: Story, run: str, token: int, node: str, claimed: int) -> bool:
    """Whether an attempt claimed then is recorded as stopped, sent or not, and its node's lease had run out."""
    return _laned(story, run) and any(
        (record.run, record.token) == (run, token)
        and _may_be_stopped(record)
        and lease_ended(story, node, claimed, record.at)
        and _counted(story)
        for record in story.records
    )


def _laned(story: Story, run: str) -> bool:
    """Only what may not overlap, or has a limit of concurrent runs, is stopped with the lease; the policy may have been
    another one before an edit."""
    job = story.jobs.get(int(run.partition("-")[0]))
    if job is None:
        return False
    specs = [job.made.spec, *(version.spec for version in story.lives.versions.get(job.id, ()))]
    return any(rules_of(spec).laned for spec in specs)


def _counted(story: Story) -> bool:
    return story.excuse("what may not overlap was stopped with the lease of its node")
