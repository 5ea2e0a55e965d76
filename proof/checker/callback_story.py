"""What receivers told later, and what the database made of it, run by run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from proof.checker.events import CalledBack, Claimed, Completed, History
from proof.checker.ledger import Entry, Live

__all__ = ["CallbackStory"]


class CallbackStory:
    def __init__(self, history: History, rows: Iterable[Entry | Live]) -> None:
        self.called = [event for event in history if isinstance(event, CalledBack)]
        self.completed: dict[str, list[Completed]] = defaultdict(list)
        self.tokens: dict[tuple[str, int], int] = {}  # of (run, try): the last claim before its callback was written
        claimed: dict[str, int] = {}
        for event in history:
            if isinstance(event, Claimed):
                claimed[event.run] = event.token
            elif isinstance(event, Completed):
                self.completed[event.run].append(event)
                if event.wrote:
                    self.tokens.setdefault((event.run, event.of), claimed.get(event.run, 0))
        self._too_late = {
            (row.id, attempt.try_number)
            for row in rows
            for attempt in row.attempts
            if attempt.completion == "timeout" and attempt.outcome == "timeout"
        }

    def wrote(self, run: str) -> list[Completed]:
        """The callbacks that ended a try of it, in the order of their commits."""
        return [event for event in self.completed.get(run, ()) if event.wrote]

    def too_late(self, run: str, of: int) -> bool:
        """Whether this try of it was accepted, and no callback came in time."""
        return (run, of) in self._too_late

    def gave_up(self, run: str, of: int) -> bool:
        """Whether this try failed after it was accepted: by its callback, or because none came."""
        if self.too_late(run, of) or any(event.of == of and event.told != "done" for event in self.wrote(run)):
            return True
        if self.completed:
            return False
        return any((call.run, call.of) == (run, of) and call.told != "done" for call in self.called)  # no diary
