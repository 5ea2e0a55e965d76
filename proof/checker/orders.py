"""What a committed verb forbids from that moment on, told by the order of the commits: no time is allowed for.

After a cancel the run is claimed no more, after a delete nothing of the job is, between a pause and the resume nothing
but what was started by hand. What was claimed before is another matter: `verbs` says how long that may still start.
Work that outlives its node is adopted all the same, to be followed or killed, but not begun.
"""

from __future__ import annotations

from collections.abc import Iterator

from proof.checker.events import Wrote
from proof.checker.lives import Turn
from proof.checker.story import SLACK, JobStory, Story, Violation

__all__ = ["check_orders"]

STOPPED = 1250
"""ms within which what runs is stopped after a cancel: its node reads the order, ends it, records it."""


def check_orders(story: Story) -> Iterator[Violation]:
    if not story.ledger.whole:
        return
    for job in story.jobs.values():
        wrote = story.lives.wrote.get(job.id, [])
        turns = [
            turn
            for row in job.rows
            for turn in story.lives.turns.get(row.id, {}).values()
            if turn.send is not None or not (job.outlives and story.lives.adopts(turn.run, turn.token))
        ]
        yield from _claimed_while_forbidden(turns, wrote, _ended_while_paused(job, wrote))
        yield from _claimed_while_frozen(story, turns)
        yield from _blamed(story, job)
        for place, event in wrote:
            if event.verb == "cancel":
                yield from _cancelled(story, job, place, event)
    for run in story.lives.skips:
        yield from _left_out(story, run)


def _ended_while_paused(job: JobStory, wrote: list[tuple[int, Wrote]]) -> int | None:
    """The place of the cancel or skip that took its last slot from a paused job, if it has been ended since: then it is
    not paused any more, and what is driven again runs."""
    if job.row is None or job.row.state != "ended":
        return None
    last = max((row.slot for row in job.rows if row.kind == "scheduled"), default=None)
    for place, event in reversed(wrote):
        if event.verb in ("cancel", "skip") and event.runs == [f"{job.id}-{last}"]:
            return place
        if event.verb in ("pause", "resume", "edit", "delete", "undelete"):
            return None
    return None


def _claimed_while_forbidden(
    turns: list[Turn], wrote: list[tuple[int, Wrote]], ended: int | None
) -> Iterator[Violation]:
    for turn in turns:
        state = None
        for place, event in wrote:
            if place > turn.place:
                break
            if place == ended:
                state = None
            elif event.verb == "delete":
                state = "delete"
            elif event.verb in ("pause", "undelete") and (event.view or {}).get("state") == "paused":
                state = "pause"
            elif event.verb in ("resume", "edit", "create", "undelete") and (event.view or {}).get("state") in (
                "active",
                "ended",
            ):
                state = None
        if state == "delete" or (state == "pause" and "-m" not in turn.run):
            text = f"{turn.run} was claimed with token {turn.token} at {turn.claim.at}, after the {state}"
            yield Violation(kind="after_" + state, text=text)


def _claimed_while_frozen(story: Story, turns: list[Turn]) -> Iterator[Violation]:
    """While everything is paused nothing is claimed but what was started by hand."""
    for (begin, froze), over in story.lives.frozen():
        end = 2**62 if over is None else over[0]
        for turn in turns:
            if begin < turn.place < end and "-m" not in turn.run:
                text = f"{turn.run} was claimed at {turn.claim.at}, and everything is paused since {froze.at}"
                yield Violation(kind="after_freeze", text=text)


def _left_out(story: Story, run: str) -> Iterator[Violation]:
    """A slot that a user left out has its row, says so, and is claimed by nobody; one that was taken back is not."""
    verbs, row = story.lives.skips[run], story.entries.get(run)
    says = row is not None and row.status == "skipped" and row.reason == "skipped"
    if says != (verbs[-1][1].verb == "skip"):
        where = "has no row" if row is None else f"is {row.status} ({row.reason})"
        yield Violation(kind="after_skip", text=f"{run} {where} after the {verbs[-1][1].verb} at {verbs[-1][1].at}")
    for turn in story.lives.turns.get(run, {}).values():
        before = [event.verb for place, event in verbs if place < turn.place]
        if before and before[-1] == "skip":
            yield Violation(kind="after_skip", text=f"{run} was claimed at {turn.claim.at}, and is left out")


def _cancelled(story: Story, job: JobStory, place: int, event: Wrote) -> Iterator[Violation]:
    (run,) = event.runs
    turns = story.lives.turns.get(run, {})
    for turn in turns.values():
        if turn.place > place and not (job.outlives and story.lives.adopts(run, turn.token)):
            yield Violation(kind="after_cancel", text=f"{run} was claimed at {turn.claim.at}, after it was cancelled")
    if job.outlives and len(turns) > 1:
        story.excuse("whoever adopts a cancelled run has to stop it first")
        return
    row = story.entries.get(run)
    if row is None:
        if run not in story.live:
            yield Violation(kind="lost", text=f"{run} was cancelled and has no row")
        elif story.ledger.at - event.at > STOPPED and story.quiet(event.at - 5000, story.ledger.at):
            yield Violation(kind="after_cancel", text=f"{run} was cancelled at {event.at} and still lives")
        return
    if row.status == "cancelled":
        return
    ended = [turn.recorded.at for turn in turns.values() if turn.recorded is not None and turn.token == row.token]
    late = max(ended, default=event.at) - event.at
    if late <= STOPPED + SLACK:
        return  # it ended by itself before its node had read the order
    if story.quiet(event.at - 5000, event.at + late):
        text = f"{run} was cancelled at {event.at} and is {row.status} {late} ms after that"
        yield Violation(kind="after_cancel", text=text)
    else:
        story.excuse("something was wrong while a run was to be stopped")


def _blamed(story: Story, job: JobStory) -> Iterator[Violation]:
    """Who is said to have cancelled a run is who did: a user, a newer slot, an edit, a delete."""
    verbs = {event.verb for _, event in story.lives.wrote.get(job.id, ())}
    for entry in job.entries:
        if entry.reason == "skipped" and not story.lives.skips.get(entry.id):
            yield Violation(kind="blamed", text=f"{entry.id} says that a user left it out, and nobody did")
        if entry.status != "cancelled":
            continue
        said = f"{entry.reason} {entry.error}"
        by_user = entry.reason == "cancelled" or "by a user" in said
        if by_user and not story.lives.cancels.get(entry.id):
            yield Violation(kind="blamed", text=f"{entry.id} says {said!r}, and no user cancelled it")
        if entry.reason in ("deleted", "the job was deleted", "the job is gone") and "delete" not in verbs:
            yield Violation(kind="blamed", text=f"{entry.id} says {said!r}, and nobody deleted its job")
        if entry.reason == "rescheduled" and "edit" not in verbs:
            yield Violation(kind="blamed", text=f"{entry.id} says {said!r}, and nobody changed its job")
