"""What the rows of runs say whose receivers tell later how they ended: each attempt and its times, how many tries there
were, and how late it was. Equal both ways: what receiver and database say is told, and nothing else.

An attempt that a node recorded is judged as any other. One that a callback ended, or the lack of one, is dated by the
database alone, so that its times are exact.
"""

from __future__ import annotations

from collections.abc import Iterator

from proof.checker.events import Completed, Received
from proof.checker.ledger import Attempt, Entry, Live
from proof.checker.lives import Turn
from proof.checker.results import JudgedRow
from proof.checker.story import LEASE, MISREAD, JobStory, Story, Violation
from proof.checker.told import KEPT, told
from proof.model.attempts import COUNTED, ON_ITS_WAY

__all__ = ["check_completions"]

NOTICED = 3000
"""ms after its time was up until a run is ended, with nothing wrong: it is looked for each second."""
NOT_TOLD = ("accepted", "expired")
"""What is recorded and ends no attempt: the call was accepted for later, or there was none."""


def check_completions(story: Story) -> Iterator[Violation]:
    if not story.ledger.whole:
        return
    for job in story.jobs.values():
        for row in job.rows if job.calls_back else ():
            if not isinstance(row, Entry) or row.until is None:
                yield from _Row(story, job, row).check()


class _Row:
    def __init__(self, story: Story, job: JobStory, row: Entry | Live) -> None:
        self.story, self.job, self.row = story, job, row
        self.turns = story.lives.turns.get(row.id, {})
        self.told = told(row)
        self.judged = JudgedRow(story, job, row)
        self.wrote = {event.of: event for event in story.callbacks.wrote(row.id)}

    def _broken(self, kind: str, text: str) -> Violation:
        return Violation(kind=kind, text=f"{self.row.id} {text}")

    def check(self) -> Iterator[Violation]:
        if len(self.told) >= KEPT:
            self.story.excuse("its first attempts are not kept")
            return
        yield from self._complete()
        tries: dict[int, int] = {}  # by token: how many there were before it, with it
        counted = 0
        for place, attempt in enumerate(self.told):
            turn = self.turns.get(attempt.attempt)
            if turn is None:
                yield self._broken("result", f"tells of attempt {attempt.attempt}, which nobody claimed")
                continue
            yield from self._of(attempt, counted)
            counted += self._counts(attempt, counted)
            tries[attempt.attempt] = counted
            if attempt.completion is None:
                yield from self.judged.attempt(attempt, turn)
            else:
                yield from self._completed(attempt, turn, self.told[:place])
        yield from self._sent(tries)
        if self.row.tries != counted:
            yield self._broken("tries", f"counts {self.row.tries} tries, its attempts are {self._names()}")
        if isinstance(self.row, Entry):
            yield from self._times(self.row)

    def _names(self) -> list[str]:
        return [f"{each.outcome} ({each.completion or 'node'})" for each in self.told]

    def _complete(self) -> Iterator[Violation]:
        """What nodes recorded and callbacks told stands there, once."""
        by_node = {each.attempt: each.outcome for each in self.told if each.completion is None}
        for token, turn in self.turns.items():
            recorded = None if turn.recorded is None else turn.recorded.outcome
            if recorded is not None and recorded not in NOT_TOLD and by_node.get(token) != recorded:
                yield self._broken("result", f"says {by_node.get(token)} of attempt {token}, recorded as {recorded}")
        by_callback = [each.try_number for each in self.told if each.completion == "callback"]
        if sorted(of or 0 for of in by_callback) != sorted(self.wrote):
            yield self._broken("result", f"tells of callbacks for the tries {by_callback}, there were {[*self.wrote]}")

    def _counts(self, attempt: Attempt, before: int) -> bool:
        """A callback for a try that had been given up ends that one again, and counts as none. What was cancelled is a
        try if it had begun."""
        if attempt.completion is not None:
            return attempt.try_number == before + 1
        return attempt.outcome in COUNTED or (attempt.outcome == "cancelled" and attempt.started_at is not None)

    def _of(self, attempt: Attempt, before: int) -> Iterator[Violation]:
        """Which try it says it was: the next one, if it counts; or an earlier one, of which only a callback speaks. A
        row that tells of its only attempt itself says how many tries there were, and no number."""
        if not self.row.attempts:
            right = before == 0 and attempt.completion is None
        elif attempt.completion is None and not self._counts(attempt, before):
            right = attempt.try_number is None
        elif attempt.completion == "callback":
            right = 1 <= (attempt.try_number or 0) <= before + 1
        else:
            right = attempt.try_number == before + 1
        if not right:
            name = f"attempt {attempt.attempt} ({attempt.outcome}, {attempt.completion})"
            yield self._broken("tries", f"says that {name} was try {attempt.try_number}, after {before}")

    def _sent(self, tries: dict[int, int]) -> Iterator[Violation]:
        """Each call was for the try after those that had ended when it was claimed."""
        for token, turn in self.turns.items():
            if turn.send is None or turn.send.of is None:
                continue
            must = 1 + max((count for other, count in tries.items() if other < token), default=0)
            if turn.send.of != must:
                yield self._broken("tries", f"was called for try {turn.send.of} by attempt {token}, it was try {must}")

    def _completed(self, attempt: Attempt, turn: Turn, before: list[Attempt]) -> Iterator[Violation]:
        """Ended by a callback, or by none in time: what its node was, when it had begun, when that was."""
        name, event = f"attempt {attempt.attempt} ({attempt.completion})", self.wrote.get(attempt.try_number or 0)
        let_go = any(each.attempt == attempt.attempt for each in before)
        nodes = {"" if let_go else turn.claim.node}
        began = [self._began(turn, before, let_go=let_go)]
        if attempt.completion == "callback" and event is not None:
            token = self.story.callbacks.tokens[self.row.id, event.of]
            if attempt.attempt != token:
                yield self._broken("result", f"says that {name} was that one, it was {token}")
            if attempt.outcome != ("ok" if event.told == "done" else "error"):
                yield self._broken("result", f"says {attempt.outcome} of {name}, its receiver said {event.told}")
            if attempt.finished_at != event.db:
                yield self._broken(
                    "time", f"says that {name} ended at {attempt.finished_at}, it was told at {event.db}"
                )
            if not let_go and self._may_be_back(turn, event):
                self.story.excuse("told of an earlier try, and whether the next one was given back is not known")
                nodes.add("")
                began.append(self._began(turn, before, let_go=True))
        elif attempt.outcome == "cancelled":
            yield from self._cancelled(attempt, turn)
        if attempt.node not in nodes:
            yield self._broken("result", f"says that {attempt.node!r} made {name}, it was {sorted(nodes)}")
        if not any(low <= (attempt.started_at or 0) <= high for low, high in began):
            yield self._broken("time", f"says that {name} began at {attempt.started_at}, it did within {began}")

    def _may_be_back(self, turn: Turn, event: Completed) -> bool:
        """It was claimed, and perhaps given back unsent: no diary has that."""
        return event.standing == "earlier" and (turn.send is None or turn.send.at > event.at)

    def _began(self, turn: Turn, before: list[Attempt], *, let_go: bool) -> tuple[int, int]:
        """As far as it is known when it ends: what its node said with the acceptance; else that it was begun, else that
        it was claimed. Of what nobody has any more, the start that was told last."""
        if let_go:
            known = next((each.started_at for each in reversed(before) if each.started_at is not None), 0)
            return known, known
        if turn.recorded is not None and turn.send is not None:
            return self._arrived(turn, turn.send)
        if turn.begun_db is not None:
            return turn.begun_db, turn.begun_db
        claimed = max(turn.claim.db, self.row.due_at)
        return claimed, claimed

    def _arrived(self, turn: Turn, send: Received) -> tuple[int, int]:
        """By the receiver's clock, which is the database's."""
        end = turn.recorded.at if turn.recorded is not None else self.story.ledger.at
        if not self.story.steady(turn.claim.at - LEASE, end):
            self.story.excuse("the database's clock was set while it ran")
            return 0, 2**62
        early = ON_ITS_WAY
        if self.story.slow(turn.claim.node, turn.claim.at - LEASE, end):
            self.story.excuse("its node was slow to know the time")
            early += MISREAD * 10
        return send.db - early, send.db + 1

    def _cancelled(self, attempt: Attempt, turn: Turn) -> Iterator[Violation]:
        """By a user it ends in the same commit; if its node had it still, or by a newer run, at the next look."""
        if not self.judged.ordered_at_all():
            yield self._broken("result", "was cancelled while its callback was waited for, and nobody wanted that")
        cancels = self.story.lives.cancels.get(self.row.id, [])
        accepted = turn.recorded
        if accepted is None or (isinstance(self.row, Entry) and self.row.reason == "replaced"):
            return
        if any(event.at < accepted.at for event in cancels):
            ended = attempt.finished_at - (accepted.db or 0)
            right = 0 <= ended <= NOTICED or not self.story.quiet(accepted.at, accepted.at + ended)
        else:
            right = attempt.finished_at in [event.db for event in cancels]
        if not right:
            text = (
                f"was cancelled at {[event.db for event in cancels]}, and says that it ended at {attempt.finished_at}"
            )
            yield self._broken("time", text)

    def _times(self, row: Entry) -> Iterator[Violation]:
        """The row's own times are those of its last attempt; its lateness is that of the first that began. Who has it
        when it is completed? Nobody."""
        if row.outcome is None or not self.told:
            return
        last = self.told[-1]
        node = last.node if last.completion is None else None
        if (row.started_at, row.finished_at, row.node) != (last.started_at, last.finished_at, node):
            yield self._broken(
                "time", f"says {row.started_at} to {row.finished_at} by {row.node}, its last attempt {last}"
            )
        if last.completion is None and last.outcome in ("lost", "unknown"):
            return
        begun = [each.started_at for each in self.told if each.started_at is not None]
        late = max(0, begun[0] - row.due_at) if begun else None
        if row.lateness_ms != late:
            yield self._broken("time", f"says that it was {row.lateness_ms} ms late, it was {late}")
        if last.completion is None:
            yield from self.judged.duration(row)
        elif row.started_at is not None and row.duration_ms != max(0, row.finished_at - row.started_at):
            yield self._broken("time", f"took {row.duration_ms} ms, from {row.started_at} to {row.finished_at}")
