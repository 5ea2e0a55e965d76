"""The checker's verdict on a run of real processes: all checks of the simulation, some of its own, and five excuses.

Its own checks: no node is declared lost unless something was done to it that can make it look dead, nothing is later
than a lease with nothing wrong, an orderly stop is quick while the database answers.

What is excused, and why it is no broken promise:
- *A request that a process had in its hands when it was frozen leaves it after the thaw*: no program can look at a
  clock and send in one step. Only if that attempt was claimed, and the run due, before the freeze, and only right after
  the thaw: a node that starts anything new after its lease is not excused. (It may be overtaken by the next attempt.)
- *An at-most-once run that was recorded as begun when the database's clock was set back* waits for its instant to come
  again, also if its job is paused or deleted meanwhile: what is recorded as sent can't be recalled.
- *A try that was counted and never received*: it timed out before it left its node, which was frozen or had hundreds to
  send at once. The ledger must say of that very attempt that it timed out, and that it lasted as long as the time-out.
- *Lateness up to a lease, and slots given up for it*, are figures, not violations: real processes share two cores with
  their own test bench. A slot that is given up before a newer one came is a violation all the same.
- *SQLite: whoever holds the file may bury all others at once*, without a lease, because the lock proves them dead. So
  they must be: each of them was killed before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from proof.chaos.harm import Harm
from proof.chaos.orders import claimed_after, gave_up_early
from proof.chaos.versions import Request, carried_out_late, in_order, not_as_asked
from proof.checker.events import Crashed, Fault, History, Lost, Received
from proof.checker.ledger import Entry, Ledger
from proof.checker.liveness import lateness
from proof.checker.story import LEASE, SETTLE, SLACK, JobStory, Story, Violation
from proof.checker.verdict import CHECKS

__all__ = ["STOPS_WITHIN", "Timeouts", "judge"]

ON_TIME_KINDS = {"late", "given_up"}
"""The simulation's own, to 150 ms: see `_late`."""
LOOKS_DEAD = (
    "kill",
    "kill_at",
    "kill_api",
    "twin",
    "freeze",
    "silence",
    "refuse",
    "delay",
    "outage",
    "short_outage",
    "db_restart",
    "disk_full",
    "stop",
)
"""What can make a beat stand still for a lease. Not: cut sockets, ended backends, a lost answer, a wrong wall clock, a
receiver in trouble, a SIGTERM while the database answers. (Delay: up to 0.6 s there and back; a beat that needs a new
connection first does not come through in the 1.5 s that it has.)"""
DEAD = ("kill", "kill_at", "kill_api", "twin")
LOSS_EXPLAINED = 2 * LEASE + 2000
"""ms before the declaration in which its reason must lie: the silence, and one watch that was begun anew."""
AFTER_THAW = 500
LAG = 3000
"""ms that an asynchronous standby may be behind, on two cores that everything shares."""
EXCUSES = {
    "late": "a figure here, up to a lease",
    "given_up": "a figure here",
    "robbed": "the file's lock proves all others dead",
    "zombie": "in the hands of a process when it was frozen",
    "overtaken": "in the hands of a process when it was frozen",
    "tries": "timed out or cancelled before it left its node",
}
HEALED = 40_000
"""ms after a fault that concerned a run (all of them, or one of its nodes) in which it must be sent, if it is due:
other nodes may be frozen for five leases, and all that waits for an outage comes due at once."""
STOPS_WITHIN = 9000
"""ms from SIGTERM to the end while the database answers: the slowest call is cut off after 3 s, a call to the database
has to be answered within the lease, and a process of Python needs a moment to end."""

Timeouts = dict[tuple[str, int], tuple[int, int]]
"""(run, token) → when that attempt began and when it was given up, as the ledger says."""


