"""What the rows of work say that outlives its node: each attempt against the work itself, which knows when it began,
when it ended, and when it was killed.

The node that records it may be another one than the node that began it: then it has followed it since its claim, and
its start is still that of the work.
"""

from __future__ import annotations

from collections.abc import Iterator

from proof.checker.events import Killed, Received
from proof.checker.ledger import Attempt, Entry, Live
from proof.checker.lives import Turn
from proof.checker.results import JudgedRow
from proof.checker.story import LEASE, MISREAD, SLOW, JobStory, Story, Violation
from proof.checker.told import KEPT, told
from proof.model.attempts import COUNTED

__all__ = ["check_outside_rows"]

READ = 5
"""ms by which a node with a good way to the database may be behind its time."""
FOUND = 1000
"""ms after its claim within which who adopts work has found it."""
ENDS = ("ok", "error", "timeout", "cancelled")


def check_outside_rows(story: Story) -> Iterator[Violation]:
    if not story.ledger.whole:
        return
    killed: dict[tuple[str, int], Killed] = {}
    for event in story.history:
        if isinstance(event, Killed):
            killed.setdefault((event.run, event.of), event)
    for job in story.jobs.values():
        for row in job.rows if job.outlives else ():
            if isinstance(row, Entry) and row.until is not None:
                continue
            outside = _is_outside(story, job, row)
            if outside == {False}:  # its job has another target now
                yield from JudgedRow(story, job, row).check()
            elif outside != {False, True}:  # else its target was changed between two tries, which `outlives` counts
                yield from _Row(story, job, row, killed).check()


def _is_outside(story: Story, job: JobStory, row: Entry | Live) -> set[bool]:
    """Of each attempt that was received. Of what nobody received: as its job was when it was claimed."""
    if received := story.sends.get(row.id):
        return {send.of is not None for send in received}
    versions = [story.lives.in_force(job.id, turn.place) for turn in story.lives.turns.get(row.id, {}).values()]
    return {version.spec["target"].get("command") == "outside" for version in versions if version is not None}


