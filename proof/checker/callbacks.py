"""Results that come later: what a receiver tells by a callback counts once, whatever state its run is in, and what it
was answered is true. The rules are written down here a second time, from the contract, not from the code.
"""

from __future__ import annotations

from collections.abc import Iterator

from proof.checker.events import CalledBack, Completed, Recorded
from proof.checker.ledger import Attempt, Entry, Live
from proof.checker.story import SLACK, JobStory, Story, Violation

__all__ = ["check_callbacks"]

NOTICED = 3000
"""ms after its time was up until a run is ended, with nothing wrong: it is looked for each second."""
ROUNDED = 1
"""ms by which the true time of what only a row dates may be later than it was: the database's clock cuts off what true
times round."""
NEVER = 2**62


def check_callbacks(story: Story) -> Iterator[Violation]:
    if not story.ledger.whole:
        yield from _as_told(story)
        return
    yield from _answers(story)
    for job in story.jobs.values():
        for row in job.rows:
            if isinstance(row, Entry) and row.until is not None:
                continue
            if job.calls_back:
                yield from _Run(story, job, row).check()
            elif story.callbacks.completed.get(row.id):
                yield Violation(
                    kind="callback", text=f"{row.id} was completed, and its job does not wait for callbacks"
                )
        if job.calls_back and job.alone:
            yield from _lane(story, job)


def _as_told(story: Story) -> Iterator[Violation]:
    """Without the database's diary: what receivers were told, against the rows in the end."""
    said_done = {call.run for call in story.callbacks.called if call.told == "done"}
    for call in story.callbacks.called:
        row = story.entries.get(call.run)
        taken = call.told == "done" and call.answer == 200 and not _failed_before(story, call)
        if taken and (row is None or row.status != "done"):
            text = f"{call.run} is {row and row.status}, and its receiver was told at {call.at} that it is done"
            yield Violation(kind="callback", text=text)
        if call.answer not in (200, 404, 409, None):
            yield Violation(kind="callback", text=f"{call.run}: a callback was answered {call.answer} at {call.at}")
    for job in story.jobs.values():
        for entry in job.entries if job.calls_back else ():
            if entry.status == "done" and entry.id not in said_done:
                yield Violation(kind="callback", text=f"{entry.id} is done, and its receiver never said so")


def _failed_before(story: Story, call: CalledBack) -> bool:
    """That it is done was a repeat for a try that had failed by a callback."""
    same = [each for each in story.callbacks.called if (each.run, each.of) == (call.run, call.of)]
    return any(each.told == "failed" for each in same)


def _answers(story: Story) -> Iterator[Violation]:
    """What receivers were answered, against what the database did."""
    for call in story.callbacks.called:
        name = f"{call.run}: {call.told} for try {call.of} at {call.at}"
        if call.answer is None:
            story.excuse("a receiver gave up to call back")
        elif call.false or call.answer == 401:
            if not (call.false and call.answer == 401):
                yield Violation(kind="callback", text=f"{name} was answered {call.answer}, false token: {call.false}")
        elif call.told == "progress":
            if call.answer not in (204, 409):
                yield Violation(kind="callback", text=f"{name} was answered {call.answer}")
        elif call.answer in (200, 409):
            done = [each for each in story.callbacks.completed.get(call.run, ()) if each.mark == call.mark]
            told = {"over"} if call.answer == 409 else {"current", "earlier", "repeat"}
            if not any(each.standing in told for each in done):
                yield Violation(kind="callback", text=f"{name} was answered {call.answer}, the database did {done}")
        else:
            yield Violation(kind="callback", text=f"{name} was answered {call.answer}")


