"""A history sorted by whom it is about, so that each check reads like its promise."""

from __future__ import annotations

import bisect
import functools
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from proof.checker.callback_story import CallbackStory
from proof.checker.events import (
    Acted,
    Changed,
    Claimed,
    Fault,
    History,
    Lost,
    Made,
    Received,
    Recorded,
    Stepped,
    Waited,
)
from proof.checker.ledger import Entry, Job, Ledger, Live
from proof.checker.lives import Lives, Version
from proof.model.rules import Rules, rules_of
from proof.oracle.slots import is_one_off

__all__ = ["LEASE", "LOOKAHEAD", "MISREAD", "SLACK", "SLOW", "JobStory", "Segment", "Story", "Violation", "merged"]

LEASE = 5000
LOOKAHEAD = 2000
SLACK = 250
"""ms that messages and answers may take on their way."""

SETTLE = 20_000
"""ms after a fault until all must be as if it had never been."""

SLOW = ("freeze", "freeze_at", "suspend")
"""What keeps a process from doing anything for a while."""

MISREAD = 300
"""ms by which a node's idea of the database's time may be wrong when its way there is slow."""

SLOW_WAYS = ("slow", "late", "hang", "flaky", "cut", "outage", "freeze", "freeze_at", "suspend")

_FAULTS_THAT_DELAY_NOTHING = {"wall", "receiver", "host"}


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """kind: what sort of promise is broken. text: by what."""

    kind: str
    text: str


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule in force from `begin` (exclusive, the database's time)."""

    begin: int
    schedule: dict[str, Any]
    place: int = 0  # of the commit in the history, if that is known
    at: int = 0


class JobStory:
    """One job from the first request to its last row."""

    def __init__(self, made: Made) -> None:
        self.id = made.job
        self.made = made
        self.policy: dict[str, Any] = made.spec.get("policy", {})
        self.changes: list[Changed] = []
        self.acts: list[Acted] = []
        self.sends: list[Received] = []
        self.entries: list[Entry] = []
        self.live: list[Live] = []
        self.row: Job | None = None
        self.segments = [Segment(begin=made.created_at, schedule=made.spec["schedule"])]

    @property
    def deleted(self) -> Changed | None:
        return next((change for change in self.changes if change.verb == "delete"), None)

    @property
    def rows(self) -> list[Entry | Live]:
        return [*self.entries, *self.live]

    @property
    def one_off(self) -> bool:
        return is_one_off(self.segments[-1].schedule)

    @property
    def laned(self) -> bool:
        """Its runs are claimed when others are through, and not by their time alone."""
        return self.alone or self.grouped

    @property
    def alone(self) -> bool:
        """Its runs may not overlap."""
        return bool(self.policy.get("overlap", "allow") != "allow")

    @property
    def grouped(self) -> bool:
        """Its runs wait for a concurrency group, and are judged by `groups`. No edit changes that."""
        return "concurrency" in self.policy or "max_running" in self.policy

    @property
    def at_most_once(self) -> bool:
        return bool(self.policy.get("delivery") == "at_most_once")

    @property
    def calls_back(self) -> bool:
        """Its runs are completed by callbacks, and judged by `callbacks`. No edit changes that."""
        return bool(self.policy.get("completion") == "callback")

    @property
    def outlives(self) -> bool:
        """Its work goes on without its node, and is judged by `outlives`."""
        target = self.made.spec.get("target", {})
        return bool(target.get("type") == "command" and target.get("command") == "outside")

    @property
    def later(self) -> bool:
        """What the receiver answers is not how its runs end."""
        return self.calls_back or self.outlives

    def change(self, change: Changed) -> None:
        self.changes.append(change)
        schedule = (change.spec or {}).get("schedule")
        if change.verb != "edit" or schedule is None or change.changed_at is None:
            return
        if schedule != self.segments[-1].schedule:
            self.segments.append(Segment(begin=change.changed_at, schedule=schedule, at=change.at))

    def segment_begin(self, place: int) -> int:
        """When the schedule that was in force at this place of the history was given, in the database's time."""
        begins = [segment.begin for segment in self.segments if segment.place <= place]
        return begins[-1] if begins else self.segments[0].begin

    def follow(self, versions: Sequence[Version]) -> None:
        """The schedules as the database's diary has them: also what users were never told of."""
        self.segments = []
        for version in versions:
            schedule = version.spec["schedule"]
            if not self.segments or schedule != self.segments[-1].schedule:
                self.segments.append(Segment(begin=version.db, schedule=schedule, place=version.place, at=version.at))


class Story:
    def __init__(self, history: History, ledger: Ledger) -> None:
        self.ledger = ledger
        self.history = history
        self.lives = Lives(history)
        self.excuses: Counter[str] = Counter()
        self.jobs: dict[int, JobStory] = {}
        self.made: list[Made] = []
        self.steps = [event for event in history if isinstance(event, Stepped)]
        self.faults = [event for event in history if isinstance(event, Fault)]
        self.claims = [event for event in history if isinstance(event, Claimed)]
        self.owners = {(claim.run, claim.token): claim for claim in self.claims}
        self.waits: defaultdict[str, list[Waited]] = defaultdict(list)
        for event in history:
            if isinstance(event, Waited):
                self.waits[event.run].append(event)
        self.waits.default_factory = None
        self.records = [event for event in history if isinstance(event, Recorded)]
        self.losses: dict[str, Lost] = {event.node: event for event in history if isinstance(event, Lost)}
        self.strays: list[Received] = []
        self.sends: defaultdict[str, list[Received]] = defaultdict(list)
        self.entries = {entry.id: entry for entry in ledger.entries}
        self.live = {live.id: live for live in ledger.live}
        self.callbacks = CallbackStory(history, [*ledger.entries, *ledger.live])
        self._read_users(history)
        self._read_rest(history, ledger)
        self._troubled = merged(
            [(f.at, f.until + SETTLE) for f in self.faults if f.what not in _FAULTS_THAT_DELAY_NOTHING]
        )

    def _read_users(self, history: History) -> None:
        for event in history:
            if isinstance(event, Made):
                self.made.append(event)
                self.jobs.setdefault(event.job, JobStory(event))
        for event in sorted((e for e in history if isinstance(e, Changed)), key=lambda change: change.until):
            if event.job in self.jobs:
                self.jobs[event.job].change(event)
        for job in self.jobs.values():
            if versions := self.lives.versions.get(job.id):
                job.follow(versions)
        for event in history:
            if isinstance(event, Acted) and event.job in self.jobs:
                self.jobs[event.job].acts.append(event)

    def _read_rest(self, history: History, ledger: Ledger) -> None:
        for event in history:
            if isinstance(event, Received):
                self.sends[event.run].append(event)
                if event.job in self.jobs:
                    self.jobs[event.job].sends.append(event)
                else:
                    self.strays.append(event)
        self.sends.default_factory = None  # who asks for a run that was not sent does not make it one that was
        for row in ledger.jobs:
            if row.id in self.jobs:
                self.jobs[row.id].row = row
        for entry in ledger.entries:
            if entry.job in self.jobs:
                self.jobs[entry.job].entries.append(entry)
        for live in ledger.live:
            if live.job in self.jobs:
                self.jobs[live.job].live.append(live)

    def rules_of(self, job: JobStory, send: Received) -> Rules | None:
        """What was in force for this attempt, if the diary is known."""
        turn = self.lives.turns.get(send.run, {}).get(send.token)
        version = None if turn is None else self.lives.in_force(job.id, turn.place)
        return None if version is None else version.rules

    def expires(self, job: JobStory) -> bool:
        """Whether runs of it may expire: those are judged by the model."""
        rules = [version.rules for version in self.lives.versions.get(job.id, ())] or [rules_of(job.made.spec)]
        return any(one.expires_in is not None for one in rules)

    @functools.cache  # noqa: B019
    def under_way(self, kind: str) -> list[tuple[str, int, int]]:
        """Which node had a slot of this kind taken by an attempt, from when to when, as far as it is known."""
        found = []
        for turns in self.lives.turns.values():
            for turn in turns.values():
                if turn.send is not None and (turn.send.asked or {}).get("target", {}).get("type") == kind:
                    end = turn.recorded.at if turn.recorded is not None else turn.send.at + turn.send.took
                    found.append((turn.claim.node, turn.send.at, end))
        return found

    def timeout(self, job: JobStory, send: Received) -> float:
        """ms that the sender of this attempt waited for an answer."""
        rules = self.rules_of(job, send) or rules_of(job.made.spec)
        if rules.timeout is None:
            return float("inf")
        return rules.timeout

    def excuse(self, why: str) -> bool:
        """Something is let pass that would else be judged. Counted, so that nobody can say it never happens."""
        self.excuses[why] += 1
        return True

    def lowest_after(self, at: int) -> int:
        """What the database's clock was set to after this true time, at the lowest."""
        return min((step.db for step in self.steps if step.db is not None and step.at >= at), default=2**62)

    def written(self, entry: Entry) -> int | None:
        """The true time at which the database wrote a row that it dated itself, as it does what nobody ran; None: its
        clock was set, and it is not known whether before or after that."""
        if entry.clock is None and self.steps:
            return None
        since = sum(step.by_ms for step in self.steps[entry.clock or 0 :])
        return self.ledger.at - (self.ledger.now - since - entry.finished_at)

    def steady(self, begin: int, end: int) -> bool:
        """Whether nobody set the database's clock between these true times."""
        return not any(begin <= step.at <= end for step in self.steps)

    def slow(self, node: str | None, begin: int, end: int) -> bool:
        """Whether the node's way to the database was in trouble, so that it may be wrong about the time."""
        return self.fault_on(node, begin, end, *SLOW_WAYS)

    def quiet(self, begin: int, end: int) -> bool:
        """Whether nothing was wrong, or still healing, between these true times."""
        place = bisect.bisect_right(self._troubled, (end, 2**62))
        return place == 0 or self._troubled[place - 1][1] < begin

    def untouched(self, run: str, begin: int, end: int) -> bool:
        """Whether all that was wrong, or still healing, was wrong with one node that never had this run."""
        if not self.ledger.whole or self.ledger.lookahead < LOOKAHEAD:
            return False
        harmless = _FAULTS_THAT_DELAY_NOTHING
        wrong = {f.node for f in self.faults if f.what not in harmless and f.at <= end and f.until + SETTLE >= begin}
        holders = {turn.claim.node for turn in self.lives.turns.get(run, {}).values()}
        return len(wrong) == 1 and None not in wrong and not wrong & holders

    def waited(self, run: str, begin: int, end: int) -> bool:
        """Whether it waited for its destination between these true times; or others did, which had taken the room that
        it would have been claimed for."""
        if not self.waits:
            return False
        near = [run] if run in self.waits else list(self.waits)
        return any(begin <= wait.at <= end for one in near for wait in self.waits[one])

    def lost(self, node: str | None, begin: int, end: int) -> bool:
        """Whether that node was declared lost in between."""
        loss = self.losses.get(node or "")
        return loss is not None and begin <= loss.at <= end

    def fault_on(self, node: str | None, begin: int, end: int, *kinds: str) -> bool:
        return any(
            fault.at <= end
            and fault.until >= begin
            and fault.node in (node, None)
            and (not kinds or fault.what in kinds)
            for fault in self.faults
        )


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that overlap as one: no moment counts twice."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found