def judge(
    history: History,
    ledger: Ledger,
    *,
    alone: bool = False,
    timeouts: Timeouts | None = None,
    requests: Sequence[Request] = (),
    harms: Sequence[Harm] = (),
    lossy: bool = False,
) -> tuple[Story, list[Violation]]:
    """alone: SQLite. timeouts: the attempts that the ledger says had no answer in time. requests: of users, who may
    have given them up. lossy: a standby that is behind takes over."""
    ledger = msgspec.structs.replace(ledger, whole=False)  # each row to the millisecond: that is the simulation's
    story = Story(in_order(history), ledger)
    found = [Violation(kind="crashed", text=f"{e.node}: {e.error}") for e in history if isinstance(e, Crashed)]
    for part in CHECKS:
        for violation in part(story):
            if _excused(story, violation, timeouts or {}, alone):
                story.excuse(f"{violation.kind}: {EXCUSES[violation.kind]}")
            else:
                found.append(violation)
    found.extend(_unexplained_losses(story, alone))
    found.extend(_late(story))
    found.extend(_slow_stops(story))
    found.extend(_too_soon(story))
    found.extend(_reused(story))
    found.extend(not_as_asked(story))
    found.extend(claimed_after(story))
    found.extend(gave_up_early(story, timeouts or {}))
    found.extend(carried_out_late(story, requests, harms))
    return story, _without_lost(story, found, harms) if lossy else found


def _too_soon(story: Story) -> Iterator[Violation]:
    """Retry-After: the next attempt comes no earlier than the receiver asked for; another node's, who never heard of
    it, may."""
    for sends in story.sends.values():
        for first, second in pairwise(sends):
            if first.retry_after is None or story.lost(first.node, first.at, second.at):
                continue
            waited = second.at - first.at - first.took
            if waited < first.retry_after - SLACK and not story.fault_on(first.node, first.at, second.at, "stop"):
                text = f"{first.run}: asked to wait {first.retry_after} ms, token {second.token} came after {waited} ms"
                yield Violation(kind="too_soon", text=text)


def _reused(story: Story) -> Iterator[Violation]:
    """An id that was given to somebody names that job for ever, whatever becomes of the database."""
    marks: dict[int, int] = {}
    for made in story.made:
        if marks.setdefault(made.job, made.mark) != made.mark:
            text = f"job {made.job} is request {marks[made.job]}'s and request {made.mark}'s"
            yield Violation(kind="reused", text=text)


def _without_lost(story: Story, found: list[Violation], harms: Sequence[Harm]) -> list[Violation]:
    """What a standby had not received when it took over is lost, and nobody can tell: excused is what concerns a job to
    which something happened in the last moments before. Ids that are given twice are not."""
    takeovers = [harm.at for harm in harms if "failover" in harm.detail]
    touched: set[int] = set()
    for event in story.history:
        job = getattr(event, "job", None)
        if job is None and (run := getattr(event, "run", None)):
            job = int(run.partition("-")[0])
        if job is not None and any(at - LAG <= event.at <= at + SLACK for at in takeovers):
            touched.add(job)
    kept = []
    for violation in found:
        named = re.search(r"(?:job |run |^)(\d+)", violation.text)
        if violation.kind != "reused" and named is not None and int(named[1]) in touched:
            story.excuse(f"{violation.kind}: lost with an asynchronous primary")
        else:
            kept.append(violation)
    return kept


def _unexplained_losses(story: Story, alone: bool) -> Iterator[Violation]:
    """Who was killed stays dead, however long nobody was there to watch for a lease; what else makes a node look dead
    explains a loss for a while only."""
    for loss in story.losses.values():
        looked_dead = not alone and story.fault_on(loss.node, loss.at - LOSS_EXPLAINED, loss.at, *LOOKS_DEAD)
        if not looked_dead and not _killed_before(story, loss):
            yield Violation(kind="lost_node", text=f"{loss.node} was declared lost at {loss.at}, and nothing was wrong")


def _killed_before(story: Story, loss: Lost) -> bool:
    return any(fault.node == loss.node and fault.what in DEAD and fault.until <= loss.at for fault in story.faults)


