"""Each row against the receiver: how each attempt ended, how many there were, how far apart, what came of the run.

With nothing wrong there is one thing that a row may say. What a fault allows beside it must be explained by a fault on
that very attempt: its node stopped, frozen, lost.
"""

from __future__ import annotations

from collections.abc import Iterator

from proof.checker.backlog import backlog_was_full
from proof.checker.lease import lease_ended
from proof.checker.ledger import Attempt, Entry, Live
from proof.checker.lives import Turn
from proof.checker.story import LEASE, MISREAD, SLACK, SLOW, JobStory, Story, Violation
from proof.checker.told import told
from proof.checker.waits import asked_for, spread
from proof.model.attempts import COUNTED, ON_ITS_WAY, Follows, follows, sender_saw
from proof.model.rules import Rules
from proof.oracle.slots import is_one_off, slots_of

__all__ = ["JudgedRow", "check_results"]

TOLD = 150
"""ms that an answer may lie in a process that is not frozen until the node has seen it."""
AGAIN = 1600
"""ms after a retry may be claimed until it is, if nobody knows of it but by looking once a second."""

FAR = 400_000
"""ms after an attempt in which the next slot may matter: no history waits longer for a retry."""


def check_results(story: Story) -> Iterator[Violation]:
    if not story.ledger.whole:
        return
    for job in story.jobs.values():
        for row in job.rows if not job.later else ():
            if not isinstance(row, Entry) or row.until is None:
                yield from JudgedRow(story, job, row).check()
    yield from spread(story)


