"""What an acknowledged verb forbids: no claim after a pause, a delete, a cancel. And what a node says of time-outs.

A claim of a job's next run locks the job, as a verb does; others (retries, one-offs) don't, and may be committed while
the verb still waits for its commit. So only what was claimed after the answer is judged, and, where nobody got one,
what was claimed long after the change was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proof.checker.lives import Turn
from proof.checker.story import SLACK, JobStory, Story, Violation

__all__ = ["claimed_after", "gave_up_early"]

COMMITTED = 10_000
"""ms after which what was written is committed, or never will be."""


def claimed_after(story: Story) -> Iterator[Violation]:
    for job in story.jobs.values():
        turns = [turn for row in job.rows for turn in story.lives.turns.get(row.id, {}).values()]
        cancelled = {run: act.until for act in job.acts if act.verb == "cancel" for run in act.runs}
        for turn in turns:
            verb = _forbidding(story, job, turn)
            if cancelled.get(turn.run, 2**62) + SLACK < turn.claim.at:
                verb = "cancel"
            if verb is not None:
                text = f"{turn.run} was claimed with token {turn.token} at {turn.claim.at}, after the {verb}"
                yield Violation(kind=f"after_{verb}", text=text)


def _forbidding(story: Story, job: JobStory, turn: Turn) -> str | None:
    """The last verb that was written before the claim, if it forbids that."""
    found = None
    for place, event in story.lives.wrote.get(job.id, ()):
        if place > turn.place:
            break
        if event.verb == "delete" or (event.wish is not None and event.wish.get("paused")):
            found = found or event
        elif event.wish is not None:
            found = None
    if found is None or (found.verb != "delete" and "-m" in turn.run):
        return None
    verb = "delete" if found.verb == "delete" else "pause"
    told = [c.until for c in job.changes if c.verb == verb and (verb == "delete" or c.version == found.number)]
    since = min([found.at + COMMITTED, *told])
    return verb if turn.claim.at > since + SLACK else None


def gave_up_early(story: Story, timeouts: Mapping[tuple[str, int], tuple[int, int]]) -> Iterator[Violation]:
    """An attempt that is said to have had no answer in time was given as long as the job says."""
    for (run, token), (began, ended) in timeouts.items():
        turn = story.lives.turns.get(run, {}).get(token)
        version = None if turn is None else story.lives.in_force(int(run.partition("-")[0]), turn.place)
        if turn is None or version is None or version.rules.timeout is None:
            continue
        if ended - began < version.rules.timeout - SLACK and story.steady(turn.claim.at, story.ledger.at):
            text = (
                f"{run}: token {token} was given up after {ended - began} ms, its time-out is {version.rules.timeout}"
            )
            yield Violation(kind="policy", text=text)