def _late(story: Story) -> Iterator[Violation]:
    """With nothing wrong for SETTLE, a run that is later than a lease was forgotten by somebody who is alive. While
    something is wrong it is excused by the last fault that concerned it, and only for so long."""
    on_time: set[str] = set()
    for job in story.jobs.values():
        for send, late in lateness(story, job):
            on_time.add(send.run)
            if late > LEASE:
                yield Violation(
                    kind="late", text=f"{send.run} was sent {late} ms late at {send.at}, with nothing wrong"
                )
    for job in story.jobs.values():
        in_backlog = any(version.rules.catch_up == "all" for version in story.lives.versions.get(job.id, ()))
        for run in {send.run for send in job.sends} - on_time if not job.laned else ():
            yield from _soon_after(story, job, story.sends[run][0], in_backlog=in_backlog)


def _soon_after(story: Story, job: JobStory, send: Received, *, in_backlog: bool) -> Iterator[Violation]:
    row = story.entries.get(send.run) or story.live.get(send.run)
    if row is None or row.kind != "scheduled" or send.db - row.due_at <= LEASE or job.made.until > send.at:
        return
    holders = {None, *(turn.claim.node for turn in story.lives.turns.get(send.run, {}).values())}
    due = send.at - (send.db - row.due_at)
    faults = [(min(f.until, send.at), f.what) for f in story.faults if f.node in holders and f.at <= send.at]
    faults += [(at, "a change") for at in story.lives.written(job.id) if at <= send.at]
    ended, what = max([(due - SETTLE, "a fault of another node"), *faults])
    since = max(due, ended)
    if send.at - since <= HEALED:
        story.excuse(f"late by more than a lease, within {HEALED // 1000} s of {what}")
    elif in_backlog:
        story.excuse("late by more than a lease, in the backlog")
    else:
        text = f"{send.run} was sent {send.at - due} ms late at {send.at}, {send.at - since} ms after {what}"
        yield Violation(kind="late", text=text)


def _slow_stops(story: Story) -> Iterator[Violation]:
    for stop in story.faults:
        if stop.what in ("sigterm", "twin_stopped") and stop.until - stop.at > STOPS_WITHIN:
            in_trouble = [f for f in story.faults if f.what == "stop" and f.node == stop.node and f.at == stop.at]
            if not in_trouble and not story.fault_on(stop.node, stop.at, stop.until, "freeze"):
                text = f"{stop.node} ended {stop.until - stop.at} ms after SIGTERM, with the database there"
                yield Violation(kind="slow_stop", text=text)


def _excused(story: Story, violation: Violation, timeouts: Timeouts, alone: bool) -> bool:
    if violation.kind in ON_TIME_KINDS:
        return True
    if violation.kind == "robbed":
        return alone  # that they were dead is checked above
    if violation.kind not in ("zombie", "overtaken", "tries"):
        return False
    run = violation.text.split()[0]
    row = story.entries.get(run) or story.live.get(run)
    if row is None:
        return False
    if violation.kind == "tries":
        return isinstance(row, Entry) and _never_left(story, row, timeouts)
    freezes = [fault for fault in story.faults if fault.what == "freeze"]
    return any(_in_hands(story, freeze, run, row.due_at) for freeze in freezes)


def _never_left(story: Story, entry: Entry, timeouts: Timeouts) -> bool:
    """Each try that was counted was received, or it timed out or was cancelled in the hands of its node, which had
    begun to connect; and it is not that the run was given up before it had its tries."""
    received = {send.token for send in story.sends.get(entry.id, ())}
    cancelled = entry.token if entry.status == "cancelled" and entry.started_at is not None else None
    unsent = sum(
        (entry.id, token) in timeouts or token == cancelled
        for token in range(1, entry.token + 1)
        if token not in received
    )
    return len(received) < entry.tries <= len(received) + unsent


def _in_hands(story: Story, freeze: Fault, run: str, due_at: int) -> bool:
    for send in story.sends.get(run, ()):
        due = send.at - (send.db - due_at)  # in true time
        claim = story.owners.get((run, send.token))
        begun = due if claim is None else max(due, claim.at)
        if send.node == freeze.node and 0 <= send.at - freeze.until <= AFTER_THAW and begun <= freeze.at + SLACK:
            return True
    return False
