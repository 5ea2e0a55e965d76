"""P2 and idempotency: what was acknowledged is there, once, however often it was asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from proof.checker.events import Refused
from proof.checker.story import SETTLE, Story, Violation

__all__ = ["check_requests"]


def check_requests(story: Story) -> Iterator[Violation]:
    yield from _one_job_each(story)
    yield from _one_answer_each(story)
    for job in story.jobs.values():
        asked = {run for act in job.acts if act.verb in ("run", "backfill", "redrive") for run in act.runs}
        for run in sorted(asked):
            if run not in story.entries and run not in story.live:
                yield Violation(kind="lost", text=f"the run {run} was promised and has no row")
        manual = {row.id for row in job.rows if row.kind == "manual"}
        for run in sorted(manual - asked):
            yield Violation(kind="doubled", text=f"the run {run} was made, and nobody was told of it")


def _one_answer_each(story: Story) -> Iterator[Violation]:
    """A job that can't be made, because its time has passed, is made by no other request under the same key either."""
    made = {event.mark: event.job for event in story.made}
    made |= {job.spec["params"]["mark"]: job.id for job in story.ledger.jobs if job.spec.get("params", {}).get("mark")}
    for job, versions in story.lives.versions.items():
        for version in versions[:1]:
            made.setdefault(version.spec.get("params", {}).get("mark"), job)
    for refused in (event for event in story.history if isinstance(event, Refused)):
        if refused.mark not in made:
            continue
        if any(step.by_ms < 0 and abs(step.at - refused.until) <= SETTLE for step in story.steps):
            story.excuse("the database's clock was set back: a time that had passed had not come yet")
        else:
            said = f"was refused at {refused.until} ({refused.why})"
            text = f"request {refused.mark} {said}, and made job {made[refused.mark]}"
            yield Violation(kind="two_answers", text=text)


def _one_job_each(story: Story) -> Iterator[Violation]:
    told: dict[int, int] = {}
    for made in story.made:
        if told.setdefault(made.mark, made.job) != made.job:
            yield Violation(kind="doubled", text=f"request {made.mark} was answered with two jobs")
    marks = Counter(job.spec.get("params", {}).get("mark") for job in story.ledger.jobs)
    for mark, times in marks.items():
        if times > 1 and mark is not None:  # a timer has no params to be marked by
            yield Violation(kind="doubled", text=f"request {mark} made {times} jobs")
    there = {job.id for job in story.ledger.jobs}
    for made in story.made:
        if made.job not in there and story.jobs[made.job].deleted is None:
            yield Violation(kind="lost", text=f"job {made.job} was acknowledged and is gone")
