"""A history that was really played, told again with one thing changed: what the checker says of that."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import msgspec

from proof.checker.events import Claimed, Event, History, Received, Wrote
from proof.checker.ledger import Entry, Job, Ledger
from proof.checker.story import Story
from proof.checker.verdict import check
from proof.sim.run import record

Choice = Callable[[Entry], bool]


@functools.cache
def played(seed: int = 7, minutes: float = 4.0) -> tuple[History, Ledger]:
    """Nothing goes wrong in it."""
    history, ledger, _, _ = record(seed, minutes=minutes)
    return history, ledger


class Retold:
    def __init__(self, seed: int = 7) -> None:
        history, self.ledger = played(seed)
        self.history = list(history)
        self.story = Story(history, self.ledger)

    def kinds(self) -> set[str]:
        return {violation.kind for violation in check(self.history, self.ledger)[0]}

    def entry(self, wanted: Choice) -> Entry:
        return next(entry for entry in self.ledger.entries if wanted(entry))

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

    def rules(self, entry: Entry) -> Any:
        return self.story.lives.versions[entry.job][-1].rules

    def only_version(self, entry: Entry) -> bool:
        return len(self.story.lives.versions.get(entry.job, ())) == 1

    def wrote(self, verb: str) -> Wrote:
        return next(one for one in self.history if isinstance(one, Wrote) and one.verb == verb)