class JudgedRow:
    def __init__(self, story: Story, job: JobStory, row: Entry | Live) -> None:
        self.story, self.job, self.row = story, job, row
        self.turns = story.lives.turns.get(row.id, {})
        self.told = told(row)

    def rules(self, turn: Turn) -> Rules | None:
        version = self.story.lives.in_force(self.job.id, turn.place)
        return None if version is None else version.rules

    def check(self) -> Iterator[Violation]:
        yield from self._complete()
        for attempt in self.told:
            turn = self.turns.get(attempt.attempt)
            if turn is None:
                yield self.broken("result", f"tells of attempt {attempt.attempt}, which nobody claimed")
            else:
                yield from self.attempt(attempt, turn)
        yield from self._following()
        if isinstance(self.row, Entry):
            yield from self._counts(self.row)
            yield from self._times(self.row)

    def broken(self, kind: str, text: str) -> Violation:
        return Violation(kind=kind, text=f"{self.row.id} {text}")

    def _complete(self) -> Iterator[Violation]:
        """What was recorded is told, under the name that it was recorded with; and nothing twice."""
        names = [attempt.attempt for attempt in self.told]
        if sorted(set(names)) != names:
            yield self.broken("result", f"tells of its attempts in the order {names}")
        outcomes = {attempt.attempt: attempt.outcome for attempt in self.told}
        for token, turn in self.turns.items():
            if turn.recorded is None or (names and token < names[0]):
                continue
            said = outcomes.get(token)
            if said is None and turn.recorded.outcome not in ("interrupted", "expired"):
                yield self.broken("result", f"does not tell of attempt {token}, which was {turn.recorded.outcome}")
            elif said is not None and said != turn.recorded.outcome:
                yield self.broken("result", f"says {said} of attempt {token}, recorded as {turn.recorded.outcome}")

    def attempt(self, attempt: Attempt, turn: Turn) -> Iterator[Violation]:
        name = f"attempt {attempt.attempt}"
        if attempt.node != turn.claim.node:
            yield self.broken("result", f"says that {attempt.node} made {name}, which {turn.claim.node} had claimed")
        send = turn.send
        if (send is not None) != (attempt.started_at is not None) and attempt.outcome not in ("lost", "unknown"):
            yield self.broken("result", f"{name} ({attempt.outcome}) began at {attempt.started_at}, received: {send}")
        if (why := self._unexplained(attempt, turn)) is not None:
            yield self.broken("result", f"says {attempt.outcome} of {name}: {why}")
        if send is not None and attempt.outcome in ("ok", "error", "timeout"):
            yield from self._when(attempt, turn)
            if attempt.outcome == "error" and attempt.error != send.says:
                yield self.broken("result", f"says {attempt.error!r} of {name}, the receiver said {send.says!r}")

    def _unexplained(self, attempt: Attempt, turn: Turn) -> str | None:
        """Why this attempt can't have ended so; None: it can."""
        story, send, rules = self.story, turn.send, self.rules(turn)
        end = turn.recorded.at if turn.recorded is not None else story.ledger.at
        node, begin = turn.claim.node, turn.claim.at
        match attempt.outcome:
            case "cancelled":
                if not self._ordered(turn, rules):
                    return "nobody wanted it stopped"
            case "interrupted":
                stopped = story.fault_on(node, begin - SLACK, end, "stop")
                may_overlap = rules is not None and not rules.laned
                if not stopped and (may_overlap or not lease_ended(story, node, begin, end)):
                    return "its node was not told to stop, nor did its lease end"
            case "lost" | "unknown":
                # its claim may have been on its way when it stopped
                if not story.lost(node, begin, story.ledger.at) and not story.fault_on(node, 0, end, "stop"):
                    return "its node was neither lost nor stopped"
            case "expired":
                if rules is None or rules.expires_in is None:
                    return "it never expires"
            case _:
                if send is None or rules is None:
                    return "it was never received"
                seen = sender_saw(rules, send.answer, send.took)
                if attempt.outcome not in seen:
                    if story.fault_on(node, begin, end, *SLOW) and attempt.outcome in ("timeout", *_heard(send.answer)):
                        story.excuse("frozen while an answer was under way")
                        return None
                    return f"the receiver said {send.answer} after {send.took} ms, time-out {rules.timeout}"
        return None

    def _ordered(self, turn: Turn, rules: Rules | None) -> bool:
        """A user cancelled it, or a newer slot replaced it."""
        if self.story.lives.cancels.get(self.row.id):
            return True
        return rules is not None and (rules.overlap == "replace" or self._edited_to("replace"))

    def _edited_to(self, overlap: str) -> bool:
        return any(version.rules.overlap == overlap for version in self.story.lives.versions.get(self.job.id, ()))

    def _when(self, attempt: Attempt, turn: Turn) -> Iterator[Violation]:
        """Start and end by the receiver's clock, which is the database's."""
        send, rules, story = turn.send, self.rules(turn), self.story
        if send is None or attempt.started_at is None:
            return
        end = turn.recorded.at if turn.recorded is not None else story.ledger.at
        if not story.steady(turn.claim.at - LEASE, end):
            story.excuse("the database's clock was set while it ran")
            return
        early, late, began = ON_ITS_WAY, 1, attempt.started_at
        if story.slow(turn.claim.node, turn.claim.at - LEASE, end):
            story.excuse("its node was slow to know the time")
            early, began = early + MISREAD * 10, send.db  # and may have learned it better while it waited
        if not send.db - early <= attempt.started_at <= send.db + late:
            yield self.broken("time", f"says that it began at {attempt.started_at}, received at {send.db}")
        took = send.took if attempt.outcome != "timeout" or rules is None else rules.timeout or 0
        ended = (send.db if attempt.outcome != "timeout" else began) + took
        frozen = story.fault_on(turn.claim.node, turn.claim.at, end, *SLOW)
        if attempt.finished_at < ended - early or (not frozen and attempt.finished_at > ended + TOLD):
            yield self.broken("time", f"says that it ended at {attempt.finished_at}, it did at {ended}")

    def _following(self) -> Iterator[Violation]:
        """What came of each attempt: another one, so much later, or the end, for a reason."""
        tries, row = 0, self.row
        kept_all = not self.told or self.told[0].attempt == min(self.turns, default=0) or len(self.told) < 20
        if not kept_all:
            self.story.excuse("its first attempts are not kept")
            return
        for place, attempt in enumerate(self.told):
            turn = self.turns.get(attempt.attempt)
            rules = None if turn is None else self.rules(turn)
            if turn is None or rules is None:
                return
            tries += _counts(attempt)
            send, (asked, unsure) = turn.send, asked_for(self.story, turn, attempt)
            first = min(self.turns.values(), key=lambda one: one.token).claim.db
            must = follows(
                rules,
                attempt.outcome,
                retryable=attempt.outcome == "timeout" or (send is not None and send.answer in ("error", "cut")),
                tries=tries,
                age=attempt.finished_at - max(row.due_at, first),
                retry_after=asked,
                unsure=unsure,
                left=self._left(turn, attempt.finished_at) if rules.until_next else None,
            )
            if place + 1 < len(self.told) or isinstance(row, Live):
                yield from self._again(attempt, must)
            else:
                yield from self._end(row, attempt, must)

    def _left(self, turn: Turn, ended: int) -> int | None:
        """ms from the end of an attempt to the first time after the run's own, in the schedule that its claim read,
        whether or not `count` lets it fire; None: none that could matter."""
        version = self.story.lives.in_force(self.job.id, turn.place)
        if version is None or is_one_off(version.spec["schedule"]):
            return None
        anchor, slot = self.job.segment_begin(turn.place), int(self.row.id.split("-")[1])
        times = {name: value for name, value in version.spec["schedule"].items() if name != "count"}
        coming = slots_of(times, anchor=anchor, after=slot, until=ended + FAR)
        return coming[0] - ended if coming else None

    def _again(self, attempt: Attempt, must: Follows) -> Iterator[Violation]:
        if not must.again:
            yield self.broken("policy", f"was tried again after attempt {attempt.attempt} ({attempt.outcome})")
            return
        later = [turn for token, turn in self.turns.items() if token > attempt.attempt]
        if not later:
            return
        following = min(later, key=lambda turn: turn.token)
        claim = following.claim
        begin = self.turns[attempt.attempt].claim.at
        waited = claim.db - attempt.finished_at
        if not self.story.steady(begin, claim.at):
            self.story.excuse("the database's clock was set while it waited")
        elif attempt.outcome not in ("lost", "interrupted") and waited < must.soonest - 1:
            yield self.broken("backoff", f"was tried again after {waited} ms, no sooner than {must.soonest}")
        elif waited > must.latest + AGAIN and self._nothing_else(begin, claim.at):
            if self.story.waited(following.run, begin, claim.at):
                self.story.excuse("it waited for its destination")
                return
            if backlog_was_full(self.story, following, claim.at - (waited - must.latest)):
                self.story.excuse("it waited for the backlog's share of the slots")
                return
            yield self.broken("backoff", f"was tried again after {waited} ms, no later than {must.latest}")

    def _nothing_else(self, begin: int, end: int) -> bool:
        """Nobody paused or changed the job meanwhile, no lane was in the way, and nothing was wrong."""
        story, job = self.story, self.job
        if story.lives.touched(job.id, begin, end):
            return not story.excuse("its job was changed while it waited")
        if any(version.rules.laned for version in story.lives.versions.get(job.id, ())):
            return not story.excuse("it waited for its lane")
        return story.quiet(begin, end) or not story.excuse("something was wrong while it waited")

    def _end(self, row: Entry, attempt: Attempt, must: Follows) -> Iterator[Violation]:
        if row.outcome is None:  # it waited for another try, and was ended there
            if not must.again:
                yield self.broken("policy", f"waited after attempt {attempt.attempt} ({attempt.outcome})")
            if row.status == "cancelled" or (row.status == "failed" and row.reason == "poison"):
                return
            yield self.broken("policy", f"is {row.status} ({row.reason}) after attempt {attempt.attempt}")
        elif row.reason == "poison":
            losses = [one for one in self.told if one.outcome == "lost"]
            if row.status != "failed" or len(losses) < 3:
                yield self.broken("policy", f"is poison after {len(losses)} losses")
        elif must.again and row.status == "cancelled" and (self.ordered_at_all() or self._gone()):
            return  # it was to be tried again, or may have been
        elif not must.may_end:
            yield self.broken(
                "policy", f"is {row.status} ({row.reason}) after attempt {attempt.attempt} ({attempt.outcome})"
            )
        elif row.status != must.status or row.reason not in must.reasons:
            yield self.broken(
                "policy", f"is {row.status} ({row.reason}) after {attempt.outcome}; it must be {must.status}"
            )
        elif row.status == "cancelled" and row.reason != "replaced" and not self.story.lives.cancels.get(row.id):
            yield self.broken("blamed", f"is cancelled ({row.reason}) by no user, and is not said to be replaced")

    def ordered_at_all(self) -> bool:
        return bool(self.story.lives.cancels.get(self.row.id)) or self._edited_to("replace")

    def _gone(self) -> bool:
        return any(event.verb == "delete" for _, event in self.story.lives.wrote.get(self.job.id, ()))

    def _counts(self, row: Entry) -> Iterator[Violation]:
        if len(self.told) < 20:
            tries = sum(_counts(attempt) for attempt in self.told) + (row.reason == "unknown" and self._interrupted())
            if row.tries != tries:
                yield self.broken("tries", f"counts {row.tries} tries, its attempts are {self._names()}")
        if row.status in ("done", "failed") and not self.told:
            yield self.broken("result", f"is {row.status}, and tells of no attempt")

    def _interrupted(self) -> bool:
        """Sent at most once, and its node stopped: that was its try."""
        return self.told[-1].outcome == "interrupted"

    def _names(self) -> list[str]:
        return [attempt.outcome for attempt in self.told]

    def _times(self, row: Entry) -> Iterator[Violation]:
        """The row's own times are those of its last attempt; its lateness is that of the first that began."""
        begun = [attempt.started_at for attempt in self.told if attempt.started_at is not None]
        if row.outcome is not None and self.told:
            last = self.told[-1]
            if (row.started_at, row.finished_at, row.node) != (last.started_at, last.finished_at, last.node):
                yield self.broken("time", f"says {row.started_at} to {row.finished_at}, its last attempt {last}")
            if last.outcome != "lost" and last.outcome != "unknown":
                late = max(0, begun[0] - row.due_at) if begun else None
                if row.lateness_ms != late:
                    yield self.broken("time", f"says that it was {row.lateness_ms} ms late, it was {late}")
                yield from self.duration(row)

    def duration(self, row: Entry) -> Iterator[Violation]:
        if row.started_at is None:
            if row.duration_ms is not None:
                yield self.broken("time", f"never began, and took {row.duration_ms} ms")
            return
        turn = self.turns.get(row.token)
        took = row.finished_at - row.started_at
        end = self.story.ledger.at if turn is None or turn.recorded is None else turn.recorded.at
        if turn is not None and not self.story.steady(turn.claim.at - LEASE, end):
            self.story.excuse("the database's clock was set while it ran")
        elif row.duration_ms is None or abs(row.duration_ms - took) > 2 + MISREAD * self.story.slow(row.node, 0, 2**62):
            yield self.broken("time", f"took {row.duration_ms} ms, from {row.started_at} to {row.finished_at}")


def _heard(answer: str) -> tuple[str, ...]:
    return ("ok",) if answer == "ok" else ("error",)


def _counts(attempt: Attempt) -> bool:
    return attempt.outcome in COUNTED or (attempt.outcome == "cancelled" and attempt.started_at is not None)
