"""What a call says of the time is the database's: receivers refuse what seems to be minutes old, or to come."""

from __future__ import annotations

from collections.abc import Iterator

from proof.checker.events import Received
from proof.checker.story import LEASE, SLACK, Story, Violation

__all__ = ["check_stamps"]

OFF = 5000
"""ms: whole seconds, and a wait for a connection. Receivers allow for minutes."""
THAWED = 1000
"""ms after a freeze in which a process sends what it had in its hands."""


def check_stamps(story: Story) -> Iterator[Violation]:
    for sends in story.sends.values():
        for send in sends:
            if send.stamp is None or abs(send.stamp - send.db) <= OFF:
                continue
            if abs(send.stamp - send.db) <= OFF + _set_lately(story, send):
                story.excuse("the database's clock had just been set when a call was stamped")
            elif send.stamp < send.db and story.fault_on(send.node, send.at - THAWED, send.at, "freeze"):
                story.excuse("stamped before its node was frozen")
            else:
                text = f"{send.run} was sent at {send.db} and says that it is {send.stamp}"
                yield Violation(kind="stamp", text=text)


def _set_lately(story: Story, send: Received) -> int:
    """By how many ms the database's clock was set while its node may not have heard of it."""
    return sum(abs(step.by_ms) for step in story.steps if 0 <= send.at - step.at <= LEASE + SLACK)
