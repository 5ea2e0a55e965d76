"""The figures of a run, from the same story that the verdict is drawn from."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from proof.chaos.harm import Harm
from proof.chaos.repeats import KILLS, Repeats, repeats_of
from proof.checker.events import Claimed, Fault
from proof.checker.story import LEASE, Story, Violation

__all__ = ["NO_FAULT", "POSSIBLE", "SPARED", "Figures", "figures_of", "percentile"]

AWAY = ("outage", "short_outage", "db_restart", "disk_full")
SETTLE = 2000
BREAKER = 12_000
"""ms after the receiver was down: it is probed every ten seconds, and then catches up with what waited."""
NO_FAULT = "no fault"
ALL = "under faults, all"
SHUT = "while the receiver was down, or just after"
POSSIBLE = "under faults, database there and a node well"
SPARED = "under faults, and not held by a struck node"
STRIKES = (*KILLS, "kill_api", "freeze", "silence", "refuse")  # a node may be API and executor
LOST_KINDS = ("lost", "silent")
UNEXPLAINED = ("repeated", "overtaken", "doubled", "overlap")


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    scheduled: int  # slots that had to be covered, runs by hand included
    received: int
    faults: int
    kinds: dict[str, int]
    lost: int
    phantom: int
    early: int
    unexplained_repeats: int
    at_most_once: int
    other_violations: int
    repeats: Repeats
    takeover_ms: dict[str, int]
    lateness_ms: dict[str, dict[str, int]]
    nodes_lost: int
    firings_per_second: float
    requests: dict[str, int]


def figures_of(
    story: Story, violations: Sequence[Violation], harms: Sequence[Harm], requests: dict[str, int]
) -> Figures:
    counts = Counter(violation.kind for violation in violations)
    named = {*LOST_KINDS, *UNEXPLAINED, "phantom", "early", "at_most_once"}
    sends = [send for sends in story.sends.values() for send in sends]
    begin, end = min((send.at for send in sends), default=0), max((send.at for send in sends), default=1)
    return Figures(
        scheduled=_scheduled(story),
        received=len(sends),
        faults=len(harms),
        kinds=dict(Counter("failover" if "failover" in harm.detail else harm.what for harm in harms)),
        lost=sum(counts[kind] for kind in LOST_KINDS),
        phantom=counts["phantom"],
        early=counts["early"],
        unexplained_repeats=sum(counts[kind] for kind in UNEXPLAINED),
        at_most_once=counts["at_most_once"],
        other_violations=sum(count for kind, count in counts.items() if kind not in named),
        repeats=repeats_of(story, harms),
        takeover_ms=_spread(_takeovers(story)),
        lateness_ms=_lateness(story),
        nodes_lost=len(story.losses),
        firings_per_second=round(1000 * len(story.sends) / max(1, end - begin), 1),
        requests=requests,
    )


def percentile(values: Sequence[int], share: float) -> int:
    """Of sorted values."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0


def _spread(values: list[int]) -> dict[str, int]:
    values.sort()
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
    return {
        "n": len(values),
        **{name: percentile(values, share) for name, share in shares.items()},
        "max": max(values, default=0),
    }


def _scheduled(story: Story) -> int:
    entries = sum(entry.slots or 1 for entry in story.ledger.entries)
    return entries + sum(live.state == "running" for live in story.ledger.live)


def _takeovers(story: Story) -> list[int]:
    """From the kill to the next claim of each run that the killed node held, while the database was there and another
    node was well all the time: nobody can see a beat stand still for a lease who has not been there for one. Without
    jobs that were changed meanwhile: what is paused is claimed by nobody."""
    killed = {fault.node: fault.until for fault in story.faults if fault.what in KILLS and fault.node}
    away = [fault for fault in story.faults if fault.what in AWAY]
    last: dict[str, Claimed] = {}
    witnesses = _Witnesses(story)
    found = []
    for claim in story.claims:
        before = last.get(claim.run)
        last[claim.run] = claim
        if before is None or before.node not in killed or claim.node == before.node:
            continue
        died, loss = killed[before.node], story.losses.get(before.node)
        if (
            loss is None
            or not before.at <= died <= loss.at <= claim.at  # it was lost, or had given that one back, before
            or any(fault.at - SETTLE < claim.at and fault.until + SETTLE > died for fault in away)
        ):
            continue
        job = story.jobs.get(int(claim.run.partition("-")[0]))
        changed = job is not None and any(c.at <= claim.at and c.until >= died - SETTLE for c in job.changes)
        if not changed and witnesses.of(died - SETTLE, claim.at):
            found.append(claim.at - died)
    return found


def _lateness(story: Story) -> dict[str, dict[str, int]]:
    """Of first sends of slots. Under faults: of those that could have been fired, because the database was there from
    two seconds before they were due until they were sent, a node was well, and no breaker was open; and of those no
    struck node held."""
    spreads: dict[str, list[int]] = {NO_FAULT: [], ALL: [], SHUT: [], POSSIBLE: [], SPARED: []}
    away = _Spans([fault for fault in story.faults if fault.what in AWAY], SETTLE)
    shut = _Spans([fault for fault in story.faults if fault.what == "receiver_down"], BREAKER)
    first_owner: dict[str, str] = {}
    for claim in story.claims:
        first_owner.setdefault(claim.run, claim.node)
    struck = {fault.node for fault in story.faults if fault.node and fault.what in STRIKES}
    witnesses = _Witnesses(story)
    for job in story.jobs.values():
        known = sorted([job.made.until, *(change.until for change in job.changes)])
        for send in job.sends:
            row = story.entries.get(send.run) or story.live.get(send.run)
            if row is None or row.kind != "scheduled" or job.laned or story.sends[send.run][0] is not send:
                continue
            late = send.db - row.due_at
            due = send.at - late
            place = bisect.bisect_right(known, send.at)
            if place and known[place - 1] >= due - 3500:
                continue  # the job was only just made or changed: it could not be on time
            if story.quiet(due - LEASE, send.at):
                spreads[NO_FAULT].append(late)
                continue
            spreads[ALL].append(late)
            if away.touch(due, send.at) or not witnesses.of(due, due):
                continue
            if shut.touch(due, send.at):
                spreads[SHUT].append(late)
                continue
            spreads[POSSIBLE].append(late)
            if first_owner.get(send.run) not in struck:
                spreads[SPARED].append(late)
    return {name: _spread(values) for name, values in spreads.items()}


class _Witnesses:
    """Nodes that were there, and well, throughout."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._lives: dict[str, tuple[int, int]] = {}
        for claim in story.claims:
            begin, _ = self._lives.get(claim.node, (claim.at, 0))
            self._lives[claim.node] = begin, claim.at
        self._known: dict[tuple[int, int], bool] = {}

    def of(self, begin: int, end: int) -> bool:
        key = begin // 100, end // 100
        if key not in self._known:
            self._known[key] = any(
                first <= begin and last >= end and not any(self._struck(node, begin, end))
                for node, (first, last) in self._lives.items()
            )
        return self._known[key]

    def _struck(self, node: str, begin: int, end: int) -> Iterator[bool]:
        for fault in self._story.faults:
            if fault.node == node and fault.at <= end and fault.until >= begin:
                yield True


class _Spans:
    def __init__(self, faults: Sequence[Fault], more: int) -> None:
        self._spans = sorted((fault.at, fault.until + more) for fault in faults)

    def touch(self, begin: int, end: int) -> bool:
        return any(first <= end and last >= begin for first, last in self._spans)