class _Run:
    def __init__(self, story: Story, job: JobStory, row: Entry | Live) -> None:
        self.story, self.job, self.row = story, job, row
        self.sends = story.sends.get(row.id, [])
        self.turns = story.lives.turns.get(row.id, {})
        self.completed = story.callbacks.completed.get(row.id, [])
        self.wrote = story.callbacks.wrote(row.id)

    def _broken(self, text: str) -> Violation:
        return Violation(kind="callback", text=f"{self.row.id} {text}")

    def check(self) -> Iterator[Violation]:
        yield from self._once()
        for event in self.completed:
            if (why := self._mistaken(event)) is not None:
                yield self._broken(f"answered {event.standing} to {event.told} for try {event.of} at {event.at}: {why}")
        yield from self._result()
        for attempt in self.row.attempts:
            yield from self._too_late(attempt)
        yield from self._gave_up()

    def _once(self) -> Iterator[Violation]:
        """A try ends once, by a callback for a call that was made; and a run that is done is sent no more."""
        tries = [event.of for event in self.wrote]
        if len(tries) != len(set(tries)):
            yield self._broken(f"has tries that callbacks ended twice: {tries}")
        for event in self.wrote:
            if not any(send.of == event.of and send.at <= event.at for send in self.sends):
                yield self._broken(f"was completed for try {event.of}, which nobody had got")
            if event.told != "done":
                continue
            for turn in self.turns.values():
                if turn.claim.at > event.at:
                    yield self._broken(f"was done at {event.at}, and claimed at {turn.claim.at}")

    def _mistaken(self, event: Completed) -> str | None:
        """Why this was no right answer; None: it was."""
        before = self.completed[: next(n for n, each in enumerate(self.completed) if each is event)]
        earlier = [each for each in before if each.of == event.of and each.wrote]
        match event.standing:
            case "repeat":
                return None if earlier else "nobody had told of that try before"
            case "over":
                if earlier:
                    return "a callback had ended that try"
                return None if self._ended_otherwise(event) else "that try had not ended"
            case _:
                if earlier:
                    return "somebody had told of that try before"
                if not event.wrote and (event.standing == "current" or event.told == "done"):
                    return "and nothing was written"
                return "its completion had timed out" if self._was_too_late(event) else None

    def _was_too_late(self, event: Completed) -> bool:
        """Another end of the same try stands beside it."""
        return event.wrote and self.story.callbacks.too_late(self.row.id, event.of)

    def _ended_otherwise(self, event: Completed) -> bool:
        if self.story.callbacks.too_late(self.row.id, event.of) or self.story.lives.cancels.get(self.row.id):
            return True
        if not isinstance(self.row, Entry):
            return False
        recorded = turn.recorded if (turn := self.turns.get(self.row.token)) is not None else None
        if recorded is not None and recorded.outcome != "accepted":
            return recorded.at <= event.at + 1
        ended = self.story.written(self.row)
        if ended is None:
            return self.story.excuse("the database's clock was set: when a run ended is not known")
        return ended <= event.at + 1

    def _result(self) -> Iterator[Violation]:
        """What the row says is what the last callback said."""
        done = [event for event in self.wrote if event.told == "done"]
        row = self.row
        if not isinstance(row, Entry) or row.status != "done":
            if done:
                state = row.status if isinstance(row, Entry) else row.state
                yield self._broken(f"is {state}, and its receiver was told that it is done")
            if isinstance(row, Entry) and row.status == "failed":
                yield from self._failure(row)
            return
        if len(done) != 1:
            yield self._broken(f"is done, and {len(done)} callbacks said so")
        elif row.outcome is None or row.outcome.get("result") != done[0].mark:
            yield self._broken(f"has the result {row.outcome}, its receiver gave {done[0].mark}")

    def _failure(self, row: Entry) -> Iterator[Violation]:
        rules = [version.rules for version in self.story.lives.versions.get(self.job.id, ())]
        final = any(event.told == "final" for event in self.wrote)
        refused = any(send.answer == "refused" for send in self.sends)
        if row.reason == "not_retryable" and not (final or refused):
            yield self._broken("failed as not to be retried, and nobody had said so")
        if (
            row.reason == "attempts"
            and rules
            and self.job.row is not None
            and row.tries < min(rule.attempts for rule in rules)
        ):
            yield self._broken(f"was given up after {row.tries} tries")

    def _too_late(self, attempt: Attempt) -> Iterator[Violation]:
        """No callback came in time: not before that, counted from the commit of the acceptance, and not long after."""
        if attempt.completion != "timeout" or attempt.outcome != "timeout":
            return
        turn = self.turns.get(attempt.attempt)
        accepted = None if turn is None else turn.recorded
        if turn is None or accepted is None or accepted.outcome != "accepted" or accepted.db is None:
            yield self._broken(f"attempt {attempt.attempt} was not completed in time, and never accepted")
            return
        version = self.story.lives.in_force(self.job.id, turn.place)
        within = None if version is None else version.rules.callback
        if within is None:
            return
        since = accepted.db
        if attempt.started_at is not None and self.story.lost(attempt.node, turn.claim.at, accepted.at):
            since = attempt.started_at  # it was given up after the send: its late word of the acceptance adds no time
        waited = attempt.finished_at - since
        if not self.story.steady(accepted.at, accepted.at + waited + NOTICED):
            self.story.excuse("the database's clock was set while a callback was waited for")
        elif waited < within - 1:
            yield self._broken(f"attempt {attempt.attempt} was given {waited} ms to be completed, not {within}")
        elif waited > within + NOTICED and self.story.quiet(accepted.at, accepted.at + waited):
            yield self._broken(f"attempt {attempt.attempt} waited {waited} ms for its callback, not {within}")

    def _gave_up(self) -> Iterator[Violation]:
        """Sent at most once and lost: its callback may still come, for as long as it had."""
        row = self.row
        if not isinstance(row, Entry) or row.reason != "unknown" or self.job.row is None:
            return
        turn = self.turns.get(row.token)
        version = None if turn is None else self.story.lives.in_force(self.job.id, turn.place)
        within = None if version is None else version.rules.callback
        if turn is None or within is None:
            return
        waited = row.finished_at - turn.claim.db
        if not self.story.steady(turn.claim.at, turn.claim.at + max(waited, 0) + SLACK):
            self.story.excuse("the database's clock was set while a callback was waited for")
        elif waited < within:
            yield self._broken(f"ended as unknown {waited} ms after its claim, its callback had {within}")


