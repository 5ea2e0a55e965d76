"""Delivers events from emitters to subscribers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec

from onthedot.telemetry.tracing import Tracer

__all__ = ["Event", "Subscriber", "Telemetry"]

_log = logging.getLogger("onthedot.telemetry")


class Event(msgspec.Struct, frozen=True):
    name: str
    fields: dict[str, Any]


Subscriber = Callable[[Event], None]


class Telemetry:
    """Calls each subscriber in turn in the emitter's thread, so subscribers must be fast and hand off slow work."""

    def __init__(self) -> None:
        self._subscribers: tuple[Subscriber, ...] = ()
        self._only_failures: tuple[Subscriber, ...] = ()
        self.tracers: tuple[Tracer, ...] = ()  # asked once for each run: nearly always nobody
        self.heard = False  # whether any subscriber wants the events of every run: asked once or twice for each

    def subscribe(self, subscriber: Subscriber, *, only_failures: bool = False) -> Callable[[], None]:
        """Subscribe; returns a function that unsubscribes. With `only_failures`, events of runs that succeed at the
        first attempt may be left out, because building them costs more than a fast function takes."""
        self._subscribers = (*self._subscribers, subscriber)
        if only_failures:
            self._only_failures = (*self._only_failures, subscriber)
        self._count()

        def unsubscribe() -> None:
            self._subscribers = tuple(s for s in self._subscribers if s is not subscriber)
            self._only_failures = tuple(s for s in self._only_failures if s is not subscriber)
            self._count()

        return unsubscribe

    def trace(self, tracer: Tracer) -> Callable[[], None]:
        """Tell a tracer of jobs and runs; returns a function that ends it."""
        self.tracers = (*self.tracers, tracer)

        def untrace() -> None:
            self.tracers = tuple(each for each in self.tracers if each is not tracer)

        return untrace

    def _count(self) -> None:
        self.heard = len(self._subscribers) > len(self._only_failures)

    def emit(self, event: str, /, **fields: Any) -> None:
        """Emit an event. Never raises: a failing subscriber must not stop a run."""
        if not self._subscribers:
            return
        said = Event(event, fields)
        for subscriber in self._subscribers:
            try:
                subscriber(said)
            except Exception:
                _log.exception("telemetry subscriber failed on %s", event)
