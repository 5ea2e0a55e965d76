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
        self._only_failures: tuple[Subscriber, ...] = ()

    def subscribe(self, subscriber: Subscriber, *, only_failures: bool = False) -> Callable[[], None]:
        """Listen from now on; call what is returned to stop. `only_failures`: runs that start and succeed at the first
        try may pass unheard, because putting each of them into words costs more than a quick function takes."""
        self._subscribers = (*self._subscribers, subscriber)
        if only_failures:
            self._only_failures = (*self._only_failures, subscriber)

        def unsubscribe() -> None:
            self._subscribers = tuple(s for s in self._subscribers if s is not subscriber)
            self._only_failures = tuple(s for s in self._only_failures if s is not subscriber)

        return unsubscribe

    @property
    def heard(self) -> bool:
        """Whether anybody wants to hear of every ordinary firing."""
        return len(self._subscribers) > len(self._only_failures)

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