def _lane(story: Story, job: JobStory) -> Iterator[Violation]:
    """While one waits for its callback, no other of its lane begins."""
    claims = sorted((turn.claim.at, row.id) for row in job.rows for turn in story.lives.turns.get(row.id, {}).values())
    for row in job.rows:
        for turn in story.lives.turns.get(row.id, {}).values():
            if turn.recorded is None or turn.recorded.outcome != "accepted":
                continue
            end = _open_until(story, row, turn.recorded, turn.token)
            for at, run in claims:
                if run != row.id and turn.recorded.at < at < end:
                    text = f"{run} was claimed at {at}, while {row.id} waited for its callback until {end}"
                    yield Violation(kind="overlap", text=text)


def _open_until(story: Story, row: Entry | Live, accepted: Recorded, token: int) -> int:
    """The true time at which an accepted run was open no more."""
    ends = [event.at for event in story.callbacks.wrote(row.id) if event.at >= accepted.at]
    ends += [turn.claim.at for turn in story.lives.turns.get(row.id, {}).values() if turn.token > token]
    given_up = [each for each in row.attempts if each.attempt == token and each.completion == "timeout"]
    if given_up and story.steps:
        story.excuse("the database's clock was set: when a callback was given up is not known")
        return accepted.at
    ends += [story.ledger.at - (story.ledger.now - each.finished_at) - ROUNDED for each in given_up]
    if isinstance(row, Entry):
        written = story.written(row)
        ends.append(accepted.at if written is None else written - ROUNDED)
    return min(ends, default=NEVER)
