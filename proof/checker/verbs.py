"""What a user was told holds: paused and deleted jobs start nothing more, soon after the answer; nor does any job while
everything is paused."""

from __future__ import annotations

from collections.abc import Iterator

from proof.checker.events import Changed, Received
from proof.checker.story import LEASE, LOOKAHEAD, SLACK, Story, Violation

__all__ = ["check_verbs"]

FRESH = max(LOOKAHEAD, 2000) + 250
"""ms after which what a node has read of its orders holds no more: it starts nothing before it has read them again."""
GO_ON = ("resume", "edit", "undelete")
PROMISED = 1000
"""ms after the acknowledgement, while the owner reaches the database."""


def check_verbs(story: Story) -> Iterator[Violation]:
    for job in story.jobs.values():
        for place, change in enumerate(job.changes):
            if change.verb not in ("pause", "delete") or (change.verb == "pause" and change.state == "ended"):
                continue  # who pauses a job that has ended is told that it has: what was begun goes to its end
            told = next((later.at for later in job.changes[place + 1 :] if later.verb in GO_ON), 2**62)
            until = min(told, _gone_on(story, change))
            sends = [send for send in job.sends if change.verb == "delete" or "-m" not in send.run]
            yield from _sent_between(story, sends, change.verb, change.until, until)
    for (_, froze), over in story.lives.frozen():
        until = 2**62 if over is None else over[1].at
        for job in story.jobs.values():
            sends = [send for send in job.sends if "-m" not in send.run]
            yield from _sent_between(story, sends, "freeze", froze.at, until)


def _gone_on(story: Story, change: Changed) -> int:
    """When the database took it back, whether the user who asked for that was told so or not."""
    wrote = [event for _, event in story.lives.wrote.get(change.job, ())]
    done = [place for place, event in enumerate(wrote) if event.verb == change.verb and event.at <= change.until]
    after = wrote[done[-1] + 1 :] if done else []
    return min((event.at for event in after if event.verb in ("resume", "undelete")), default=2**62)


def _sent_between(story: Story, sends: list[Received], verb: str, told: int, until: int) -> Iterator[Violation]:
    for send in sends:
        if not told < send.at < until:
            continue
        calm = story.quiet(told - LEASE, send.at)
        late = send.at - told
        if late > (PROMISED + SLACK if calm else FRESH + SLACK):
            yield Violation(kind="after_" + verb, text=f"{send.run} was sent {late} ms after the {verb} was confirmed")
        elif late > PROMISED + SLACK:
            story.excuse(f"sent within a lease after a {verb}, while something was wrong")
