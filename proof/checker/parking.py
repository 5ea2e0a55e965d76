"""A receiver that is gone: the job whose run was told so is paused, once, soon, and only if it is still the same job.

The park is a commit of the system's, not of a user's; from then on it is a pause like any other (`orders`, `verbs`).
"""

from __future__ import annotations

from collections.abc import Iterator

from proof.checker.events import Wrote
from proof.checker.lives import Turn, Version
from proof.checker.story import LEASE, SETTLE, SLACK, JobStory, Story, Violation
from proof.checker.verbs import FRESH, PROMISED
from proof.oracle.slots import is_one_off

__all__ = ["check_parking"]

HEARD = ("ok", "error", "accepted")
"""Outcomes of attempts whose answer came in time."""


def check_parking(story: Story) -> Iterator[Violation]:
    if not story.ledger.whole:
        return
    for job in story.jobs.values():
        parks = [(place, event) for place, event in story.lives.wrote.get(job.id, ()) if event.by is not None]
        yield from _unwarranted(story, job, parks)
        for row in job.rows:
            for turn in story.lives.turns.get(row.id, {}).values():
                yield from _left_running(story, job, turn)
        for place, event in parks:
            yield from _sent_after(story, job, place, event)


def _told_to_stop(turn: Turn) -> bool:
    """The receiver said so, and its answer was recorded."""
    heard = turn.recorded is not None and turn.recorded.outcome in HEARD
    return heard and turn.send is not None and turn.send.parks


def _unwarranted(story: Story, job: JobStory, parks: list[tuple[int, Wrote]]) -> Iterator[Violation]:
    seen: set[str] = set()
    for place, event in parks:
        run = str(event.by)
        if run in seen:
            yield Violation(kind="parked_twice", text=f"job {job.id} was parked twice for {run}")
        seen.add(run)
        turns = [turn for turn in story.lives.turns.get(run, {}).values() if _told_to_stop(turn) and turn.place < place]
        if not turns:
            yield Violation(kind="parked_for_nothing", text=f"job {job.id} was parked for {run}, which nobody said")
        elif all(_changed(story, job, turn.place, place) for turn in turns):
            text = f"job {job.id} was parked at {event.at} for {run}, which was sent before it was changed"
            yield Violation(kind="parked_for_nothing", text=text)


def _changed(story: Story, job: JobStory, begin: int, end: int) -> bool:
    return any(begin < version.place < end for version in story.lives.versions.get(job.id, ()))


def _left_running(story: Story, job: JobStory, turn: Turn) -> Iterator[Violation]:
    if not _told_to_stop(turn) or turn.recorded is None:
        return
    at = turn.recorded.at
    bound = PROMISED + SLACK if story.quiet(at - LEASE, at + PROMISED + SLACK) else SETTLE
    if story.ledger.at < at + bound:
        return
    since = [version for version in story.lives.versions.get(job.id, ()) if version.place > turn.place]
    if any(version.at <= at + bound for version in since):  # parked, or changed by somebody
        return
    in_force = story.lives.in_force(job.id, turn.place)
    if in_force is None or _needs_no_park(story, job, in_force, at + bound):
        return
    yield Violation(kind="not_parked", text=f"{turn.run} was told to stop at {at}, and its job goes on")


def _needs_no_park(story: Story, job: JobStory, version: Version, until: int) -> bool:
    """It was paused or gone, or has nothing left to fire."""
    if version.spec.get("paused") or is_one_off(version.spec["schedule"]):
        return True
    if any(event.verb == "delete" and event.at <= until for _, event in story.lives.wrote.get(job.id, ())):
        return True
    return not {"count", "end"}.isdisjoint(version.spec["schedule"]) and not _fired_after(story, job, version, until)


def _fired_after(story: Story, job: JobStory, version: Version, until: int) -> bool:
    """Whether it had slots left: one was claimed later, with nothing changed."""
    turns = [turn for row in job.rows if row.kind == "scheduled" for turn in story.lives.turns.get(row.id, {}).values()]
    return any(turn.claim.at > until and story.lives.in_force(job.id, turn.place) is version for turn in turns)


def _sent_after(story: Story, job: JobStory, place: int, park: Wrote) -> Iterator[Violation]:
    later = [event.at for after, event in story.lives.wrote.get(job.id, ()) if after > place and event.verb != "cancel"]
    until = min(later, default=2**62)
    for send in job.sends:
        if not park.at < send.at < until or "-m" in send.run:
            continue
        calm, late = story.quiet(park.at - LEASE, send.at), send.at - park.at
        if late > (PROMISED + SLACK if calm else FRESH + SLACK):
            yield Violation(kind="after_park", text=f"{send.run} was sent {late} ms after its job was parked")
        elif late > PROMISED + SLACK:
            story.excuse("sent within a lease after a park, while something was wrong")
