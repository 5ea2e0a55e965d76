"""Which messages become one: many of one cause, or more than a channel may be sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

__all__ = ["MANY", "RATE", "grouped", "wait_after_failure"]

MANY = 4
"""So many incidents of one cause are told by one message."""
RATE = 20
"""Messages that a channel is sent in a minute, by all nodes together."""

_WAITS = (5_000, 15_000, 60_000, 300_000, 900_000, 3_600_000)


class _Due(Protocol):
    @property
    def event(self) -> str: ...
    @property
    def condition(self) -> str: ...
    @property
    def cause(self) -> str: ...


T = TypeVar("T", bound=_Due)


def grouped(due: Sequence[T], room: int) -> list[list[T]]:
    """One list for each message, in the order in which they came; `room` at most: what is over is in the last one."""
    by_cause: dict[tuple[str, str, str], list[T]] = {}
    for each in due:
        by_cause.setdefault((each.event, each.condition, each.cause), []).append(each)
    messages: list[list[T]] = []
    for alike in by_cause.values():
        messages += [alike] if len(alike) >= MANY else [[each] for each in alike]
    if len(messages) <= room:
        return messages
    rest = [each for message in messages[room - 1 :] for each in message]
    return [*messages[: room - 1], rest]


def wait_after_failure(tries: int) -> int:
    """ms until a message that was not delivered for the nth time is tried again."""
    return _WAITS[min(tries, len(_WAITS)) - 1]