class _Row:
    def __init__(self, story: Story, job: JobStory, row: Entry | Live, killed: dict[tuple[str, int], Killed]) -> None:
        self.story, self.job, self.row = story, job, row
        self.turns = story.lives.turns.get(row.id, {})
        self.told = told(row)
        self.works = {send.of: send for send in reversed(story.sends.get(row.id, ()))}
        self.killed = killed

    def _broken(self, kind: str, text: str) -> Violation:
        return Violation(kind=kind, text=f"{self.row.id} {text}")

    def check(self) -> Iterator[Violation]:
        if len(self.told) >= KEPT:
            self.story.excuse("its first attempts are not kept")
            return
        outcomes = {attempt.attempt: attempt.outcome for attempt in self.told}
        for token, turn in self.turns.items():
            recorded = None if turn.recorded is None else turn.recorded.outcome
            if recorded is not None and recorded != "expired" and outcomes.get(token) != recorded:
                yield self._broken("result", f"says {outcomes.get(token)} of attempt {token}, recorded as {recorded}")
        tries: dict[int, int] = {}
        counted = 0
        for attempt in self.told:
            claimed = self.turns.get(attempt.attempt)
            if claimed is None:
                yield self._broken("result", f"tells of attempt {attempt.attempt}, which nobody claimed")
                continue
            yield from self._attempt(attempt, claimed, self.works.get(counted + 1))
            counted += self._counts(attempt)
            tries[attempt.attempt] = counted
        for work in self.works.values():
            must = 1 + max((count for other, count in tries.items() if other < work.token), default=0)
            if work.of != must:
                yield self._broken("tries", f"was begun in try {work.of} by attempt {work.token}, it was try {must}")
        if self.row.tries != counted:
            names = [attempt.outcome for attempt in self.told]
            yield self._broken("tries", f"counts {self.row.tries} tries, its attempts are {names}")
        if isinstance(self.row, Entry):
            yield from self._times(self.row)

    def _counts(self, attempt: Attempt) -> bool:
        """What was cancelled is a try if it had begun. Nothing was found of what is unknown, and nothing begun again:
        that counts only as an end."""
        if attempt.outcome == "unknown":
            return attempt is self.told[-1] and isinstance(self.row, Entry) and self.row.reason == "unknown"
        return attempt.outcome in COUNTED or (attempt.outcome == "cancelled" and attempt.started_at is not None)

    def _attempt(self, attempt: Attempt, turn: Turn, work: Received | None) -> Iterator[Violation]:
        name, recorded = f"attempt {attempt.attempt}", turn.recorded is not None
        overdue = not recorded and attempt.outcome in ("timeout", "unknown", "cancelled")
        node = "" if overdue else turn.claim.node
        if attempt.node != node:
            yield self._broken("result", f"says that {attempt.node!r} made {name}, which {node!r} had claimed")
        if overdue:
            self.story.excuse("its time was up, and no node could reach its work")
            return
        if attempt.outcome not in ENDS:
            if attempt.started_at is not None and attempt.outcome == "interrupted":
                yield self._broken("result", f"says that {name} was interrupted, and its work goes on")
            return
        if attempt.outcome == "cancelled" and work is None and attempt.started_at is None:
            return
        if work is None or work.at > (turn.recorded.at if turn.recorded is not None else 0):
            if attempt.outcome == "cancelled" and self.story.lives.adopts(self.row.id, turn.token):
                yield from self._never_was(attempt, turn)
            else:
                yield self._broken("result", f"says {attempt.outcome} of {name}, and nothing had begun")
            return
        kill = self.killed.get((self.row.id, work.of or 0))
        yield from self._ended(attempt, name, turn, work, kill)
        yield from self._when(attempt, name, turn, work, kill)

    def _ended(
        self, attempt: Attempt, name: str, turn: Turn, work: Received, kill: Killed | None
    ) -> Iterator[Violation]:
        """By itself, or by who killed it; if that one died of it, too, the next one finds it killed."""
        if kill is not None:
            found = turn.claim.at >= kill.at and (attempt.outcome, attempt.error) == ("error", "killed")
            right, must = found or attempt.outcome == kill.why, f"killed ({kill.why})"
        elif attempt.outcome in ("timeout", "cancelled"):
            return  # it was to be killed in the very moment in which it ended: `_when` asks for that
        else:
            right, must = (attempt.outcome, attempt.error) == (work.answer, work.says), work.answer
        if not right:
            yield self._broken("result", f"says {attempt.outcome} ({attempt.error}) of {name}, its work was {must}")

    def _never_was(self, attempt: Attempt, turn: Turn) -> Iterator[Violation]:
        """Who was to begin it was lost, and who adopted it was to stop it, and found nothing: its start is that it was
        looked for."""
        self.story.excuse("cancelled before there was any work")
        recorded = turn.recorded
        if recorded is None or not self.story.steady(turn.claim.at, recorded.at) or self._is_slow(turn, recorded.at):
            return
        latest = recorded.db if recorded.db is not None else attempt.finished_at
        if not turn.claim.db - READ <= (attempt.started_at or 0) <= attempt.finished_at <= latest:
            text = f"says that it was looked for at {attempt.started_at}, claimed at {turn.claim.db}"
            yield self._broken("time", text)

    def _is_slow(self, turn: Turn, end: int) -> bool:
        return self.story.slow(turn.claim.node, turn.claim.at - LEASE, end)

    def _ended_at(self, attempt: Attempt, turn: Turn, work: Received, kill: Killed | None) -> tuple[int, int]:
        """The true time at which whoever recorded it knew that it had ended: with its end; or, where that was before it
        was found, or in a freeze, somewhen from there to the record."""
        end = work.at + work.took if kill is None else kill.at
        recorded = turn.recorded.at if turn.recorded is not None else self.story.ledger.at
        late = turn.token != work.token and end < turn.claim.at + FOUND
        if late or self.story.fault_on(turn.claim.node, turn.claim.at, recorded, *SLOW):
            return max(end, turn.claim.at), recorded
        return end, end

    def _when(
        self, attempt: Attempt, name: str, turn: Turn, work: Received, kill: Killed | None
    ) -> Iterator[Violation]:
        story, began = self.story, attempt.started_at
        first, last = self._ended_at(attempt, turn, work, kill)
        if isinstance(self.row, Entry) and attempt is self.told[-1] and self.row.outcome is not None:
            took = self.row.duration_ms
            if took is None or not first - work.at - 1 <= took <= last - work.at + 1:
                yield self._broken("time", f"took {took} ms, its work did {first - work.at} to {last - work.at}")
        if not story.steady(min(work.at, turn.claim.at) - LEASE, last):
            story.excuse("the database's clock was set while it ran")
            return
        early = READ
        if self._is_slow(turn, last):
            story.excuse("its node was slow to know the time")
            early += MISREAD * 10
        if began is None or not work.db - early <= began <= work.db + 1:
            yield self._broken("time", f"says that {name} began at {began}, its work did at {work.db}")
        first, last = first - work.at + work.db, last - work.at + work.db
        if not first - early <= attempt.finished_at <= last + 1:
            text = f"says that {name} ended at {attempt.finished_at}, its work did from {first} to {last}"
            yield self._broken("time", text)

    def _times(self, row: Entry) -> Iterator[Violation]:
        """The row's own times are those of its last attempt; its lateness is that of the first that began."""
        if row.outcome is None or not self.told:
            return
        last = self.told[-1]
        if (row.started_at, row.finished_at, row.node or "") != (last.started_at, last.finished_at, last.node):
            yield self._broken(
                "time", f"says {row.started_at} to {row.finished_at} by {row.node}, its last attempt {last}"
            )
        if last.outcome == "lost":
            return
        begun = [attempt.started_at for attempt in self.told if attempt.started_at is not None]
        late = max(0, begun[0] - row.due_at) if begun else None
        if row.lateness_ms != late:
            yield self._broken("time", f"says that it was {row.lateness_ms} ms late, it was {late}")
