"""A history that was really played, told again with one thing changed: what the checker says of that.

What a seed plays is another thing with each change of the workload. So a test says what it needs, and `first` looks for
a history that has it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import pytest

from proof.checker.events import Claimed, Event, History, Received
from proof.checker.ledger import Entry, Job, Ledger
from proof.checker.lives import Turn
from proof.checker.story import JobStory, Story
from proof.checker.verdict import check
from proof.model.rules import Rules
from proof.sim.run import record

T = TypeVar("T")

SEEDS = (7, 16, 4, 9, 3, *range(20, 60))
UNTOUCHING = {"create", "run", "backfill", "redrive"}
"""Verbs that leave the slots of a job, and what runs, as they are."""


@functools.cache
def played(seed: int, minutes: float = 4.0) -> tuple[History, Ledger, Story]:
    """Nothing goes wrong in it."""
    history, ledger, _, _ = record(seed, minutes=minutes)
    return history, ledger, Story(history, ledger)


class Retold:
    def __init__(self, seed: int = SEEDS[0]) -> None:
        history, self.ledger, self.story = played(seed)
        self.history = list(history)

    def kinds(self) -> set[str]:
        return {violation.kind for violation in check(self.history, self.ledger)[0]}

    def says(self, words: str) -> bool:
        """Whether a violation is told with these words."""
        return any(words in violation.text for violation in check(self.history, self.ledger)[0])

    def change(self, entry: Entry, *, seen: bool = True, **fields: Any) -> Retold:
        """Another row of the ledger. seen: the API shows it so, too."""
        changed = msgspec.structs.replace(entry, **fields)
        if seen and changed.view is not None:
            view = {name: value for name, value in fields.items() if name in changed.view and name != "attempts"}
            if "status" in view:
                view["status"] = view["status"].upper()
            changed = msgspec.structs.replace(changed, view={**changed.view, **view})
        entries = [changed if one.id == entry.id else one for one in self.ledger.entries]
        self.ledger = msgspec.structs.replace(self.ledger, entries=entries)
        return self

    def change_job(self, job: Job, **fields: Any) -> Retold:
        jobs = [msgspec.structs.replace(one, **fields) if one.id == job.id else one for one in self.ledger.jobs]
        self.ledger = msgspec.structs.replace(self.ledger, jobs=jobs)
        return self

    def rewrite(self, wanted: Callable[[Event], bool], **fields: Any) -> Retold:
        """Another event instead of each that is wanted."""
        assert any(wanted(one) for one in self.history)
        rewritten = [msgspec.structs.replace(one, **fields) if wanted(one) else one for one in self.history]
        self.history = sorted(rewritten, key=lambda event: event.at)
        return self

    def add(self, event: Event) -> Retold:
        self.history = sorted([*self.history, event], key=lambda one: one.at)
        return self

    def send_of(self, entry: Entry, token: int | None = None) -> Callable[[Event], bool]:
        wanted = entry.token if token is None else token
        return lambda one: isinstance(one, Received) and (one.run, one.token) == (entry.id, wanted)

    def claim_of(self, entry: Entry, token: int = 1) -> Callable[[Event], bool]:
        return lambda one: isinstance(one, Claimed) and (one.run, one.token) == (entry.id, token)

    def turn(self, entry: Entry, token: int | None = None) -> Turn:
        return self.story.lives.turns[entry.id][entry.token if token is None else token]

    def job(self, entry: Entry) -> JobStory:
        return self.story.jobs[entry.job]

    def rules(self, entry: Entry) -> Rules:
        """In force at its first claim; of what nobody claimed, in the end."""
        turns = self.story.lives.turns.get(entry.id, {})
        place = min((turn.place for turn in turns.values()), default=len(self.history))
        version = self.story.lives.in_force(entry.job, place)
        assert version is not None
        return version.rules

    def verbs(self, job: int) -> set[str]:
        return {event.verb for _, event in self.story.lives.wrote.get(job, ())}

    def untouched(self, entry: Entry) -> bool:
        """Nobody ever changed its job, nor paused everything: one policy for all of its runs, and no excuse."""
        return self.verbs(entry.job) <= UNTOUCHING and not self.story.lives.freezes

    def first_entry(self, wanted: Callable[[Retold, Entry], bool]) -> Entry | None:
        """Of the jobs whose runs end as the receiver answers: of the others what came of each is told later."""
        for entry in self.ledger.entries:
            if not self.job(entry).later and wanted(self, entry):
                return entry
        return None


def first(found_in: Callable[[Retold], T | None]) -> tuple[Retold, T]:
    """The first history that has what is looked for, and that."""
    for seed in SEEDS:
        tale = Retold(seed)
        if (found := found_in(tale)) is not None:
            return tale, found
    pytest.fail("none of the seeds plays that any more")


def first_entry(wanted: Callable[[Retold, Entry], bool]) -> tuple[Retold, Entry]:
    return first(lambda tale: tale.first_entry(wanted))
