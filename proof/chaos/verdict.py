"""The checker's verdict on a run of real processes.

All checks of the simulation, and one more: no node is declared lost unless something happened to it. Lateness is a
figure here, not a violation: the machine may be busy. What real processes alone can do is looked at before it counts:
- A request that a process had in its hands when it was frozen leaves it after the thaw. It is excused only if the run
  was due before the freeze; a node that starts anything new after its lease is not.
- An at-most-once run that was recorded when the database's clock was set back waits for its instant to come again, also
  if its job is deleted meanwhile.
- An at-most-once run is recorded as tried before it is sent: killed in between, it was never received.
- A try that timed out in the hands of its node, before it was sent, is a try that nobody received. The ledger must say
  of that very attempt that it timed out.
"""

from __future__ import annotations

from collections.abc import Iterator

from proof.checker.events import Crashed, Fault, History
from proof.checker.ledger import Entry, Ledger
from proof.checker.story import LEASE, SLACK, Story, Violation
from proof.checker.verdict import CHECKS

__all__ = ["FIGURES_ONLY", "Timeouts", "judge"]

FIGURES_ONLY = {"late", "given_up"}
"""Slots are given up when the next one has come: lateness too."""
LOSS_EXPLAINED = 2 * LEASE + 2000
"""ms before the declaration in which its reason must lie: the silence, and one watch that was begun anew."""
HARMLESS = {"receiver_down", "receiver_slow", "node_clock", "sigterm", "twin_stopped"}
AFTER_THAW = 500

Timeouts = dict[tuple[str, int], tuple[int, int]]
"""(run, token) → when that attempt began and when it was given up, as the ledger says."""


def judge(
    history: History, ledger: Ledger, *, alone: bool = False, timeouts: Timeouts | None = None
) -> tuple[Story, list[Violation]]:
    """alone: SQLite, where whoever holds the file may bury all others at once. timeouts: the attempts that the ledger
    says had no answer in time."""
    story = Story(history, ledger)
    found = [Violation(kind="crashed", text=f"{e.node}: {e.error}") for e in history if isinstance(e, Crashed)]
    for part in CHECKS:
        found.extend(violation for violation in part(story) if not _excused(story, violation, timeouts or {}))
    found.extend(_unexplained_losses(story))
    ignored = FIGURES_ONLY | ({"robbed"} if alone else set())
    return story, [violation for violation in found if violation.kind not in ignored]


def _unexplained_losses(story: Story) -> Iterator[Violation]:
    kinds = {fault.what for fault in story.faults} - HARMLESS
    for loss in story.losses.values():
        if not kinds or not story.fault_on(loss.node, loss.at - LOSS_EXPLAINED, loss.at, *kinds):
            yield Violation(kind="lost_node", text=f"{loss.node} was declared lost at {loss.at}, and nothing was wrong")


def _excused(story: Story, violation: Violation, timeouts: Timeouts) -> bool:
    if violation.kind not in ("zombie", "tries", "after_delete", "after_pause"):
        return False
    run = violation.text.split()[0]
    if violation.kind.startswith("after_"):
        return _begun_before_step(story, run)
    row = story.entries.get(run) or story.live.get(run)
    if row is None:
        return False
    freezes = [fault for fault in story.faults if fault.what == "freeze"]
    if violation.kind == "tries":
        if (
            isinstance(row, Entry)
            and row.reason == "unknown"
            and row.tries == len({s.token for s in story.sends[run]}) + 1
        ):
            return True
        return isinstance(row, Entry) and _never_left(story, row, timeouts)
    return any(_in_hands(story, freeze, run, row.due_at) for freeze in freezes)


def _never_left(story: Story, entry: Entry, timeouts: Timeouts) -> bool:
    """Each try that was counted was received, or it timed out in the hands of its node, which was frozen, or had
    hundreds of others to send at once."""
    received = {send.token for send in story.sends[entry.id]}
    unsent = sum((entry.id, token) in timeouts for token in range(1, entry.token + 1) if token not in received)
    return entry.tries <= len(received) + unsent


def _begun_before_step(story: Story, run: str) -> bool:
    """At most once, so recorded as sent before the send; then the database's clock was set back, so that it was early
    again and waited. Nobody can take it back any more: it goes out when its instant comes for the second time."""
    send = story.sends[run][0]
    claims = [claim.at for claim in story.claims if claim.run == run]
    back = [step for step in story.steps if step.by_ms < 0 and min(claims, default=0) <= step.at <= send.at]
    return bool(back) and story.jobs[send.job].at_most_once


def _in_hands(story: Story, freeze: Fault, run: str, due_at: int) -> bool:
    for send in story.sends[run]:
        late = send.at - (send.db - due_at)  # when it was due, in true time
        if send.node == freeze.node and 0 <= send.at - freeze.until <= AFTER_THAW and late <= freeze.at + SLACK:
            return True
    return False
