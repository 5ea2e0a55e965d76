"""Work that outlives its node: begun once for each try, ended by nobody but who may, and recorded as what it was."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from proof.checker.events import Killed, Received
from proof.checker.ledger import Entry, Live
from proof.checker.story import SLACK, JobStory, Story, Violation

__all__ = ["check_outlives"]

ADOPTED = 15_000
"""ms within which somebody adopts what goes on, if nothing is wrong: all nodes reach it."""
FAILED = ("error", "timeout", "unknown")


def check_outlives(story: Story) -> Iterator[Violation]:
    killed: dict[tuple[str, int], Killed] = {}
    for event in story.history:
        if isinstance(event, Killed):
            killed.setdefault((event.run, event.of), event)
    for job in story.jobs.values():
        if not job.outlives:
            continue
        for row in job.rows:
            begun = [send for send in story.sends.get(row.id, ()) if send.of is not None]
            yield from _once(story, job, row, begun)
            yield from _ended(story, job, row, begun, killed)
            if (
                isinstance(row, Live)
                and row.open == "adopt"
                and story.quiet(story.ledger.at - ADOPTED, story.ledger.at)
            ):
                yield Violation(kind="stuck", text=f"{row.id}: its work goes on, and nobody has adopted it")
        if job.alone:
            yield from _one_at_a_time(story, job, killed)


def _once(story: Story, job: JobStory, row: Entry | Live, begun: list[Received]) -> Iterator[Violation]:
    tries = [send.of for send in begun]
    if len(tries) != len(set(tries)):
        yield Violation(kind="repeated", text=f"{row.id} was begun twice in one try: {tries}")
    versions = story.lives.versions.get(job.id, [])
    if len(begun) > 1 and versions and all(version.rules.at_most_once for version in versions):
        yield Violation(kind="at_most_once", text=f"{row.id} was begun {len(begun)} times")
    failed = sum(attempt.outcome in FAILED for attempt in row.attempts)
    if len(row.attempts) < 20 and max((of or 0 for of in tries), default=0) > failed + 1:
        yield Violation(kind="repeated", text=f"{row.id} was begun in the tries {tries}, and {failed} had failed")


def _ended(
    story: Story, job: JobStory, row: Entry | Live, begun: list[Received], killed: dict[tuple[str, int], Killed]
) -> Iterator[Violation]:
    for send in begun:
        kill = killed.get((row.id, send.of or 0))
        if kill is not None and (why := _unwanted(story, job, row, send, kill)) is not None:
            yield Violation(kind="killed", text=f"{row.id} was killed ({kill.why}) at {kill.at}: {why}")
    if any(send.of is None for send in story.sends.get(row.id, ())):
        if begun:  # else it is judged as what its job calls now (`outside_rows`)
            story.excuse("its target was changed between two tries: its work went on without its node, or did not")
    elif isinstance(row, Entry) and row.status == "done":
        last = [send for send in begun if send.of == row.tries]
        if not last or last[0].answer != "ok" or (row.id, row.tries) in killed:
            yield Violation(kind="result", text=f"{row.id} is done in try {row.tries}; begun: {begun}")


def _unwanted(story: Story, job: JobStory, row: Entry | Live, send: Received, kill: Killed) -> str | None:
    """Why it should not have been killed; None: it should."""
    versions = story.lives.versions.get(job.id, [])
    if kill.why == "cancelled":
        replaced = any(version.rules.overlap == "replace" for version in versions)
        return None if replaced or story.lives.cancels.get(row.id) else "nobody wanted it stopped"
    if kill.why == "timeout":
        timeouts = [version.rules.timeout for version in versions if version.rules.timeout is not None]
        lasted = kill.at - send.at
        return None if timeouts and lasted >= min(timeouts) - SLACK else f"it had lasted {lasted} ms"
    if isinstance(row, Live) and row.tries < (send.of or 0):
        return "its try was not over"
    return None


def _one_at_a_time(story: Story, job: JobStory, killed: dict[tuple[str, int], Killed]) -> Iterator[Violation]:
    spans = []
    for row in job.rows:
        for send in story.sends.get(row.id, ()):
            if send.of is not None:
                kill = killed.get((row.id, send.of))
                end = send.at + send.took if kill is None else min(kill.at, send.at + send.took)
                spans.append((send.at, end, row.id))
    for (_, end, run), (begin, _, other) in pairwise(sorted(spans)):
        if run != other and begin < end:
            yield Violation(kind="overlap", text=f"{other} was begun at {begin}, while {run} went on until {end}")
