"""P4 and P6 from the database's diary: tokens rise, only the newest claim's owner is heard, nobody is robbed."""

from __future__ import annotations

from collections.abc import Iterator

from proof.checker.events import Claimed, Completed, Received, Recorded
from proof.checker.story import LEASE, SLACK, Story, Violation, merged

__all__ = ["check_fences"]

AWAY = ("outage", "short_outage", "db_restart")
GAP = 2500
"""ms: an outage shorter than a watcher's own longest gap does not restart its watch."""


def check_fences(story: Story) -> Iterator[Violation]:
    owner: dict[str, tuple[str, int]] = {}
    recorded: set[tuple[str, int]] = set()
    tries: dict[tuple[str, int], int | None] = {}  # which try of a run a token was sent for
    ended: set[tuple[str, int | None]] = set()  # tries that a callback ended
    for event in story.history:
        match event:
            case Claimed():
                known = owner.get(event.run)
                if known is not None and event.token <= known[1]:
                    yield Violation(kind="token", text=f"{event.run}: token {event.token} was given after {known[1]}")
                owner[event.run] = event.node, event.token
            case Recorded():
                told = event.outcome == "accepted" and (event.run, tries.get((event.run, event.token))) in ended
                if owner.get(event.run) != (event.node, event.token) and not (told and _counted(story)):
                    text = f"{event.run}: {event.node} finished token {event.token}, owner is {owner.get(event.run)}"
                    yield Violation(kind="stale", text=text)
                if (event.run, event.token) in recorded:
                    yield Violation(kind="stale", text=f"{event.run}: token {event.token} was recorded twice")
                recorded.add((event.run, event.token))
            case Received():
                tries[event.run, event.token] = event.of or 0
                yield from _zombie(story, event)
            case Completed():
                if event.wrote:
                    ended.add((event.run, event.of))
    outages = merged((fault.at, fault.until) for fault in story.faults if fault.what in AWAY)
    for loss in story.losses.values():
        away = sum(max(0, min(end, loss.at) - max(begin, loss.at - loss.silent)) for begin, end in outages)
        if loss.silent - away < LEASE - (GAP if away else SLACK):
            yield Violation(kind="robbed", text=f"{loss.node} was declared lost {loss.silent} ms after its last beat")


def _counted(story: Story) -> bool:
    """Nothing is written for such an acceptance, whoever has claimed the run since."""
    return story.excuse("a callback had ended the try before its acceptance was recorded")


def _zombie(story: Story, send: Received) -> Iterator[Violation]:
    """Nothing is started later than a second before others may declare its node lost."""
    loss = story.losses.get(send.node or "")
    if loss is not None and send.at > loss.at + SLACK:
        yield Violation(kind="zombie", text=f"{send.run} was sent at {send.at} by {send.node}, lost at {loss.at}")
