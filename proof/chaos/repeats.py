"""Second calls of a run whose first gave no reason for one: the price of not losing anything. Each is put to the
account of exactly one fault: what made the node of that very attempt disappear."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from operator import itemgetter

import msgspec

from proof.chaos.harm import Harm
from proof.chaos.record import in_trouble
from proof.chaos.verdict import LOOKS_DEAD, LOSS_EXPLAINED
from proof.checker.events import Fault, Received
from proof.checker.repeats import failed
from proof.checker.story import Story

__all__ = ["KILLS", "Repeats", "repeats_of"]

KILLS = ("kill", "kill_at", "twin")
LONGEST_ANSWER = 4500
"""ms that a call may be under way to a receiver that is slow."""


class Repeats(msgspec.Struct, frozen=True, kw_only=True):
    """by_kind: of each kind of fault. answered: of those, whose first call had its answer before the fault: only the
    record was missing; the others were under way, and nobody could know how they would end.

    The averages per kill count only kills of nodes that reached their database until then, and whose receivers
    answered: who is killed during an outage takes all results of the outage along, and while answers take seconds, all
    calls of those seconds are under way. These are told apart; and so are kills at a named point, which are aimed at
    the worst moment: right before a batch of results is recorded all of it is repeated."""

    by_kind: dict[str, int]
    answered: dict[str, int]
    each: dict[str, float]
    kills: int  # while the database was there and the receiver quick
    per_kill: float
    per_kill_answered: float
    aimed: int  # at a named point, at such a time
    per_aimed: float
    per_kill_of_both: float
    kills_apart: int  # while the database was away, or had only just come back
    per_kill_apart: float
    kills_slow: int  # while answers took seconds
    per_kill_slow: float
    connections_cut: int
    of_each: list[tuple[str, int, int]]  # of those that count: what, when, how many repeats


def repeats_of(story: Story, harms: Sequence[Harm]) -> Repeats:
    found: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    killed: Counter[tuple[str, int]] = Counter()
    killed_answered: Counter[tuple[str, int]] = Counter()
    for job in story.jobs.values():
        runs: dict[str, list[Received]] = {}
        for send in job.sends:
            runs.setdefault(send.run, []).append(send)
        for sends in runs.values():
            for first, second in pairwise(sends):
                if failed(story, job, first):
                    continue
                fault = _blamed(story, first, second)
                what = "nothing" if fault is None else fault.what
                had_answer = fault is None or first.at + first.took < fault.at
                found[what] += 1
                answered[what] += had_answer
                if fault is not None and fault.what in KILLS:
                    killed[fault.what, fault.at] += 1
                    killed_answered[fault.what, fault.at] += had_answer
    kills = [harm for harm in harms if harm.what in KILLS]
    apart = {(kill.what, kill.at) for kill in kills if in_trouble(harms, kill.pid, kill.at, kill.at)}
    slow = {(kill.what, kill.at) for kill in kills if _answers_were_slow(harms, kill.at)} - apart
    reached = [key for kill in kills if (key := (kill.what, kill.at)) not in apart and key not in slow]
    there = [key for key in reached if key[0] != "kill_at"]
    aimed = [key for key in reached if key[0] == "kill_at"]
    happened = Counter(harm.what for harm in harms)
    return Repeats(
        by_kind=dict(found),
        answered=dict(answered),
        each={what: _each(found[what], count) for what, count in happened.items()},
        kills=len(there),
        per_kill=_each(sum(killed[key] for key in there), len(there)),
        per_kill_answered=_each(sum(killed_answered[key] for key in there), len(there)),
        aimed=len(aimed),
        per_aimed=_each(sum(killed[key] for key in aimed), len(aimed)),
        per_kill_of_both=_each(sum(killed[key] for key in reached), len(reached)),
        kills_apart=len(apart),
        per_kill_apart=_each(sum(killed[key] for key in apart), len(apart)),
        kills_slow=len(slow),
        per_kill_slow=_each(sum(killed[key] for key in slow), len(slow)),
        connections_cut=sum(harm.count for harm in harms if harm.what == "cut"),
        of_each=[(what, at, killed[what, at]) for what, at in sorted(reached, key=itemgetter(1))],
    )


def _answers_were_slow(harms: Sequence[Harm], at: int) -> bool:
    return any(harm.what == "receiver_slow" and harm.at <= at <= harm.until + LONGEST_ANSWER for harm in harms)


def _each(count: int, among: int) -> float:
    return round(count / among, 2) if among else 0.0


def _blamed(story: Story, first: Received, second: Received) -> Fault | None:
    """What was done to that node alone comes first: a kill before all; then what was done to everybody; of several the
    last before it was declared lost. What can't explain it (then it is a violation too) is blamed if nothing else is
    there. A call that comes after that of a later claim is one that a node was held up with: that node's fault."""
    held_up = second.token < first.token
    node = second.node if held_up else first.node
    loss = None if held_up else story.losses.get(node or "")
    end = second.at if loss is None else min(second.at, loss.at)
    begin = min(first.at, end - LOSS_EXPLAINED)
    near = [f for f in story.faults if f.at <= end and f.until >= begin and f.node in (node, None)]
    grave = [fault for fault in near if fault.what in LOOKS_DEAD]
    own = [fault for fault in grave if fault.node is not None]
    dead = [fault for fault in own if fault.what in KILLS]
    return max(dead or own or grave or near, key=lambda fault: fault.at, default=None)
