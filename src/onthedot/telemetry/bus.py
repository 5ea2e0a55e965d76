"""The wire between those who say what happens and those who listen."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["Event", "Subscriber", "Telemetry"]

_log = logging.getLogger("onthedot.telemetry")


class Event(msgspec.Struct, frozen=True):
    name: str
    fields: dict[str, Any]


Subscriber = Callable[[Event], None]


class Telemetry:
    """Calls each subscriber in turn, in the emitter's own thread: subscribers are quick and hand slow work on."""

    def __init__(self) -> None:
        self._subscribers: tuple[Subscriber, ...] = ()

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Listen from now on; call what is returned to stop."""
        self._subscribers = (*self._subscribers, subscriber)

        def unsubscribe() -> None:
            self._subscribers = tuple(s for s in self._subscribers if s is not subscriber)

        return unsubscribe

    @property
    def heard(self) -> bool:
        """Whether anybody listens: who says thousands of things a second need not even put them into words."""
        return bool(self._subscribers)

    def emit(self, event: str, /, **fields: Any) -> None:
        """Say that something happened. Never raises: a broken listener must not stop a firing."""
        if not self._subscribers:
            return
        said = Event(event, fields)
        for subscriber in self._subscribers:
            try:
                subscriber(said)
            except Exception:
                _log.exception("a listener failed on %s", event)
